package rootedfs

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

const (
	Nonblock = 0 // nothing in a directory blocks here
	// AttrAccess is the open flag that a handle needs to change times. The times of a
	// directory cannot be changed.
	AttrAccess = os.O_RDWR
	// HasAppend is false: SetAppend does nothing, and two writers may append at one place.
	HasAppend = false
)

// StatOf returns the facts about a file. Files have no device and inode numbers here.
func StatOf(fi os.FileInfo) Stat {
	out := Stat{Nlink: 1, Mtim: fi.ModTime().UnixNano()}
	if d, ok := fi.Sys().(*syscall.Win32FileAttributeData); ok {
		out.Atim, out.Mtim = d.LastAccessTime.Nanoseconds(), d.LastWriteTime.Nanoseconds()
		out.Ctim = out.Mtim
	}
	return out
}

func SameFile(a, b os.FileInfo) bool { return os.SameFile(a, b) }

// SameOwner returns true: a new file gets its owner from the directory.
func SameOwner(a, b os.FileInfo) bool { return true }

// CopyOwner does nothing: a new file gets its owner from the directory.
func CopyOwner(*os.File, os.FileInfo) {}

// Chmod sets the permissions of an open file.
func Chmod(f *os.File, mode fs.FileMode) error { return f.Chmod(mode.Perm()) }

// linkCount returns the number of hard links of an open file; a large number if it is unknown.
func linkCount(f *os.File, _ os.FileInfo) uint64 {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info); err != nil {
		return 1 << 32
	}
	return uint64(info.NumberOfLinks)
}

// CheckWritable returns an error unless the file can be opened for writing.
func CheckWritable(dir Root, name string) error {
	file, err := dir.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return file.Close()
}

func SetAppend(*os.File, bool) error { return nil }

func SetTimes(f *os.File, atim, mtim int64) error {
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

// RenameBetween renames a file within one directory. Two different directories are an error.
func RenameBetween(from Root, oldName string, to Root, newName string) error {
	a, err := from.Stat(".")
	if err != nil {
		return err
	}
	b, err := to.Stat(".")
	if err != nil {
		return err
	}
	if !SameFile(a, b) {
		return windows.ERROR_NOT_SAME_DEVICE
	}
	return from.Rename(oldName, newName)
}
