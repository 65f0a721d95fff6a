//go:build !unix

package export

// noFollow: there is no such flag here.
const noFollow = 0
