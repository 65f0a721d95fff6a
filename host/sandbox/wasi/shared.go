package wasi

import (
	"io"
	"iter"
	"os"
	"path"
	"strings"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// Content is the content of an open regular file, for a part of the host that reads it for the
// guest. Any goroutine may read until Close; the reads are not charged to the guest.
type Content interface {
	io.ReaderAt
	Size() int64 // size in bytes at the time of opening
	Close()      // further calls do nothing
}

// OpenContent opens a regular file for reading only. A directory is EISDIR.
func (f *FS) OpenContent(name string) (Content, Errno) {
	h, errno := f.Open(name, ReadOnly)
	if errno != 0 {
		return nil, errno
	}
	file, ok := h.(*File)
	if !ok {
		h.Close()
		return nil, EISDIR
	}
	return fileContent{file}, 0
}

// Contents opens files one after the other, like OpenContent; the caller must close them. A
// [View] does it faster: it looks up a directory once for all files in it that follow one another.
func (f *FS) Contents(names []string) iter.Seq2[Content, Errno] {
	return func(yield func(Content, Errno) bool) {
		for _, name := range names {
			if !yield(f.OpenContent(name)) {
				return
			}
		}
	}
}

type fileContent struct{ *File }

func (c fileContent) ReadAt(p []byte, off int64) (int, error) { return c.backing.ReadAt(p, off) }
func (c fileContent) Size() int64                             { return c.size }

// View is a second way to read the files of an FS, for one other goroutine. It may be
// used while the guest uses the FS.
type View struct {
	fs     *FS // shares the mounts of parent
	parent *FS
}

// View returns a view, which must be closed before f. It can have at most maxOpen files open
// at the same time, and at most half of the number that f may still open: these are taken from
// f, so that the limits of the two do not depend on each other. fuel is called with the prices
// of the view's operations; it must not be nil.
//
// ok is false if f is closed, or has a stage, which serves one goroutine only.
func (f *FS) View(maxOpen int, fuel func(units uint64)) (_ *View, ok bool) {
	if f.stage != nil {
		return nil, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, false
	}
	limits := f.limits
	limits.Charge = fuel
	limits.MaxOpenFiles = min(maxOpen, (f.limits.MaxOpenFiles-f.openCount+1)/2)
	f.openCount += limits.MaxOpenFiles
	return &View{&FS{mounts: f.mounts, tree: f.tree, limits: limits, readableSpecial: f.readableSpecial, refusals: f.refusals, dirCache: &dirCache{}}, f}, true
}

// Close ends the view. It must be called once, after everything that the view opened has
// been closed: unlike an FS, a view does not track its files.
func (v *View) Close() {
	v.fs.dirCache.close()
	v.parent.mu.Lock()
	defer v.parent.mu.Unlock()
	v.parent.openCount -= v.fs.limits.MaxOpenFiles
}

// Contents opens files one after the other, like [FS.Contents].
func (v *View) Contents(names []string) iter.Seq2[Content, Errno] {
	return func(yield func(Content, Errno) bool) {
		v.fs.dirCache.beginRow()
		var p place
		defer func() { p.close() }()
		for _, name := range names {
			errno := Errno(0)
			if !v.fs.reusePlace(&p, name) {
				p.close()
				p, errno = v.fs.resolve(name, openDirectly)
			}
			var c Content
			if errno == 0 {
				c, errno = v.openContent(&p)
			}
			if !yield(c, errno) {
				return
			}
		}
	}
}

// reusePlace moves p to a name in the same directory without another look-up, and reports
// whether it did. It does so only if p is unexamined, so that the fields of p say nothing
// about the old name.
func (f *FS) reusePlace(p *place, name string) bool {
	dir, last := path.Split(name)
	if !p.unexamined || p.slash || strings.Contains(name, `"`) || dir != p.shown[:strings.LastIndexByte(p.shown, '/')+1] {
		return false
	}
	if !isName(last) || len(name) > MaxPath || isHiddenName(p.trails, last) {
		return false
	}
	p.name, p.shown = last, name
	rel, _ := relativeTo(p.m.guest, name)
	f.limits.Charge(costPath)
	f.chargeWalk(p.steps, rel)
	return true
}

func (v *View) openContent(p *place) (_ Content, errno Errno) {
	if p.m == nil || p.slash {
		return nil, EISDIR
	}
	if errno := v.fs.reserve(); errno != 0 {
		return nil, errno
	}
	c := &viewContent{view: v}
	c.Content, c.size, errno = p.openContent()
	if errno == ELOOP && p.needsNoFollow() {
		if errno = v.fs.walkAgain(p, followLink); errno == 0 {
			c.Content, c.size, errno = p.openContent()
		}
	}
	if errno == 0 {
		if errno = v.fs.checkRead(p); errno != 0 {
			_ = c.Content.Close()
		}
	}
	if errno != 0 {
		v.fs.release(nil)
		return nil, errno
	}
	return c, 0
}

// needsNoFollow reports whether the file at the place was not looked up, so that it must be
// opened without following a link.
func (p *place) needsNoFollow() bool { return p.unexamined || !p.isWalked() }

// openContent opens a regular file for reading and returns its size in bytes.
func (p *place) openContent() (rootedfs.Content, int64, Errno) {
	dir, ok := p.dir.(rootedfs.ContentRoot)
	if !ok || !p.needsNoFollow() {
		file, fi, errno := p.openExisting(os.O_RDONLY)
		if errno == 0 && fi.IsDir() {
			_ = file.Close()
			errno = EISDIR
		}
		if errno != 0 {
			return nil, 0, errno
		}
		return file, fi.Size(), 0
	}
	c, fi, err := dir.OpenContent(p.name)
	if err != nil {
		return nil, 0, errnoOf(err)
	}
	if p.m.guard.hides(fi) {
		_ = c.Close()
		return nil, 0, errOutside
	}
	return c, fi.Size(), 0
}

type viewContent struct {
	rootedfs.Content
	view   *View
	size   int64
	closed bool
}

func (c *viewContent) Size() int64 { return c.size }

func (c *viewContent) Close() {
	if !c.closed {
		c.closed = true
		c.view.fs.release(nil)
		_ = c.Content.Close()
	}
}
