package wasi

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"

	"github.com/stockade-dev/stockade/host/rootedfs"
	"github.com/stockade-dev/stockade/host/stage"
)

// stageMounts makes each writable mount a tree of the stage. It fails if a directory has two
// mounts, and one of them is writable.
func (f *FS) stageMounts() error {
	for i, m := range f.mounts {
		for _, other := range f.mounts[:i] {
			// Each of the two would show the changes of the other too late.
			if m.write != other.write && rootedfs.SameFile(m.info, other.info) {
				return fmt.Errorf("stage: %s and %s are one directory", m.host, other.host)
			}
		}
		if !m.write {
			continue
		}
		var err error
		if m.tree, err = f.stage.Add(m.root, m.host, m.info); err != nil {
			return err
		}
	}
	return nil
}

// walkStaged finds the file rel in a staged mount, like [mount.walk] in another one. followLast
// is set if a symbolic link at the end is followed.
func (m *mount) walkStaged(rel, shown string, followLast, slash bool) (p place, steps int, errno Errno) {
	cur, top := m.tree.Cursor(), m.tree.Top()
	defer cur.Close()
	p = place{m: m, dir: m.root, name: ".", shown: shown, slash: slash, parent: top, node: top}
	fi, err := cur.StatOrigin(top)
	if err != nil {
		return place{}, 0, errnoOf(err)
	}
	p.trails = m.guard.trailsIn(fi, nil, "")
	trails := [][][]string{p.trails} // of each directory down to p.parent
	todo := split(rel)
	links := 0
	for ; len(todo) > 0; steps++ {
		if steps > maxSteps {
			return place{}, steps, ELOOP
		}
		name, last := todo[0], len(todo) == 1
		if name == ".." {
			if p.parent == top {
				return place{}, steps, errOutside
			}
			p.parent, todo = p.parent.Parent(), todo[1:]
			trails = trails[:len(trails)-1]
			p.trails = trails[len(trails)-1]
			continue
		}
		if isHiddenName(p.trails, name) {
			return place{}, steps, errOutside
		}
		n, fi, err := cur.Child(p.parent, name)
		if err != nil {
			if errno := errnoOf(err); !last || errno != ENOENT {
				return place{}, steps, errno
			}
			p.name, p.node, p.info = name, nil, nil
			return p, steps, 0
		}
		if o := n.Origin(); o != nil && m.guard.hides(o) {
			return place{}, steps, errOutside
		}
		switch {
		case n.Mode().Type() == fs.ModeSymlink && (!last || followLast):
			if links++; links > m.root.MaxSymlinks() {
				return place{}, steps, ELOOP
			}
			target, err := cur.Readlink(n)
			if err != nil {
				return place{}, steps, errnoOf(err)
			}
			names, errno := p.enterLink(target, last)
			if errno != 0 {
				return place{}, steps, errno
			}
			todo = append(names, todo[1:]...)
			continue
		case last:
			p.name, p.node, p.info = name, n, stage.Info{Node: n, Live: fi}
			return p, steps, 0
		case !n.Mode().IsDir():
			return place{}, steps, ENOTDIR
		}
		p.trails = m.guard.trailsIn(fi, p.trails, name)
		trails = append(trails, p.trails)
		p.parent, todo = n, todo[1:]
	}
	// The mount itself, or a symbolic link that ended in "..".
	fi, err = cur.StatOrigin(p.parent)
	p.name, p.node, p.info = ".", p.parent, stage.Info{Node: p.parent, Live: fi}
	return p, steps, errnoOf(err)
}

