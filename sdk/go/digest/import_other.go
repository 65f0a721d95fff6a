//go:build !wasip1

package digest

import (
	"crypto/sha1"
	"crypto/sha256"
	"unsafe"

	"github.com/stockade-dev/stockade/sdk/go/internal/abi"
)

// Natively there is no host, and the packages of crypto are as fast.

func hostSHA256(data unsafe.Pointer, size, ret uint32) {
	sum := sha256.Sum256(unsafe.Slice((*byte)(data), size))
	give(ret, sum[:])
}

func hostSHA1(data unsafe.Pointer, size, ret uint32) {
	sum := sha1.Sum(unsafe.Slice((*byte)(data), size))
	give(ret, sum[:])
}

// give returns a list<u8> as the host does.
func give(ret uint32, sum []byte) {
	abi.Record(abi.Take(ret, 8)).SetPair(0)(new(abi.Frame).Bytes(sum))
}
