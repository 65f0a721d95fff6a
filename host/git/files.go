package git

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/stockade-dev/stockade/host/beneath"
	"github.com/stockade-dev/stockade/host/tool"
)

// side is a moment at which files are looked at.
type side int

const (
	before side = iota
	after
)

// files are those of the host, before and after a change set. Paths are absolute, with
// slashes.
type files struct {
	changed map[string]*[2]*tool.Version
	in      map[string][]string // the names that are changed in each directory
	roots   map[string]beneath.Root
	left    *budget
}

func newFiles(changes []tool.Change, left *budget) *files {
	f := &files{left: left, changed: map[string]*[2]*tool.Version{}, in: map[string][]string{}, roots: map[string]beneath.Root{}}
	note := func(s side, name string, v *tool.Version) {
		if name == "" || v == nil {
			return
		}
		name = filepath.ToSlash(name)
		if f.changed[name] == nil {
			f.changed[name] = new([2]*tool.Version)
			f.in[path.Dir(name)] = append(f.in[path.Dir(name)], path.Base(name))
		}
		f.changed[name][s] = v
	}
	for _, c := range changes {
		from := c.Path
		if c.From != "" {
			from = c.From
		}
		note(before, from, c.Before)
		note(after, c.Path, c.After)
	}
	return f
}

// close closes the roots.
func (f *files) close() {
	for _, r := range f.roots {
		if r != nil {
			_ = r.Close()
		}
	}
}

// below is what a file of the host is called in a directory, which is opened. It is nil if
// there is none.
func (f *files) below(top, name string) (root beneath.Root, rel string) {
	rel, ok := strings.CutPrefix(name, strings.TrimSuffix(top, "/")+"/")
	if !ok {
		return nil, ""
	}
	root, ok = f.roots[top]
	if !ok {
		root, _, _ = beneath.Open(filepath.FromSlash(top))
		f.roots[top] = root
	}
	return root, rel
}

// version is a file below top, or a directory; nil if there is none. No link is
// followed.
func (f *files) version(s side, top, name string) (*tool.Version, error) {
	name = path.Clean(name)
	if c := f.changed[name]; c != nil {
		return c[s], nil
	}
	root, rel := f.below(top, name)
	if root == nil {
		return nil, nil
	}
	info, err := lstat(root, rel)
	if info == nil || err != nil {
		return nil, err
	}
	v := &tool.Version{Mode: info.Mode(), Size: info.Size(), Open: func() (io.ReadCloser, error) {
		root, _, err := beneath.Open(filepath.FromSlash(top)) // what was found can be opened later, too
		if err != nil {
			return nil, err
		}
		defer root.Close()
		return root.OpenFile(rel, os.O_RDONLY|beneath.Nonblock, 0)
	}}
	if info.Mode()&fs.ModeSymlink != 0 {
		v.Target, err = root.Readlink(rel)
	}
	return v, err
}

// lstat is Lstat of a name that leads through no link. Of what is not there it is nil.
func lstat(root beneath.Root, rel string) (info fs.FileInfo, err error) {
	for i := 0; i <= len(rel); i++ {
		if i < len(rel) && rel[i] != '/' {
			continue
		}
		info, err = root.Lstat(rel[:i])
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
			return nil, nil
		case err != nil:
			return nil, err
		case i < len(rel) && !info.IsDir():
			return nil, nil
		}
	}
	return info, nil
}

// maxNames is how many names of a directory are read.
const maxNames = 100_000

// list is the names in a directory, in order.
func (f *files) list(s side, top, dir string) (names []string) {
	if root, rel := f.below(top, dir); root != nil {
		if d, err := root.OpenStraight(rel, os.O_RDONLY|beneath.Nonblock); err == nil {
			names, _ = d.Readdirnames(maxNames)
			_ = d.Close()
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool { return f.changed[dir+"/"+n] != nil })
	for _, n := range f.in[dir] {
		if f.changed[dir+"/"+n][s] != nil {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

func regular(v *tool.Version) bool { return v != nil && v.Mode.IsRegular() }

// file is an open regular file.
type file struct {
	io.ReaderAt
	io.Closer
	size int64
}

// open opens a version that can be read at any place.
func open(v *tool.Version) (*file, error) {
	if !regular(v) {
		return nil, fs.ErrNotExist
	}
	r, err := v.Open()
	if err != nil {
		return nil, err
	}
	if at, ok := r.(io.ReaderAt); ok {
		return &file{at, r, v.Size}, nil
	}
	_ = r.Close()
	data, err := content(v, maxWhole)
	return &file{bytes.NewReader(data), io.NopCloser(nil), int64(len(data))}, err
}

// maxWhole is how much is read at once of a file that cannot be read at any place.
const maxWhole = 64 << 20

var errTooLong = errors.New("it is too long")

// content is that of a file with at most so many bytes.
func content(v *tool.Version, most int64) ([]byte, error) {
	if !regular(v) {
		return nil, fs.ErrNotExist
	}
	if v.Size > most {
		return nil, errTooLong
	}
	r, err := v.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = errTooLong
	}
	return data, err
}

// text is the content of a small file below top; empty if there is none.
func (f *files) text(s side, top, name string, most int64) (string, error) {
	v, err := f.version(s, top, name)
	if err != nil || v == nil {
		return "", err
	}
	data, err := content(v, most)
	return string(data), err
}
