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

// root opens a directory of the host, once. It is nil if there is none.
func (f *files) root(top string) beneath.Root {
	r, ok := f.roots[top]
	if !ok {
		r, _, _ = beneath.Open(filepath.FromSlash(top))
		f.roots[top] = r
	}
	return r
}

// version is a file below top, or a directory; nil if there is none. No link is
// followed.
func (f *files) version(s side, top, name string) (*tool.Version, error) {
	name = path.Clean(name)
	if c := f.changed[name]; c != nil {
		return c[s], nil
	}
	rel, ok := strings.CutPrefix(name, strings.TrimSuffix(top, "/")+"/")
	if name == top {
		rel, ok = ".", true
	}
	root := f.root(top)
	if !ok || root == nil {
		return nil, nil
	}
	info, err := lstat(root, rel)
	if absent(err) {
		return nil, nil
	} else if err != nil {
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

// lstat is Lstat of a name that leads through no link.
func lstat(root beneath.Root, rel string) (info fs.FileInfo, err error) {
	for i := 0; i <= len(rel); i++ {
		if i < len(rel) && rel[i] != '/' {
			continue
		}
		if info, err = root.Lstat(rel[:i]); err != nil || i < len(rel) && !info.IsDir() {
			return nil, errors.Join(err, fs.ErrNotExist)
		}
	}
	return info, nil
}

func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// maxNames is how many names of a directory are read.
const maxNames = 100_000

// list is the names in a directory, in order.
func (f *files) list(s side, top, dir string) (names []string) {
	if root := f.root(top); root != nil {
		rel := strings.TrimPrefix(dir, strings.TrimSuffix(top, "/")+"/")
		if info, err := lstat(root, rel); err == nil && info.IsDir() {
			if d, err := root.Open(rel); err == nil {
				names, _ = d.Readdirnames(maxNames)
				_ = d.Close()
			}
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
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxWhole))
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
