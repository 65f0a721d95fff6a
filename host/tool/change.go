package tool

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"time"
)

// ChangeKind is what a [Change] does.
type ChangeKind string

// The kinds. A file is also a symbolic link, or whatever else can be moved and
// removed but not opened. They are part of the documented contract of `--json`.
const (
	Created          ChangeKind = "created"
	Modified         ChangeKind = "modified" // also by another that took its place
	Removed          ChangeKind = "removed"
	Renamed          ChangeKind = "renamed" // a directory with everything in it; content may have changed too
	DirectoryCreated ChangeKind = "directory created"
	DirectoryRemoved ChangeKind = "directory removed"
	ModeChanged      ChangeKind = "mode"  // and maybe the times
	TimesChanged     ChangeKind = "times" // only those
)

// Change is what a call does to one file or directory.
type Change struct {
	Path   string // of the host, absolute; as it is afterwards, unless it is gone
	From   string // of what was renamed
	Kind   ChangeKind
	Before *Version // nil if there was nothing
	After  *Version // nil if there is nothing
	// InRepository says that git runs what is there, or what it names, because of
	// what is in a directory above, whatever that is called.
	InRepository bool
}

// Version is a file or directory as it was or would be.
type Version struct {
	Size int64       // of a file
	Mode fs.FileMode // with the type
	// ModTime is the time of modification if the call has set one; nil
	// otherwise.
	ModTime *time.Time
	// Target is where a symbolic link leads.
	Target string
	// LinkCount is how many names the file has on the host, if it has several; those that
	// the change is not about keep what it was.
	LinkCount uint64
	// HardLink is another name of the same file, if it has several; absolute.
	HardLink string
	// Encoding is the one that the call has named for text that is no UTF-8; can be empty.
	Encoding string
	// Open returns the content of a regular file, while what it belongs to has
	// not ended. It fails if the host's file is another one by now.
	Open func() (io.ReadCloser, error)
}

// SHA256 is that of the content. It reads all of it.
func (v *Version) SHA256() (sum [sha256.Size]byte, err error) {
	r, err := v.Open()
	if err != nil {
		return sum, err
	}
	h := sha256.New()
	_, err = io.Copy(h, r)
	return [sha256.Size]byte(h.Sum(nil)), errors.Join(err, r.Close())
}
