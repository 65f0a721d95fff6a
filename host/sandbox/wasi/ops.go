package wasi

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

const (
	newFileMode = 0o666
	newDirMode  = 0o777
)

// Flag is a set of options for opening a file.
type Flag uint32

// One of the first three, and any of the others.
const (
	ReadOnly  Flag = 0
	WriteOnly Flag = 1
	ReadWrite Flag = 2

	Append        Flag = 1 << 2 // every write goes to the end
	Create        Flag = 1 << 3 // make the file if there is none
	Exclusive     Flag = 1 << 4 // with Create: the file must not exist
	Truncate      Flag = 1 << 5 // remove the content
	DirectoryOnly Flag = 1 << 6 // anything else is ENOTDIR
	NoFollow      Flag = 1 << 7 // a symbolic link at the end is ELOOP, unless a slash follows

	accessMask Flag = 3
)

// Handle is an open file or directory: a [*File] or a [*Dir].
type Handle interface {
	Stat() (Stat, Errno)
	SetTimes(atim, mtim int64) Errno
	Close()
}

// Open opens a regular file or a directory.
func (f *FS) Open(name string, flag Flag) (_ Handle, errno Errno) {
	access := flag & accessMask
	if access > ReadWrite {
		return nil, EINVAL
	}
	// In WASI truncation and the like need no right to write, but they are changes.
	change := access != 0 || flag&(Create|Truncate|Append) != 0
	exclusive := flag&Create != 0 && flag&Exclusive != 0
	last := followLink
	if flag&NoFollow != 0 || exclusive {
		last = keepUnlessSlash
	}
	p, errno := f.resolve(name, last)
	if errno != 0 {
		return nil, errno
	}
	defer p.close()
	if change {
		if errno := p.checkWritable(); errno != 0 {
			return nil, errno
		}
		if p.slash {
			return nil, EISDIR
		}
		if errno := f.checkChange(&p, false); errno != 0 {
			return nil, errno
		}
	}
	if errno := f.reserve(); errno != 0 {
		return nil, errno
	}
	defer func() {
		if errno != 0 {
			f.release(nil)
		}
	}()
	if p.m == nil {
		return asHandle(f.newDir(&p, nil, nil))
	}

	if p.staged() {
		return f.openStaged(&p, flag, change)
	}
	how := os.O_RDONLY
	switch {
	case access == WriteOnly:
		how = os.O_WRONLY
	case access == ReadWrite || flag&Truncate != 0:
		how = os.O_RDWR
	}
	if flag&NoFollow != 0 && !exclusive && !p.slash && !p.isWalked() {
		if fi, errno := p.lstat(); errno == 0 && fi.Mode().Type() == fs.ModeSymlink {
			return nil, ELOOP
		}
	}
	var host *os.File
	var fi os.FileInfo
	errno = ENOENT
	if !exclusive {
		host, fi, errno = p.openExisting(how)
		if errno == ELOOP && !p.isWalked() {
			if errno = f.walkAgain(&p, last); errno == 0 {
				host, fi, errno = p.openExisting(how)
			}
		}
	}
	if errno == ENOENT && flag&Create != 0 {
		host, fi, errno = f.create(&p, how)
		if errno == EEXIST && !exclusive {
			// Another process made it, or it is a link to nothing. Through such a link
			// nothing is created.
			host, fi, errno = p.openExisting(how)
		}
	}
	if errno != 0 {
		return nil, errno
	}
	defer func() {
		if errno != 0 {
			_ = host.Close()
		}
	}()
	switch {
	case fi.IsDir() && change:
		return nil, EISDIR
	case fi.IsDir():
		return asHandle(f.newDir(&p, host, fi))
	case flag&DirectoryOnly != 0:
		return nil, ENOTDIR
	}
	if readsContent(flag) {
		if errno := f.checkRead(&p); errno != 0 {
			return nil, errno
		}
	}
	if change {
		if err := rootedfs.RefuseHardLinks(host, fi); err != nil {
			return nil, errnoOf(err)
		}
	}
	// Only now is it known which content would be lost.
	size := fi.Size()
	if flag&Truncate != 0 && size > 0 {
		if err := host.Truncate(0); err != nil {
			return nil, errnoOf(err)
		}
		size = 0
	}
	return f.newFile(&p, hostFile{host}, size, flag)
}

