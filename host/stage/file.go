package stage

import (
	"os"
	"sync/atomic"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// File is an open file of a tree, for one goroutine at a time. Any goroutine may call Close.
type File struct {
	tree *Tree
	n    *Node
	base *os.File // the file of the host; nil if there is none

	closed atomic.Bool
}

// OpenFile opens a regular file with the flags of [os.OpenFile], and returns its state. A file
// with several hard links is EACCES if the flags allow a change. O_CREATE and O_APPEND have no
// other effect, and O_EXCL has none. The File itself does not refuse a read or write that the
// flags exclude. The caller must Release and Close the file.
func (tree *Tree) OpenFile(n *Node, flag int) (*File, Info, error) {
	access := flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR)
	change := access != os.O_RDONLY || flag&(os.O_CREATE|os.O_TRUNC|os.O_APPEND) != 0
	if change && n.stale {
		return nil, Info{}, errReplaced
	}
	f, info := &File{tree: tree, n: n}, Info{Node: n}
	if n.origin != nil {
		var err error
		if f.base, info.Live, err = tree.openOrigin(n, change, access != os.O_RDONLY || flag&os.O_TRUNC != 0); err != nil {
			return nil, Info{}, err
		}
		if !n.pinned {
			n.origin.info = info.Live
		}
	}
	n.pin()
	n.openedToRead = n.openedToRead || access != os.O_WRONLY
	n.openedToWrite = n.openedToWrite || access != os.O_RDONLY
	n.opens++
	if flag&os.O_TRUNC != 0 && info.Size() > 0 {
		if err := f.Truncate(0); err != nil {
			f.Release()
			_ = f.Close()
			return nil, Info{}, err
		}
	}
	return f, info, nil
}

// openOrigin opens the origin of a file for reading. If change is set, it refuses a file with
// several hard links. If write is set, it checks that the user may write the file.
func (tree *Tree) openOrigin(n *Node, change, write bool) (*os.File, os.FileInfo, error) {
	cur := tree.Cursor()
	defer cur.Close()
	file, fi, err := cur.open(n)
	if err != nil {
		return nil, nil, err
	}
	if change {
		err = rootedfs.RefuseHardLinks(file, fi)
	}
	if err == nil && write {
		err = rootedfs.CheckWritable(cur.root, n.origin.name)
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, fi, nil
}

func (f *File) ended() bool { return f.closed.Load() || f.tree.set.Ended() }

// live returns the present state of the host's file; nil if there is none. After the end of
// the file or its set the error is [os.ErrClosed].
func (f *File) live() (os.FileInfo, error) {
	if f.ended() {
		return nil, os.ErrClosed
	}
	if f.base == nil {
		return nil, nil
	}
	return f.base.Stat()
}

// Stat returns an [Info] of the file.
func (f *File) Stat() (os.FileInfo, error) {
	live, err := f.live()
	return Info{f.n, live}, err
}

// ReadAt implements [io.ReaderAt].
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if f.ended() {
		return 0, os.ErrClosed
	}
	return contentReader{f.n.data, f.base}.ReadAt(p, off)
}

// beginChange prepares the node for a change of its content, and updates its times.
func (f *File) beginChange() error {
	live, err := f.live()
	if err != nil {
		return err
	}
	if f.n.data == nil {
		if f.n.oldDigest, err = f.n.digest(f.base, live); err != nil {
			return err
		}
		f.n.data = newContent(f.tree.set.arena, live.Size())
	}
	f.n.touch(live)
	return nil
}

// WriteAt implements [io.WriterAt].
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	if err := f.beginChange(); err != nil {
		return 0, err
	}
	return f.n.data.writeAt(f.base, p, off)
}

// Truncate changes the size to a number of bytes. A larger file ends with zeros.
func (f *File) Truncate(size int64) error {
	if err := f.beginChange(); err != nil {
		return err
	}
	return f.n.data.truncate(size)
}

// SetTimes sets the times, see [Tree.SetTimes]. info is a result of Stat.
func (f *File) SetTimes(info Info, atim, mtim int64) error {
	if f.base != nil {
		if err := rootedfs.RefuseHardLinks(f.base, info.Live); err != nil {
			return err
		}
	}
	f.n.setTimes(info.Live, atim, mtim)
	return nil
}

// Release gives up the file. Its user calls it exactly once, before or after Close. The
// content of a removed file is freed when its last open File is released.
func (f *File) Release() {
	if f.n.opens--; f.n.opens == 0 && f.n.gone && f.n.data != nil {
		f.n.data.free()
	}
}

// Close closes the file, also while in use. Later reads and writes fail with [os.ErrClosed].
func (f *File) Close() error {
	f.closed.Store(true)
	if f.base == nil {
		return nil
	}
	return f.base.Close()
}
