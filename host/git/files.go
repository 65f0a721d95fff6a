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

	"github.com/stockade-dev/stockade/host/rootedfs"
	"github.com/stockade-dev/stockade/host/tool"
)

// side is a state of the files: before or after the change set.
type side int

const (
	before side = iota
	after
)

// files reads files of the host on both sides of a change set. Paths are absolute, with slashes.
type files struct {
	changed   map[string]*[2]*tool.Version // versions of each changed file by path, on each side; nil: none
	changedIn map[string][]string          // base names of changed files, by directory
	roots     map[string]rootedfs.Root     // open directories, by path; nil: cannot be opened
	left      *budget
}

func newFiles(changes []tool.Change, left *budget) *files {
	f := &files{left: left, changed: map[string]*[2]*tool.Version{}, changedIn: map[string][]string{}, roots: map[string]rootedfs.Root{}}
	note := func(s side, name string, v *tool.Version) {
		if name == "" || v == nil {
			return
		}
		name = filepath.ToSlash(name)
		if f.changed[name] == nil {
			f.changed[name] = new([2]*tool.Version)
			f.changedIn[path.Dir(name)] = append(f.changedIn[path.Dir(name)], path.Base(name))
		}
		f.changed[name][s] = v
	}
	for _, c := range changes {
		note(before, c.OldPath(), c.Before)
		note(after, c.Path, c.After)
	}
	return f
}

func (f *files) close() {
	for _, r := range f.roots {
		if r != nil {
			_ = r.Close()
		}
	}
}

// openBelow opens the directory top, and returns the path of a file relative to it. root is
// nil if the file is not below top, or if top cannot be opened. f.close closes root.
func (f *files) openBelow(top, name string) (root rootedfs.Root, rel string) {
	rel, ok := strings.CutPrefix(name, strings.TrimSuffix(top, "/")+"/")
	if !ok {
		return nil, ""
	}
	root, ok = f.roots[top]
	if !ok {
		root, _, _ = rootedfs.Open(filepath.FromSlash(top))
		f.roots[top] = root
	}
	return root, rel
}

// version returns the file, link or directory of a path on a side; nil if there is none. An
// unchanged one is only found below top, if top can be opened. It does not follow links.
func (f *files) version(s side, top, name string) (*tool.Version, error) {
	name = path.Clean(name)
	if c := f.changed[name]; c != nil {
		return c[s], nil
	}
	root, rel := f.openBelow(top, name)
	if root == nil {
		return nil, nil
	}
	info, err := lstat(root, rel)
	if info == nil || err != nil {
		return nil, err
	}
	v := &tool.Version{Mode: info.Mode(), Size: info.Size(), Open: func() (io.ReadCloser, error) {
		root, _, err := rootedfs.Open(filepath.FromSlash(top)) // a version may be opened after f is closed
		if err != nil {
			return nil, err
		}
		defer root.Close()
		return root.OpenFile(rel, os.O_RDONLY|rootedfs.Nonblock, 0)
	}}
	if info.Mode()&fs.ModeSymlink != 0 {
		v.Target, err = root.Readlink(rel)
	}
	return v, err
}

// lstat returns the information about a file. It follows no link, neither at the end of rel nor
// in a directory of it. info and err are nil if there is no such file.
func lstat(root rootedfs.Root, rel string) (info fs.FileInfo, err error) {
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

// maxNames limits the number of names that list reads of a directory; the others are left out.
const maxNames = 100_000

// list returns the names in a directory on a side, sorted. If it cannot be read, only changed
// files are listed.
func (f *files) list(s side, top, dir string) (names []string) {
	if root, rel := f.openBelow(top, dir); root != nil {
		if d, err := root.OpenNoSymlinks(rel, os.O_RDONLY|rootedfs.Nonblock); err == nil {
			names, _ = d.Readdirnames(maxNames)
			_ = d.Close()
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool { return f.changed[dir+"/"+n] != nil })
	for _, n := range f.changedIn[dir] {
		if f.changed[dir+"/"+n][s] != nil {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

// file is an open regular file.
type file struct {
	io.ReaderAt
	io.Closer
	size int64
}

// open opens a regular file for reads at any offset. Without one it returns fs.ErrNotExist.
func open(v *tool.Version) (*file, error) {
	if !v.IsFile() {
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
	data, err := v.Content(maxWhole)
	return &file{bytes.NewReader(data), io.NopCloser(nil), int64(len(data))}, err
}

// maxWhole limits the bytes of a file that is read into memory because it has no ReadAt.
const maxWhole = 64 << 20

var errTooLong = tool.ErrTooLong

// text returns the content of a file below top on a side; "" if there is no such file.
func (f *files) text(s side, top, name string, limit int64) (string, error) {
	v, err := f.version(s, top, name)
	if err != nil || v == nil {
		return "", err
	}
	data, err := v.Content(limit)
	return string(data), err
}