// readsContent reports whether a file opened with a flag can be read with its old content.
func readsContent(flag Flag) bool { return flag&accessMask != WriteOnly && flag&Truncate == 0 }

// newFile returns an open file for b, which has size bytes. On error the caller closes b.
func (f *FS) newFile(p *place, b backingFile, size int64, flag Flag) (Handle, Errno) {
	access := flag & accessMask
	file := &File{
		fs: f, m: p.m, backing: b, shown: p.shown, size: size,
		readable: access != WriteOnly,
		writable: access != 0,
	}
	if p.m.write {
		file.forbiddenBy, file.changeForbidden = f.changeForbiddenBy(p, false)
		file.realPath = p.realPath()
	}
	if flag&Append != 0 {
		if errno := file.SetAppend(true); errno != 0 {
			return nil, errno
		}
	}
	if errno := f.track(b); errno != 0 {
		return nil, errno
	}
	return file, 0
}

// asHandle returns a nil Handle on error, instead of one that holds a nil pointer.
func asHandle(d *Dir, errno Errno) (Handle, Errno) {
	if errno != 0 {
		return nil, errno
	}
	return d, 0
}

// create makes a new file. It fails if there is already a file with the name.
func (f *FS) create(p *place, how int) (*os.File, os.FileInfo, Errno) {
	switch {
	case p.lookupErrno != 0:
		return nil, nil, p.lookupErrno
	case p.isWalked() && p.info != nil:
		return nil, nil, EEXIST
	case p.viaLink:
		return nil, nil, ENOENT
	}
	if errno := addWithinLimit(&f.created, 1, f.limits.MaxCreated); errno != 0 {
		return nil, nil, errno
	}
	host, err := p.dir.OpenFile(p.name, how|os.O_CREATE|os.O_EXCL|rootedfs.Nonblock, newFileMode)
	if err != nil {
		f.created--
		return nil, nil, errnoOf(err)
	}
	fi, err := host.Stat()
	if err != nil {
		_ = host.Close()
		return nil, nil, errnoOf(err)
	}
	return host, fi, 0
}

// Stat describes the file behind a name and its symbolic links.
func (f *FS) Stat(name string) (Stat, Errno) { return f.stat(name, followLink) }

// Lstat describes the file with a name, which may be a symbolic link. Before a slash at the end
// of the name a link is followed.
func (f *FS) Lstat(name string) (Stat, Errno) { return f.stat(name, keepUnlessSlash) }

func (f *FS) stat(name string, last linkMode) (Stat, Errno) {
	p, errno := f.resolve(name, last)
	if errno != 0 {
		return Stat{}, errno
	}
	defer p.close()
	if p.m == nil {
		return syntheticStat(p.shown), 0
	}
	var fi os.FileInfo
	if last.follows(p.slash) {
		fi, errno = p.stat()
	} else {
		fi, errno = p.lstat()
	}
	switch {
	case errno != 0:
		return Stat{}, errno
	case p.slash && !fi.IsDir():
		return Stat{}, ENOTDIR
	}
	return p.m.describe(fi, p.shown), 0
}

func (f *FS) Mkdir(name string) Errno {
	p, errno := f.resolveEntry(name)
	defer p.close()
	if errno == errReadOnly && p.m == nil {
		return EEXIST
	}
	if errno != 0 {
		return errno
	}
	if p.name == "." || p.isResolved() && p.info != nil {
		return EEXIST
	}
	if p.lookupErrno != 0 {
		return p.lookupErrno
	}
	if errno := f.checkChange(&p, false); errno != 0 {
		return errno
	}
	if p.staged() {
		_, errno := f.createStaged(&p, fs.ModeDir|newDirMode)
		return errno
	}
	if errno := addWithinLimit(&f.created, 1, f.limits.MaxCreated); errno != 0 {
		return errno
	}
	if err := p.dir.Mkdir(p.name, newDirMode); err != nil {
		f.created--
		return errnoOf(err)
	}
	return 0
}

