//go:build !unix

package export

// noFollow is 0, because this system has no such flag.
const noFollow = 0
