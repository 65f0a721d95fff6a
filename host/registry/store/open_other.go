//go:build !unix

package store

// noFollow has no effect here: only the user can make a link in the user's own folder.
const noFollow = 0
