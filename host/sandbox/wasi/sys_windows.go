package wasi

import (
	"os"

	"github.com/tetratelabs/wazero/experimental/sys"
	"golang.org/x/sys/windows"
)

const (
	openNonblock = 0 // nothing in a directory blocks here
	// attrAccess is what a handle needs to change times. Those of a directory
	// cannot be changed.
	attrAccess = os.O_RDWR
	// hostAppends is false because setAppend does nothing: the file is
	// appended to at the size it had a moment ago.
	hostAppends = false
)

// keepOwner has nothing to do: a new file gets its owner from the directory.
func keepOwner(*os.File, os.FileInfo) {}

// links is the number of hard links of an open file; many if it is not known.
func links(f *os.File, _ os.FileInfo) uint64 {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info); err != nil {
		return 1 << 32
	}
	return uint64(info.NumberOfLinks)
}

func setAppend(*os.File, bool) error { return nil }

func setTimes(f *os.File, atim, mtim int64) error {
	var a, m *windows.Filetime
	if atim != sys.UTIME_OMIT {
		t := windows.NsecToFiletime(atim)
		a = &t
	}
	if mtim != sys.UTIME_OMIT {
		t := windows.NsecToFiletime(mtim)
		m = &t
	}
	return windows.SetFileTime(windows.Handle(f.Fd()), nil, a, m)
}

// renameBetween renames from one directory to another, if they are the same.
func renameBetween(from *os.Root, oldName string, to *os.Root, newName string) error {
	a, err := from.Stat(".")
	if err != nil {
		return err
	}
	b, err := to.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(a, b) {
		return windows.ERROR_NOT_SAME_DEVICE
	}
	return from.Rename(oldName, newName)
}
