//go:build !wasip1

package kv

const noHost = "kv: no host: the program does not run as a Stockade module"

// The host's functions. Natively there is no host; tests of this package set their own.
var (
	hostGet    = func(keyPtr, keyLen, ret uint32) { panic(noHost) }
	hostDelete = func(keyPtr, keyLen, ret uint32) { panic(noHost) }
	hostKeys   = func(prefixPtr, prefixLen, limit, ret uint32) { panic(noHost) }
	hostSet    = func(keyPtr, keyLen, valuePtr, valueLen, hasTTL uint32, ttlMillis uint64, ret uint32) { panic(noHost) }
)
