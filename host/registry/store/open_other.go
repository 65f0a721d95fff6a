//go:build !unix

package store

// noFollow is nothing: only the user can make a link in a folder of the user's own.
const noFollow = 0