// SetTimes changes the times of a file or directory, in nanoseconds since 1970;
// [OmitTime] leaves a time unchanged. A symbolic link at the end of the name is followed
// if follow is set or a slash follows; else its own times change.
func (f *FS) SetTimes(name string, follow bool, atim, mtim int64) Errno {
	last := keepUnlessSlash
	if follow {
		last = followLink
	}
	p, errno := f.resolve(name, last)
	if errno != 0 {
		return errno
	}
	defer p.close()
	if errno := p.checkWritable(); errno != 0 {
		return errno
	}
	if errno := f.checkChange(&p, false); errno != 0 {
		return errno
	}
	if p.staged() {
		return p.setStagedTimes(atim, mtim)
	}
	if !follow {
		fi, errno := p.lstat()
		if errno != 0 {
			return errno
		}
		if fi.Mode().Type() == fs.ModeSymlink && !p.slash {
			return p.setLinkTimes(atim, mtim)
		}
	}
	host, errno := p.openForChange()
	if errno != 0 {
		return errno
	}
	defer host.Close()
	return errnoOf(rootedfs.SetTimes(host, atim, mtim))
}

func (p *place) setLinkTimes(atim, mtim int64) Errno {
	dir, name := p.dir, p.name
	if !p.isWalked() && strings.Contains(name, "/") {
		parent, err := dir.OpenRoot(path.Dir(name) + "/.")
		if err != nil {
			return errnoOf(err)
		}
		defer parent.Close()
		dir, name = parent, path.Base(name)
	}
	return errnoOf(rootedfs.SetLinkTimes(dir, name, atim, mtim))
}

// Rename moves a file or directory within a mount. A directory can replace an empty one;
// on some hosts the empty one is removed first, which others can see.
func (f *FS) Rename(from, to string) (out Errno) {
	a, errno := f.resolveEntry(from)
	defer a.close()
	if errno != 0 {
		return errno
	}
	b, errno := f.resolveEntry(to)
	defer b.close()
	if errno != 0 {
		return errno
	}
	switch {
	case a.m != b.m:
		return errOtherMount
	case a.isPinned() || b.isPinned():
		return errOutside
	}
	src, errno := a.lstat()
	if errno != 0 {
		return errno
	}
	if (a.slash || b.slash) && !src.IsDir() {
		return ENOTDIR
	}
	for _, p := range []*place{&a, &b} {
		if errno := f.checkChange(p, src.IsDir()); errno != 0 {
			return errno
		}
	}
	if errno := f.checkMove(&a, src.IsDir()); errno != 0 {
		return errno
	}
	if _, inside := relativeTo(a.shown, b.shown); inside && src.IsDir() && a.shown != b.shown {
		return EINVAL
	}
	dst, errno := b.lstat()
	switch {
	case errno == ENOENT:
	case errno != 0:
		return errno
	case sameFile(src, dst):
		return 0
	case dst.IsDir() && !src.IsDir():
		return EISDIR
	case src.IsDir() && !dst.IsDir():
		return ENOTDIR
	case dst.IsDir() && a.staged():
	case dst.IsDir() && b.hasEntries():
		return ENOTEMPTY
	case dst.IsDir() && b.dir.RenameReplacesEmptyDir():
	case dst.IsDir():
		if err := b.dir.Remove(b.name); err != nil {
			return asNotEmpty(errnoOf(err))
		}
		defer func() {
			if out != 0 { // below itself by way of a link, for one
				_ = b.dir.Mkdir(b.name, dst.Mode().Perm())
			}
		}()
	}
	if b.lookupErrno != 0 {
		return b.lookupErrno // the directory of the new name is missing
	}
	if a.staged() {
		return errnoOf(a.m.tree.Rename(a.node, b.parent, b.name, b.node))
	}
	if dst != nil && dst.Mode().IsRegular() && src.Mode().IsRegular() {
		if errno := a.adoptMode(dst); errno != 0 {
			return errno
		}
	}
	if a.isWalked() && a.dir != b.dir {
		return asNotEmpty(errnoOf(rootedfs.RenameBetween(a.dir, a.name, b.dir, b.name)))
	}
	return asNotEmpty(errnoOf(a.dir.Rename(a.name, b.name)))
}

