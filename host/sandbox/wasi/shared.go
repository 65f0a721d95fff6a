package wasi

import (
	"io"
	"iter"
	"os"
	"path"
	"strings"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// Content is the content of a regular file that is open, for a part of the host
// that reads it for the guest. Any goroutine may read, as long as it is not
// closed; the guest pays for nothing of that yet.
type Content interface {
	io.ReaderAt
	// Size is how large it was when it was opened.
	Size() int64
	// Close may be called more than once.
	Close()
}

// OpenContent is Open for what is only read, and is a file.
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

// Contents opens files one after the other, as OpenContent does. Who goes on to
// the next one soon has a directory looked up once for all files in it that
// follow one another.
func (f *FS) Contents(names []string) iter.Seq2[Content, Errno] {
	return func(yield func(Content, Errno) bool) {
		for _, name := range names {
			if !yield(f.OpenContent(name)) {
				return
			}
		}
	}
}

// fileContent is what a file of the guest's holds.
type fileContent struct{ *File }

func (c fileContent) ReadAt(p []byte, off int64) (int, error) { return c.backing.ReadAt(p, off) }
func (c fileContent) Size() int64                             { return c.size }

// View is another way to read the files of an FS, for one other goroutine. It
// may be used while the guest uses the FS.
type View struct {
	fs     *FS // with the same mounts
	parent *FS
}

// View returns a view, which is to be closed before f is. It can have as many
// files open at the same time as it is given, at most maxOpen and at most half
// of what f may still open: these are taken from f, so that what one of the two
// can open does not depend on the other. What it costs goes to fuel.
//
// There is none if f has a stage, which serves one goroutine.
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

// Close ends the view, once. All that it opened is closed before: unlike an FS
// it knows of none.
func (v *View) Close() {
	v.fs.dirCache.close()
	v.parent.mu.Lock()
	defer v.parent.mu.Unlock()
	v.parent.openCount -= v.fs.limits.MaxOpenFiles
}

// Contents is [FS.Contents].
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

// reusePlace makes p the place of a name, if that is all it takes: the directory is
// the one that p is in, and what has the name is not looked at.
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

// needsNoFollow reports whether what is at the place was not looked at, and is to be
// opened without following a link.
func (p *place) needsNoFollow() bool { return p.unexamined || !p.isWalked() }

// openContent opens a regular file.
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

// viewContent is the content of a file that was opened through a view.
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
