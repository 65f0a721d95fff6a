package wasi

import (
	"errors"
	"io/fs"
	"os"

	"github.com/stockade-dev/stockade/host/beneath"
)

// openStaged opens a file or directory of a staged mount. The caller has
// reserved it.
func (f *FS) openStaged(p *place, flag Flag, change bool) (_ Handle, errno Errno) {
	l, n, access := p.m.layer, p.node, flag&accessMask
	switch {
	case p.fault != 0:
		return nil, p.fault
	case n != nil && flag&Create != 0 && flag&Exclusive != 0:
		return nil, EEXIST
	case n == nil && (flag&Create == 0 || p.linked):
		return nil, ENOENT
	case n == nil:
		if errno := f.makeRoom(p); errno != 0 {
			return nil, errno
		}
		n = l.add(p.up, p.name, newFileMode&^l.stage.umask)
		n.data = newContent(l.stage.arena, 0)
		p.node, p.info = n, nodeInfo{n, nil}
	case n.mode.Type() == fs.ModeSymlink:
		return nil, ELOOP
	case !n.mode.IsRegular() && !n.mode.IsDir():
		return nil, errKind
	case p.slash && !n.mode.IsDir():
		return nil, ENOTDIR
	case n.mode.IsDir() && change:
		return nil, EISDIR
	case n.stale && change:
		return nil, errReplaced
	}
	cur := l.cursor()
	defer cur.close()
	var host *os.File
	defer func() {
		if errno != 0 && host != nil {
			_ = host.Close()
		}
	}()
	live, _ := p.info.Sys().(nodeInfo)
	if n.mode.IsDir() {
		if n.origin != nil {
			if host, live.live, errno = cur.list(n); errno != 0 {
				return nil, errno
			}
		}
		n.hold()
		return opened(f.newDir(p, host, nodeInfo{n, live.live}))
	}
	if n.origin != nil && reads(flag) && flag&DirectoryOnly == 0 {
		if errno := f.mayRead(p); errno != 0 {
			return nil, errno
		}
	}
	if n.origin != nil {
		if host, live.live, errno = cur.openFile(n, flag, change); errno != 0 {
			return nil, errno
		}
	}
	if flag&DirectoryOnly != 0 {
		return nil, ENOTDIR
	}
	if n.origin != nil && !n.keep {
		n.origin.info = live.live
	}
	n.hold()
	n.read = n.read || access != WriteOnly
	n.write = n.write || access != ReadOnly
	b := &stagedBody{l: l, n: n, base: host}
	if flag&Truncate != 0 && (nodeInfo{n, live.live}).Size() > 0 {
		if err := b.Truncate(0); err != nil {
			return nil, errnoOf(err)
		}
	}
	h, errno := f.newFile(p, b, nodeInfo{n, live.live}.Size(), flag)
	if errno == 0 {
		n.opens++
	}
	return h, errno
}

// makeRoom takes what something new needs.
func (f *FS) makeRoom(p *place) Errno {
	if p.up.vanished(p.name) {
		return errReplaced
	}
	if errno := take(&f.created, 1, f.limits.MaxCreated); errno != 0 {
		return errno
	}
	errno := p.m.layer.fits(p.up, p.name, nil)
	if errno != 0 {
		_ = take(&f.created, -1, f.limits.MaxCreated)
	}
	return errno
}

// vanished reports whether the host has removed what the guest has read under a
// name where there is nothing now.
func (dir *node) vanished(name string) bool {
	n := dir.children[name]
	return n != nil && n.lost()
}

// openFile opens the original of a file to be read, and asks whether it could be
// changed.
func (c *cursor) openFile(n *node, flag Flag, change bool) (*os.File, os.FileInfo, Errno) {
	file, fi, errno := c.open(n, os.O_RDONLY)
	if errno != 0 || !change {
		return file, fi, errno
	}
	if errno = errnoOf(beneath.OneName(file, fi)); errno == 0 && (flag&accessMask != ReadOnly || flag&Truncate != 0) {
		errno = errnoOf(beneath.MayWrite(c.root, n.origin.name))
	}
	if errno != 0 {
		_ = file.Close()
		return nil, nil, errno
	}
	return file, fi, 0
}

