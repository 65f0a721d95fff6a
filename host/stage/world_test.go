//go:build unix

package stage

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stockade-dev/stockade/host/internal/hosttest"
	"github.com/stockade-dev/stockade/host/rootedfs"
)

const canary = hosttest.Canary

// world is a directory of the host with parts that are staged.
type world struct{ *hosttest.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{hosttest.New(t)}
}

// temps returns the temporary names of commits in a directory.
func (w *world) temps(dir string) []string {
	w.T.Helper()
	names, err := filepath.Glob(w.Path(dir + "/.stockade-*.tmp"))
	if err != nil {
		w.T.Fatal(err)
	}
	return names
}

// open returns an editor of the staged workspace, and its set.
func (w *world) open(opts *Options) (*editor, *Set) {
	w.T.Helper()
	return w.openDir(opts, "ws")
}

func (w *world) openDir(opts *Options, dir string) (*editor, *Set) {
	w.T.Helper()
	s, err := New(opts)
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() { s.Drop() })
	root, info, err := rootedfs.Open(w.Path(dir))
	if err != nil {
		w.T.Fatal(err)
	}
	defer root.Close()
	tree, err := s.Add(root, w.Path(dir), info)
	if err != nil {
		w.T.Fatal(err)
	}
	return &editor{w, tree, dir}, s
}

// editor changes a tree. It takes the same names as the world, and follows no links.
type editor struct {
	w    *world
	tree *Tree
	dir  string
}

// at looks up a name. It returns the directory, the last part of the name, the node (nil if
// the name is free), and the present state of the origin.
func (e *editor) at(name string) (dir *Node, last string, n *Node, live os.FileInfo, _ error) {
	cur := e.tree.Cursor()
	defer cur.Close()
	n, parts := e.tree.Top(), strings.Split(name, "/")
	if parts[0] != e.dir {
		e.w.T.Fatalf("%s is not in %s", name, e.dir)
	}
	if len(parts) == 1 {
		return nil, "", n, nil, nil
	}
	for _, last = range parts[1:] {
		if n == nil {
			return nil, "", nil, nil, syscall.ENOENT
		}
		if !n.Mode().IsDir() {
			return nil, "", nil, nil, syscall.ENOTDIR
		}
		dir = n
		var err error
		if n, live, err = cur.Child(dir, last); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, "", nil, nil, err
		}
	}
	return dir, last, n, live, nil
}

func (e *editor) mkdir(name string) error {
	dir, last, n, _, err := e.at(name)
	if err == nil && n != nil {
		err = syscall.EEXIST
	}
	if err == nil {
		_, err = e.tree.Create(dir, last, fs.ModeDir|0o777)
	}
	return err
}

func (e *editor) remove(name string) error {
	_, _, n, _, err := e.at(name)
	if err == nil && n == nil {
		err = syscall.ENOENT
	}
	if err != nil {
		return err
	}
	return e.tree.Remove(n)
}

func (e *editor) rename(from, to string) error {
	_, _, n, _, err := e.at(from)
	dir, last, over, _, toErr := e.at(to)
	if err == nil && n == nil {
		err = syscall.ENOENT
	}
	if err := errors.Join(err, toErr); err != nil {
		return err
	}
	return e.tree.Rename(n, dir, last, over)
}

func (e *editor) setTimes(name string, atim, mtim int64) error {
	_, _, n, live, err := e.at(name)
	if err != nil {
		return err
	}
	return e.tree.SetTimes(n, live, atim, mtim)
}

// file opens a file with the flags of package os.
func (e *editor) file(name string, flag int) (*editedFile, error) {
	dir, last, n, _, err := e.at(name)
	switch {
	case err != nil:
		return nil, err
	case n == nil && flag&os.O_CREATE == 0:
		return nil, syscall.ENOENT
	case n == nil:
		if n, err = e.tree.Create(dir, last, 0o666); err != nil {
			return nil, err
		}
	}
	f, _, err := e.tree.OpenFile(n, flag)
	if err != nil {
		return nil, err
	}
	return &editedFile{File: f}, nil
}

// editedFile writes at its own offset.
type editedFile struct {
	*File
	at int64
}

func (f *editedFile) Write(p []byte) (int, error) {
	n, err := f.WriteAt(p, f.at)
	f.at += int64(n)
	return n, err
}

func (f *editedFile) close() {
	f.Release()
	_ = f.Close()
}

// try opens a file, reads from it, and writes to it if flag permits writing.
func (e *editor) try(name string, flag int) error {
	f, err := e.file(name, flag)
	if err != nil {
		return err
	}
	defer f.close()
	_, _ = f.ReadAt(make([]byte, 512), 0)
	if flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		_, err = f.Write([]byte("overwritten"))
	}
	return err
}

// write makes or overwrites a file.
func (e *editor) write(name, content string) {
	e.w.T.Helper()
	f, err := e.file(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	wantErr(e.w.T, "open "+name, err, nil)
	if err != nil {
		return
	}
	defer f.close()
	_, err = f.Write([]byte(content))
	wantErr(e.w.T, "write "+name, err, nil)
}

// replace writes a file as many programs do: a temporary file beside it, and a rename.
func (e *editor) replace(name, content string) {
	e.w.T.Helper()
	e.write(name+".tmp", content)
	wantErr(e.w.T, "rename", e.rename(name+".tmp", name), nil)
}

// chain makes directories in each other. long is the length of each name in bytes.
func (e *editor) chain(top string, levels, long int) string {
	e.w.T.Helper()
	for i := range levels {
		if i > 0 {
			top = path.Join(top, strings.Repeat("x", long))
		}
		wantErr(e.w.T, "make a directory", e.mkdir(top), nil)
	}
	return top
}

func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
