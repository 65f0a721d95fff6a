package tool

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"time"
)

// ChangeKind is the kind of a [Change].
type ChangeKind string

// The kinds of changes. "File" includes symbolic links, and everything else that can be
// moved and removed but not opened. The values are part of the documented contract of
// `--json`.
const (
	Created          ChangeKind = "created"
	Modified         ChangeKind = "modified" // or replaced by another file
	Removed          ChangeKind = "removed"
	Renamed          ChangeKind = "renamed" // a directory with all its entries; the content may have changed, too
	DirectoryCreated ChangeKind = "directory created"
	DirectoryRemoved ChangeKind = "directory removed"
	ModeChanged      ChangeKind = "mode"  // and maybe the times
	TimesChanged     ChangeKind = "times" // only the times
)

// Change is a change of one file or directory that a call makes.
type Change struct {
	Path   string // absolute, on the host: the path after the change, or the removed path
	From   string // the path before; only of Renamed
	Kind   ChangeKind
	Before *Version // nil: it did not exist
	After  *Version // nil: it does not exist any more
	// InRepository is set if the file may belong to a git repository in a directory of any
	// name. git may then run the file, or a program that the file names.
	InRepository bool
}

// Version is a file or directory before or after a change.
type Version struct {
	Size int64       // bytes of a file; 0 for anything else
	Mode fs.FileMode // type and permissions
	// ModTime is the time of modification that the call has set; nil: it has set none.
	ModTime *time.Time
	// Target is the target of a symbolic link.
	Target string
	// LinkCount is the number of names of the file on the host; 0 if it has only one. The
	// names that are not changed keep the old content.
	LinkCount uint64
	// HardLink is the absolute path of another name of the same file; empty if there is
	// none.
	HardLink string
	// Encoding is the name of the encoding that the call gives for text that is not UTF-8;
	// empty: it gives none.
	Encoding string
	// Open opens the content of a regular file. It fails after the end of the change set,
	// and if the host has another file there by now.
	Open func() (io.ReadCloser, error)
}

// SHA256 returns the digest of the content, which it reads completely.
func (v *Version) SHA256() (sum [sha256.Size]byte, err error) {
	r, err := v.Open()
	if err != nil {
		return sum, err
	}
	h := sha256.New()
	_, err = io.Copy(h, r)
	return [sha256.Size]byte(h.Sum(nil)), errors.Join(err, r.Close())
}