// setStagedTimes changes the times of what is at the place.
func (p *place) setStagedTimes(atim, mtim int64) Errno {
	switch {
	case p.fault != 0:
		return p.fault
	case p.node == nil:
		return ENOENT
	case p.slash && !p.node.mode.IsDir():
		return ENOTDIR
	case !p.node.mode.IsRegular() && !p.node.mode.IsDir() && p.node.mode.Type() != fs.ModeSymlink:
		return errKind
	}
	if errno := p.singleStaged(); errno != 0 {
		return errno
	}
	p.node.hold()
	p.node.setTimes(p.live(), atim, mtim)
	return 0
}

// live is what the host says about what is at the place.
func (p *place) live() os.FileInfo {
	if i, ok := p.info.(nodeInfo); ok {
		return i.live
	}
	return nil
}

// singleStaged refuses a file that has other names.
func (p *place) singleStaged() Errno {
	if p.node.origin == nil || !p.node.mode.IsRegular() {
		return 0
	}
	cur := p.m.layer.cursor()
	defer cur.close()
	file, fi, errno := cur.open(p.node, os.O_RDONLY)
	if errno != 0 {
		return errno
	}
	defer file.Close()
	return errnoOf(beneath.OneName(file, fi))
}

// sameFile is [os.SameFile], for nodes too.
func sameFile(a, b os.FileInfo) bool {
	x, ok := a.(nodeInfo)
	y, also := b.(nodeInfo)
	if !ok || !also {
		return beneath.SameFile(a, b)
	}
	return x.n == y.n || x.n.origin != nil && y.n.origin != nil && beneath.SameFile(x.n.origin.info, y.n.origin.info)
}

// rename is the end of [FS.Rename].
func (l *layer) rename(a, b *place) Errno {
	n, dst := a.node, b.node
	if b.fault != 0 {
		return b.fault // its directory is missing
	}
	if dst != nil && dst.mode.IsDir() {
		if empty, errno := l.empty(dst); errno != 0 || !empty {
			return orNotEmpty(errno)
		}
	}
	replaces := dst != nil && dst.mode.IsRegular() && n.mode.IsRegular()
	if replaces {
		if errno := a.singleStaged(); errno != 0 {
			return errno
		}
	}
	switch {
	case b.up.within(n):
		return EINVAL
	case dst != nil && dst.stale || dst == nil && b.up.vanished(b.name):
		return errReplaced
	case a.up.device() != b.up.device():
		return errCrossing
	}
	if errno := l.fits(b.up, b.name, n); errno != 0 {
		return errno
	}
	if n.mode.IsRegular() {
		n.restoreMode(l.stage.umask)
	}
	if replaces {
		if n.mode.Perm() != dst.mode.Perm() {
			n.chmod = true
		}
		n.mode = dst.mode.Perm()
		n.like = dst.like
		if n.like == nil && dst.origin != nil {
			n.like = dst.origin.info
		}
		n.chmod = n.chmod || n.like != nil
	}
	if dst != nil {
		if err := l.note(dst); err != nil {
			return errnoOf(err)
		}
		l.remove(dst)
	}
	l.move(n, b.up, b.name)
	return 0
}

func orNotEmpty(errno Errno) Errno {
	if errno == 0 {
		return ENOTEMPTY
	}
	return errno
}

// removeEmpty is the end of [FS.Rmdir] and [FS.Unlink].
func (l *layer) removeEmpty(n *node) Errno {
	if n.stale {
		return errReplaced
	}
	if n.mode.IsDir() {
		if empty, errno := l.empty(n); errno != 0 || !empty {
			return orNotEmpty(errno)
		}
	}
	if err := l.note(n); err != nil {
		return errnoOf(err)
	}
	l.remove(n)
	return 0
}

// note remembers the content of a file that the guest has read and that is
// about to be lost.
func (l *layer) note(n *node) error {
	if !n.read || n.origin == nil || n.data != nil || n.seen != nil {
		return nil
	}
	cur := l.cursor()
	defer cur.close()
	file, fi, errno := cur.open(n, os.O_RDONLY)
	if errno != 0 {
		return nil // the commit will find that it is not what it was
	}
	sum, err := n.digest(file, fi)
	n.seen = sum
	return errors.Join(err, file.Close())
}
