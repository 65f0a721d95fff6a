package preview1

import (
	"strings"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

// absPath returns the absolute name of a path below a directory. dir is the index of the
// parameter with the descriptor, and i the index of the path's pointer, before its length.
// need is the right that the descriptor needs.
func (g guest) absPath(dir, i int, need rights) (string, wasi.Errno) {
	d, errno := g.w.checkedFD(g.u32(dir), directoryOnly, need)
	if errno != 0 {
		return "", errno
	}
	p, errno := g.path(i)
	if errno != 0 {
		return "", errno
	}
	if d.preopen == cwdPreopenName && strings.HasPrefix(p, "/") {
		return wasi.JoinBelow(rootPreopenName, "."+p)
	}
	return wasi.JoinBelow(d.name, p)
}

// pathFunc returns a function of WASI whose only parameters are a name, and which calls do.
func pathFunc(need rights, do func(*wasi.FS, string) wasi.Errno) func(guest) wasi.Errno {
	return func(g guest) wasi.Errno {
		name, errno := g.absPath(0, 1, need)
		if errno != 0 {
			return errno
		}
		return do(g.w.opts.FS, name)
	}
}

// pathAndFollow decodes the descriptor, follow flag and path in the parameters 0 to 3.
func (g guest) pathAndFollow(need rights) (name string, follow bool, errno wasi.Errno) {
	if name, errno = g.absPath(0, 2, need); errno == 0 {
		follow, errno = g.followFlag(1)
	}
	return name, follow, errno
}

// followFlag reports whether parameter i asks to follow a symbolic link at the name's end.
func (g guest) followFlag(i int) (bool, wasi.Errno) {
	if f := g.u32(i); f > 1 {
		return false, wasi.EINVAL
	}
	return g.u32(i) == 1, 0
}

func pathFilestatGet(g guest) wasi.Errno {
	name, follow, errno := g.pathAndFollow(rightPathFilestatGet)
	if errno != 0 {
		return errno
	}
	out, errno := g.result(4, g.e.filestatBytes)
	if errno != 0 {
		return errno
	}
	find := g.w.opts.FS.Lstat
	if follow {
		find = g.w.opts.FS.Stat
	}
	st, errno := find(name)
	if errno != 0 {
		return errno
	}
	g.e.putFilestat(out, st)
	return 0
}

func pathFilestatSetTimes(g guest) wasi.Errno {
	name, follow, errno := g.pathAndFollow(rightPathFilestatSetTimes)
	if errno != 0 {
		return errno
	}
	atim, mtim, errno := g.times(4)
	if errno != 0 {
		return errno
	}
	return g.w.opts.FS.SetTimes(name, follow, atim, mtim)
}

func pathLink(g guest) wasi.Errno {
	from, errno := g.absPath(0, 2, rightPathLinkSource)
	if errno != 0 {
		return errno
	}
	to, errno := g.absPath(4, 5, rightPathLinkTarget)
	if errno != 0 {
		return errno
	}
	if _, errno := g.followFlag(1); errno != 0 {
		return errno
	}
	return g.w.opts.FS.Link(from, to)
}

const (
	openCreate = 1 << iota
	openDirectory
	openExclusive
	openTruncate
)

func pathOpen(g guest) wasi.Errno {
	oflags, fl := g.u32(4), g.u32(7)
	need := rightPathOpen
	if oflags&openCreate != 0 {
		need |= rightPathCreateFile
	}
	name, follow, errno := g.pathAndFollow(need)
	switch {
	case errno != 0:
		return errno
	case oflags >= openTruncate<<1, fl&^uint32(allFlags) != 0, oflags&openCreate != 0 && oflags&openDirectory != 0:
		return wasi.EINVAL
	}
	// Bits without a meaning are not granted, as they apply to no file.
	dir := g.w.fds[g.u32(0)]
	d := &descriptor{base: rights(g.u64(5)) & allRights, inheriting: rights(g.u64(6)) & allRights, flags: fdflags(fl)}
	if d.base&^dir.inheriting != 0 || d.inheriting&^dir.inheriting != 0 {
		return wasi.ENOTCAPABLE
	}
	if oflags&openTruncate != 0 && dir.checkRights(rightPathFilestatSetSize) != 0 && !dir.mayTruncate(d) {
		return wasi.ENOTCAPABLE
	}
	out, errno := g.result(8, 4)
	if errno != 0 {
		return errno
	}
	h, errno := g.w.opts.FS.Open(name, d.openFlags(oflags, follow))
	if errno != 0 {
		return errno
	}
	switch h := h.(type) {
	case *wasi.File:
		d.kind, d.file = regular, h
		d.base &= fileRights
	case *wasi.Dir:
		d.kind, d.dir, d.name = directory, h, h.Name()
		d.base &= directoryRights
	}
	le.PutUint32(out, g.w.add(d))
	return 0
}

// mayTruncate reports whether opening a file may truncate it although the directory d has no
// right to truncate: the file is opened for writing, and d passes on the rights to write and
// to change the size, so that the guest could truncate the file anyway. os.Root of the Go
// toolchain requests no right to truncate when it opens a directory.
func (d *descriptor) mayTruncate(file *descriptor) bool {
	const inherited = rightFDWrite | rightFDFilestatSetSize
	return file.base&rightFDWrite != 0 && d.inheriting&inherited == inherited
}

// openFlags returns the flags of package wasi for opening a file with d's rights and flags.
func (d *descriptor) openFlags(oflags uint32, follow bool) wasi.Flag {
	how := wasi.ReadOnly
	switch {
	case d.base&rightFDWrite != 0 && d.base&rightFDRead != 0:
		how = wasi.ReadWrite
	case d.base&rightFDWrite != 0:
		how = wasi.WriteOnly
	}
	for _, f := range []struct {
		set bool
		how wasi.Flag
	}{
		{oflags&openCreate != 0, wasi.Create},
		{oflags&openDirectory != 0, wasi.DirectoryOnly},
		{oflags&openExclusive != 0, wasi.Exclusive},
		{oflags&openTruncate != 0, wasi.Truncate},
		{d.flags&flagAppend != 0, wasi.Append},
		{!follow, wasi.NoFollow},
	} {
		if f.set {
			how |= f.how
		}
	}
	return how
}

func pathReadlink(g guest) wasi.Errno {
	name, errno := g.absPath(0, 1, rightPathReadlink)
	if errno != 0 {
		return errno
	}
	out, errno := g.result(3, uint64(g.u32(4)))
	if errno != 0 {
		return errno
	}
	size, errno := g.result(5, 4)
	if errno != 0 {
		return errno
	}
	target, errno := g.w.opts.FS.Readlink(name)
	if errno != 0 {
		return errno
	}
	le.PutUint32(size, uint32(copy(out, target)))
	return 0
}

func pathRename(g guest) wasi.Errno {
	from, errno := g.absPath(0, 1, rightPathRenameSource)
	if errno != 0 {
		return errno
	}
	to, errno := g.absPath(3, 4, rightPathRenameTarget)
	if errno != 0 {
		return errno
	}
	return g.w.opts.FS.Rename(from, to)
}

func pathSymlink(g guest) wasi.Errno {
	target, errno := g.path(0)
	if errno != 0 {
		return errno
	}
	name, errno := g.absPath(2, 3, rightPathSymlink)
	if errno != 0 {
		return errno
	}
	return g.w.opts.FS.Symlink(target, name)
}
