package policyfile

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

func administrator() Place {
	return Place{Path: "/Library/Application Support/Stockade/policy.toml", Root: "/", Owner: rootUID}
}

type attrlist struct {
	bitmapcount, reserved                 uint16
	common, volume, directory, file, fork uint32
}

const (
	attrBitMapCount         = 5
	attrCmnExtendedSecurity = 0x00400000
	sysFgetattrlist         = 228
)

// checkACL refuses a file with an access control list, because the mode does not show the
// list's permissions. Not verified: it was compiled only.
func checkACL(f *os.File, name string) error {
	list := attrlist{bitmapcount: attrBitMapCount, common: attrCmnExtendedSecurity}
	var answer struct {
		length uint32
		offset int32
		bytes  uint32
		_      [4096]byte
	}
	_, _, errno := syscall.Syscall6(sysFgetattrlist, f.Fd(), uintptr(unsafe.Pointer(&list)),
		uintptr(unsafe.Pointer(&answer)), unsafe.Sizeof(answer), 0, 0)
	runtime.KeepAlive(f)
	switch {
	case errno != 0:
		return refuse(name, "its access control list cannot be read: %v", errno)
	case answer.bytes != 0:
		return refuse(name, "it has an access control list; take it away: chmod -N")
	}
	return nil
}
