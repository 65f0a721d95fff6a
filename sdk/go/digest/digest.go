// Package digest hashes at the speed of the host. The packages of crypto give the same
// hashes, some hundred times as slowly in WebAssembly; they are for what does not fit
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

// SHA1 returns the SHA-1 of data. It is for formats that name their contents by it,
// as git does; against who means to deceive it is no protection.
func SHA1(data []byte) (sum [20]byte) {
	copy(sum[:], hashed(hostSHA1, data))
	return sum
}

// hashed passes data where it lies: the host is done with it before it allocates
// anything, so that no collection can come between.
func hashed(host func(data unsafe.Pointer, size, ret uint32), data []byte) []byte {
	var f abi.Frame
	defer f.Free()
	// list<u8>
	ret, r := f.Area(8)
	host(unsafe.Pointer(unsafe.SliceData(data)), uint32(len(data)), ret)
	return r.Bytes(0)
}