// openStaged opens a file or directory of a staged mount. change is set if the content may be
// changed. The caller has called reserve.
func (f *FS) openStaged(p *place, flag Flag, change bool) (Handle, Errno) {
	n := p.node
	switch {
	case p.lookupErrno != 0:
		return nil, p.lookupErrno
	case n != nil && flag&Create != 0 && flag&Exclusive != 0:
		return nil, EEXIST
	case n == nil && (flag&Create == 0 || p.viaLink):
		return nil, ENOENT
	case n == nil:
		var errno Errno
		if n, errno = f.createStaged(p, newFileMode); errno != 0 {
			return nil, errno
		}
		p.node, p.info = n, stage.Info{Node: n}
	case n.Mode().Type() == fs.ModeSymlink:
		return nil, ELOOP
	case !n.Mode().IsRegular() && !n.Mode().IsDir():
		return nil, errNotFileOrDir
	case p.slash && !n.Mode().IsDir():
		return nil, ENOTDIR
	case n.Mode().IsDir() && change:
		return nil, EISDIR
	}
	if n.Mode().IsDir() {
		host, fi, err := p.m.tree.OpenDir(n)
		if err != nil {
			return nil, errnoOf(err)
		}
		d, errno := f.newDir(p, host, stage.Info{Node: n, Live: fi})
		if errno != 0 && host != nil {
			_ = host.Close()
		}
		return asHandle(d, errno)
	}
	if flag&DirectoryOnly != 0 {
		return nil, ENOTDIR
	}
	if n.Origin() != nil && readsContent(flag) {
		if errno := f.checkRead(p); errno != 0 {
			return nil, errno
		}
	}
	file, info, err := p.m.tree.OpenFile(n, osFlag(flag))
	if err != nil {
		return nil, errnoOf(err)
	}
	h, errno := f.newFile(p, stagedFile{file}, info.Size(), flag)
	if errno != 0 {
		file.Release()
		_ = file.Close()
	}
	return h, errno
}

func osFlag(flag Flag) int {
	out := [...]int{ReadOnly: os.O_RDONLY, WriteOnly: os.O_WRONLY, ReadWrite: os.O_RDWR}[flag&accessMask]
	for _, f := range [...]struct {
		has Flag
		add int
	}{{Append, os.O_APPEND}, {Create, os.O_CREATE}, {Truncate, os.O_TRUNC}} {
		if flag&f.has != 0 {
			out |= f.add
		}
	}
	return out
}

// createStaged makes a file or, if mode is that of a directory, a directory.
func (f *FS) createStaged(p *place, mode fs.FileMode) (*stage.Node, Errno) {
	if errno := addWithinLimit(&f.created, 1, f.limits.MaxCreated); errno != 0 {
		return nil, errno
	}
	n, err := p.m.tree.Create(p.parent, p.name, mode)
	if err != nil {
		f.created--
	}
	return n, errnoOf(err)
}

// SetExecutable makes a regular file on a stage executable for all its readers, or for nobody.
// Guests cannot call it: WASI has no modes.
func (f *FS) SetExecutable(name string, executable bool) Errno {
	p, errno := f.resolveEntry(name)
	defer p.close()
	if errno == 0 {
		errno = f.checkChange(&p, false)
	}
	switch {
	case errno != 0:
		return errno
	case !p.staged() || p.node == nil || !p.node.Mode().IsRegular():
		return cmp.Or(p.lookupErrno, errNotFileOrDir)
	case p.info.(stage.Info).Stat().Nlink > 1:
		return EMLINK // the other names would get the mode, too
	}
	mode := p.node.Mode() &^ 0o111
	if executable {
		mode |= mode >> 2 & 0o111
	}
	return errnoOf(p.m.tree.SetMode(p.node, mode))
}

func (p *place) setStagedTimes(atim, mtim int64) Errno {
	switch {
	case p.lookupErrno != 0:
		return p.lookupErrno
	case p.node == nil:
		return ENOENT
	case p.slash && !p.node.Mode().IsDir():
		return ENOTDIR
	case !p.node.Mode().IsRegular() && !p.node.Mode().IsDir() && p.node.Mode().Type() != fs.ModeSymlink:
		return errNotFileOrDir
	}
	return errnoOf(p.m.tree.SetTimes(p.node, p.info.(stage.Info).Live, atim, mtim))
}

// sameFile is [os.SameFile], for nodes too.
func sameFile(a, b os.FileInfo) bool {
	x, ok := a.(stage.Info)
	y, also := b.(stage.Info)
	if !ok || !also {
		return rootedfs.SameFile(a, b)
	}
	return x.Node.Same(y.Node)
}

type stagedFile struct{ *stage.File }

func (b stagedFile) writeAt(p []byte, off int64, _ bool) (int, error) { return b.WriteAt(p, off) }

// Sync does nothing: the commit waits for the disk.
func (b stagedFile) Sync() error { return nil }

func (b stagedFile) setAppend(bool) error { return nil }

func (b stagedFile) setTimes(fi os.FileInfo, atim, mtim int64) Errno {
	return errnoOf(b.SetTimes(fi.(stage.Info), atim, mtim))
}

func (b stagedFile) release() { b.Release() }
