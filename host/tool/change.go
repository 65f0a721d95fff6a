package tool

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// ChangeKind is the kind of a [Change].
type ChangeKind string

// The kinds of changes. "File" includes symbolic links, and everything else that can be moved
// and removed but not opened. The values are part of the documented contract of `--json`.
const (
	Created          ChangeKind = "created"
	Modified         ChangeKind = "modified" // new content or another file, maybe with a new mode
	Removed          ChangeKind = "removed"
	Renamed          ChangeKind = "renamed" // or moved, with all entries; the content may differ
	DirectoryCreated ChangeKind = "directory created"
	DirectoryRemoved ChangeKind = "directory removed"
	ModeChanged      ChangeKind = "mode"  // new permissions, and maybe new times
	TimesChanged     ChangeKind = "times" // only new times
)

// Change is a change of one file or directory that a call makes.
type Change struct {
	Path   string // absolute path on the host after the change; for a removal: the removed path
	From   string // absolute path before the change; only for Renamed
	Kind   ChangeKind
	Before *Version // nil: the file did not exist; for Renamed the version at From
	After  *Version // nil: the file does not exist any more
	// InRepository is set if the file may belong to a git repository in a directory of any
	// name. git may then run the file, or a program that the file names. It is only set if a
	// process of a command makes the change: a tool itself is refused it.
	InRepository bool
}

// OldPath returns the path before the change.
func (c Change) OldPath() string { return cmp.Or(c.From, c.Path) }

// Version is a file or directory before or after a change.
type Version struct {
	Size    int64       // bytes of a regular file; ignore it for anything else
	Mode    fs.FileMode // type and permissions
	ModTime *time.Time  // time of modification that the call has set; nil: not reported, and always in Before
	Target  string      // target of a symbolic link; empty for anything else, or if it is unknown
	// LinkCount is the number of names of the file on the host, only in Before; 0 if it has
	// only one. The names that are not changed keep the old content.
	LinkCount uint64
	HardLink  string // absolute path of another new name of the same file, only in After; empty: none
	Encoding  string // encoding that the call gives for text that is not UTF-8; empty: none
	// Open opens the content of a regular file. It fails after the end of the change set, and
	// if the host has another file there by now.
	Open func() (io.ReadCloser, error)
}

// IsFile reports whether it is a regular file; false for nil.
func (v *Version) IsFile() bool { return v != nil && v.Mode.IsRegular() }

// ErrTooLong is the error of [Version.Content] for more bytes than its limit.
var ErrTooLong = errors.New("it is too long")

// Content returns the content. The error is ErrTooLong for more than limit bytes, and
// [fs.ErrNotExist] for nil and what is no regular file.
func (v *Version) Content(limit int64) ([]byte, error) {
	switch {
	case !v.IsFile():
		return nil, fs.ErrNotExist
	case v.Size > limit:
		return nil, ErrTooLong
	}
	r, err := v.Open()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(int(v.Size) + bytes.MinRead)
	_, err = b.ReadFrom(io.LimitReader(r, limit+1))
	if err = errors.Join(err, r.Close()); err == nil && int64(b.Len()) > limit {
		err = ErrTooLong
	}
	return b.Bytes(), err
}

// SHA256 reads the content completely, and returns its digest.
func (v *Version) SHA256() (sum [sha256.Size]byte, err error) {
	r, err := v.Open()
	if err != nil {
		return sum, err
	}
	h := sha256.New()
	_, err = io.Copy(h, r)
	return [sha256.Size]byte(h.Sum(nil)), errors.Join(err, r.Close())
}

// IsProgram reports whether the content begins like an executable for Linux, macOS or Windows. It
// does not if it cannot be read.
func (v *Version) IsProgram() bool {
	if !v.Mode.IsRegular() || v.Open == nil {
		return false
	}
	r, err := v.Open()
	if err != nil {
		return false
	}
	begin := make([]byte, 4)
	n, _ := io.ReadFull(r, begin)
	_ = r.Close()
	return slices.ContainsFunc([]string{"\x7fELF", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe", "MZ"}, func(p string) bool { return strings.HasPrefix(string(begin[:n]), p) })
}
