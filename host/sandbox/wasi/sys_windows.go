package wasi

import (
	"os"
	"syscall"

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

// hostStat is what the host says, without type and size. It has no numbers for
// files here.
func hostStat(fi os.FileInfo) Stat {
	out := Stat{Nlink: 1, Mtim: fi.ModTime().UnixNano()}
	if d, ok := fi.Sys().(*syscall.Win32FileAttributeData); ok {
		out.Atim, out.Mtim = d.LastAccessTime.Nanoseconds(), d.LastWriteTime.Nanoseconds()
		out.Ctim = out.Mtim
	}
	return out
}

// systemErrno translates the errors that are this system's own.
func systemErrno(e syscall.Errno) Errno {
	switch e {
	case windows.ERROR_CANT_RESOLVE_FILENAME:
		return ELOOP
	case windows.ERROR_DIR_NOT_EMPTY:
		return ENOTEMPTY
	case windows.ERROR_DIRECTORY:
		return ENOTDIR
	case windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL:
		return ENOSPC
	case windows.ERROR_FILENAME_EXCED_RANGE:
		return ENAMETOOLONG
	case windows.ERROR_INVALID_HANDLE:
		return EBADF
	case windows.ERROR_INVALID_NAME, windows.ERROR_INVALID_PARAMETER, windows.ERROR_NEGATIVE_SEEK, windows.ERROR_NOT_A_REPARSE_POINT:
		return EINVAL
	case windows.ERROR_LOCK_VIOLATION, windows.ERROR_SHARING_VIOLATION:
		return EBUSY
	case windows.ERROR_NOT_SAME_DEVICE:
		return EXDEV
	case windows.ERROR_TOO_MANY_OPEN_FILES:
		return EMFILE
	case windows.ERROR_WRITE_PROTECT:
		return EROFS
	}
	return 0
}

func sameHostFile(a, b os.FileInfo) bool { return os.SameFile(a, b) }

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

// mayWrite tries whether a file can be opened to be written.
func mayWrite(dir root, name string) error {
	file, err := dir.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return file.Close()
}

func setAppend(*os.File, bool) error { return nil }

func setTimes(f *os.File, atim, mtim int64) error {
	var a, m *windows.Filetime
	if atim != OmitTime {
		t := windows.NsecToFiletime(atim)
		a = &t
	}
	if mtim != OmitTime {
		t := windows.NsecToFiletime(mtim)
		m = &t
	}
	return windows.SetFileTime(windows.Handle(f.Fd()), nil, a, m)
}

// renameBetween renames from one directory to another, if they are the same.
func renameBetween(from root, oldName string, to root, newName string) error {
	a, err := from.Stat(".")
	if err != nil {
		return err
	}
	b, err := to.Stat(".")
	if err != nil {
		return err
	}
	if !sameHostFile(a, b) {
		return windows.ERROR_NOT_SAME_DEVICE
	}
	return from.Rename(oldName, newName)
}