// hasEntries reports whether a directory has entries; false also if it cannot be read.
func (p *place) hasEntries() bool {
	dir, err := p.dir.Open(p.name + "/.") // not a FIFO that has just taken its place
	if err != nil {
		return false // the rename will fail then
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(1)
	return len(names) > 0
}

// adoptMode gives the file at p the mode of other, the file that it is about to replace, and
// the owner of other if the host may set it. A guest can do neither, and replacing a whole
// file is the safe way to change it.
func (p *place) adoptMode(other os.FileInfo) Errno {
	host, errno := p.openForChange()
	if errno != 0 {
		return errno
	}
	defer host.Close()
	rootedfs.CopyOwner(host, other)
	return errnoOf(host.Chmod(other.Mode().Perm()))
}

// asNotEmpty turns EEXIST into ENOTEMPTY, which guests expect. Hosts may return either
// for a directory that cannot be removed or replaced because it has entries.
func asNotEmpty(errno Errno) Errno {
	if errno == EEXIST {
		return ENOTEMPTY
	}
	return errno
}

// Rmdir removes an empty directory.
func (f *FS) Rmdir(name string) Errno { return f.remove(name, true) }

// Unlink removes a file or a symbolic link.
func (f *FS) Unlink(name string) Errno { return f.remove(name, false) }

func (f *FS) remove(name string, dir bool) Errno {
	p, errno := f.resolveEntry(name)
	defer p.close()
	if errno != 0 {
		return errno
	}
	if p.isPinned() {
		return errOutside
	}
	if errno := f.checkChange(&p, false); errno != 0 {
		return errno
	}
	fi, errno := p.lstat()
	switch {
	case errno != 0:
		return errno
	case dir && !fi.IsDir():
		return ENOTDIR
	case !dir && fi.IsDir():
		return EISDIR
	case !dir && p.slash:
		return ENOTDIR
	}
	if p.staged() {
		return errnoOf(p.m.tree.Remove(p.node))
	}
	return asNotEmpty(errnoOf(p.dir.Remove(p.name)))
}

// Link always fails: the new name would give no access that the old one does not give, but a
// file with two names could be changed through neither.
func (f *FS) Link(from, to string) Errno {
	p, errno := f.resolve(from, keepLink)
	if errno != 0 {
		return errno
	}
	p.close()
	return f.Symlink(from, to)
}

// Symlink always fails: a program that follows a link goes where the link's maker decided, and
// the programs of the host follow it anywhere.
func (f *FS) Symlink(_, name string) Errno {
	p, errno := f.resolveEntry(name)
	defer p.close()
	if errno != 0 {
		return errno
	}
	return EPERM
}

// Readlink returns the target of a symbolic link. A target that is absolute or, as text, leads
// out of the mount is EPERM.
func (f *FS) Readlink(name string) (string, Errno) {
	p, errno := f.resolve(name, keepLink)
	if errno != 0 {
		return "", errno
	}
	defer p.close()
	if p.m == nil {
		return "", EINVAL
	}
	fi, errno := p.lstat()
	switch {
	case errno != 0:
		return "", errno
	case p.slash || fi.Mode().Type() != fs.ModeSymlink:
		return "", EINVAL
	}
	target, errno := p.readlink()
	if errno != 0 {
		return "", errno
	}
	// In a link, as elsewhere on Windows, a drive or a leading backslash makes the target
	// absolute, or nearly so.
	target = filepath.ToSlash(target)
	rel, _ := relativeTo(p.m.guest, p.shown)
	if target == "" || target[0] == '/' || filepath.VolumeName(target) != "" ||
		climbs(path.Dir(rel)+"/"+target) || strings.IndexByte(target, 0) >= 0 {
		return "", errOutside
	}
	return target, 0
}

func (p *place) readlink() (string, Errno) {
	if p.staged() {
		target, err := p.m.tree.Readlink(p.node)
		return target, errnoOf(err)
	}
	target, err := p.dir.Readlink(p.name)
	return target, errnoOf(err)
}
