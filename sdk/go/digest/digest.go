// Package digest hashes at the speed of the host. The packages of crypto return the same
// hashes, some hundred times as slowly in WebAssembly; use them for data that does not fit
// into memory.
package digest

import (
	"unsafe"

	"github.com/stockade-dev/stockade/sdk/go/internal/abi"
)

// SHA256 returns the SHA-256 of data.
func SHA256(data []byte) (sum [32]byte) {
	copy(sum[:], hashed(hostSHA256, data))
	return sum
}

// SHA1 returns the SHA-1 of data. It is for formats that identify content by SHA-1, as git
// does. It does not protect against deliberate collisions.
func SHA1(data []byte) (sum [20]byte) {
	copy(sum[:], hashed(hostSHA1, data))
	return sum
}

// hashed passes data to a host function without a copy. The host finishes reading before it
// allocates, so no garbage collection can come between.
func hashed(host func(data unsafe.Pointer, size, ret uint32), data []byte) []byte {
	var f abi.Frame
	defer f.Free()
	// list<u8>
	ret, r := f.Area(8)
	host(unsafe.Pointer(unsafe.SliceData(data)), uint32(len(data)), ret)
	return r.Bytes(0)
}
