package wasi

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"
)

const (
	newFileMode = 0o666
	newDirMode  = 0o777
)

// OpenFile opens a regular file or a directory. The mode is ignored, see the
// package documentation.
func (f *FS) OpenFile(name string, flag sys.Oflag, _ fs.FileMode) (sys.File, sys.Errno) {
	file, errno := f.openFile(name, flag)
	if errno != 0 {
		if name == "." {
			// wazero opens its preopen under this name when it is first
			// used, and panics on any other error.
			errno = sys.ENOENT
		}
		return nil, errno
	}
	return file, 0
}

func (f *FS) openFile(name string, flag sys.Oflag) (_ sys.File, errno sys.Errno) {
	access := flag & (sys.O_RDWR | sys.O_WRONLY)
	if access == sys.O_RDWR|sys.O_WRONLY {
		return nil, sys.EINVAL
	}
	// Truncation and the like need no right to write in WASI, but are changes.
	change := access != 0 || flag&(sys.O_CREAT|sys.O_TRUNC|sys.O_APPEND) != 0
	exclusive := flag&sys.O_CREAT != 0 && flag&sys.O_EXCL != 0
	last := followLink
	if flag&sys.O_NOFOLLOW != 0 || exclusive {
		last = keepUnless
	}
	p, errno := f.at(name, last)
	if errno != 0 {
		return nil, errno
	}
	defer p.close()
	if change {
		if errno := p.writable(); errno != 0 {
			return nil, errno
		}
		if p.slash {
			return nil, sys.EISDIR
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
		return f.newDir(&p, nil)
	}

	how := os.O_RDONLY
	switch {
	case access == sys.O_WRONLY:
		how = os.O_WRONLY
	case access == sys.O_RDWR || flag&sys.O_TRUNC != 0:
		how = os.O_RDWR
	}
	if flag&sys.O_NOFOLLOW != 0 && !exclusive && !p.slash && !p.guarded() {
		if fi, errno := p.lstat(); errno == 0 && fi.Mode().Type() == fs.ModeSymlink {
			return nil, sys.ELOOP
		}
	}
	var host *os.File
	var fi os.FileInfo
	errno = sys.ENOENT
	if !exclusive {
		host, fi, errno = p.hold(how)
	}
	if errno == sys.ENOENT && flag&sys.O_CREAT != 0 {
		host, fi, errno = f.create(&p, how)
		if errno == sys.EEXIST && !exclusive {
			// Somebody else made it, or it is a link to nothing. Through
			// such a link nothing is created.
			host, fi, errno = p.hold(how)
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
		return nil, sys.EISDIR
	case fi.IsDir():
		return f.newDir(&p, host)
	case flag&sys.O_DIRECTORY != 0:
		return nil, sys.ENOTDIR
	}
	if change {
		if errno := single(host, fi); errno != 0 {
			return nil, errno
		}
	}
	// Only now, when it is known what would be lost.
	size := fi.Size()
	if flag&sys.O_TRUNC != 0 && size > 0 {
		if err := host.Truncate(0); err != nil {
			return nil, errnoOf(err)
		}
		size = 0
	}
	file := &file{
		fs: f, m: p.m, host: host, shown: p.shown, size: size,
		reads:  access != sys.O_WRONLY,
		writes: access != 0,
	}
	if flag&sys.O_APPEND != 0 {
		if errno := file.SetAppend(true); errno != 0 {
			return nil, errno
		}
	}
	if errno := f.keep(host); errno != 0 {
		return nil, errno
	}
	return file, 0
}

// create makes a new file. It fails if there is anything under the name.
func (f *FS) create(p *place, how int) (*os.File, os.FileInfo, sys.Errno) {
	switch {
	case p.guarded() && p.info != nil:
		return nil, nil, sys.EEXIST
	case p.linked:
		return nil, nil, sys.ENOENT
	}
	if errno := take(&f.created, 1, f.limits.MaxCreated); errno != 0 {
		return nil, nil, errno
	}
	host, err := p.dir.OpenFile(p.name, how|os.O_CREATE|os.O_EXCL|openNonblock, newFileMode)
	if err != nil {
		_ = take(&f.created, -1, f.limits.MaxCreated)
		return nil, nil, errnoOf(err)
	}
	fi, err := host.Stat()
	if err != nil {
		_ = host.Close()
		return nil, nil, errnoOf(err)
	}
	return host, fi, 0
}

// Stat describes what is behind a name and its symbolic links.
func (f *FS) Stat(name string) (wsys.Stat_t, sys.Errno) {
	p, errno := f.at(name, followLink)
	if errno != 0 {
		return wsys.Stat_t{}, errno
	}
	defer p.close()
	if p.m == nil {
		return f.syntheticStat(p.shown), 0
	}
	fi, errno := p.stat()
	return p.describe(fi, errno)
}

// Lstat describes what is under a name, which may be a symbolic link.
func (f *FS) Lstat(name string) (wsys.Stat_t, sys.Errno) {
	p, errno := f.at(name, keepUnless)
	if errno != 0 {
		return wsys.Stat_t{}, errno
	}
	defer p.close()
	if p.m == nil {
		return f.syntheticStat(p.shown), 0
	}
	find := p.lstat
	if p.slash {
		find = p.stat
	}
	fi, errno := find()
	return p.describe(fi, errno)
}

func (p *place) describe(fi os.FileInfo, errno sys.Errno) (wsys.Stat_t, sys.Errno) {
	switch {
	case errno != 0:
		return wsys.Stat_t{}, errno
	case p.slash && !fi.IsDir():
		return wsys.Stat_t{}, sys.ENOTDIR
	}
	return p.m.describe(fi, p.shown), 0
}

// Mkdir makes a directory. The mode is ignored, see the package documentation.
func (f *FS) Mkdir(name string, _ fs.FileMode) sys.Errno {
	p, errno := f.entry(name)
	defer p.close()
	if errno == errReadOnly && p.m == nil {
		return sys.EEXIST
	}
	if errno != 0 {
		return errno
	}
	if p.name == "." || p.guarded() && p.info != nil {
		return sys.EEXIST
	}
	if errno := take(&f.created, 1, f.limits.MaxCreated); errno != 0 {
		return errno
	}
	if err := p.dir.Mkdir(p.name, newDirMode); err != nil {
		_ = take(&f.created, -1, f.limits.MaxCreated)
		return errnoOf(err)
	}
	return 0
}

// Chmod changes the permission bits of a file or directory.
func (f *FS) Chmod(name string, mode fs.FileMode) sys.Errno {
	host, errno := f.toChange(name)
	if errno != 0 {
		return errno
	}
	defer host.Close()
	return errnoOf(host.Chmod(mode & fs.ModePerm))
}

// Utimens changes the times of a file or directory.
func (f *FS) Utimens(name string, atim, mtim int64) sys.Errno {
	host, errno := f.toChange(name)
	if errno != 0 {
		return errno
	}
	defer host.Close()
	return errnoOf(setTimes(host, atim, mtim))
}

func (f *FS) toChange(name string) (*os.File, sys.Errno) {
	p, errno := f.at(name, followLink)
	if errno != 0 {
		return nil, errno
	}
	defer p.close()
	return p.holdToChange()
}

// Rename moves a file or directory within a mount. An empty directory can be
// replaced by another; that it is removed first can be seen by the host.
func (f *FS) Rename(from, to string) sys.Errno {
	a, errno := f.entry(from)
	defer a.close()
	if errno != 0 {
		return errno
	}
	b, errno := f.entry(to)
	defer b.close()
	if errno != 0 {
		return errno
	}
	switch {
	case a.m != b.m:
		return errCrossing
	case a.fixed() || b.fixed():
		return errOutside
	}
	src, errno := a.lstat()
	if errno != 0 {
		return errno
	}
	if (a.slash || b.slash) && !src.IsDir() {
		return sys.ENOTDIR
	}
	if _, inside := below(a.shown, b.shown); inside && src.IsDir() && a.shown != b.shown {
		return sys.EINVAL
	}
	dst, errno := b.lstat()
	switch {
	case errno == sys.ENOENT:
	case errno != 0:
		return errno
	case os.SameFile(src, dst):
		return 0
	case dst.IsDir() && !src.IsDir():
		return sys.EISDIR
	case src.IsDir() && !dst.IsDir():
		return sys.ENOTDIR
	case dst.IsDir():
		// os.Root replaces no directory.
		if err := b.dir.Remove(b.name); err != nil {
			return notEmpty(errnoOf(err))
		}
	}
	if dst != nil && dst.Mode().IsRegular() && src.Mode().IsRegular() {
		if errno := a.resemble(dst); errno != 0 {
			return errno
		}
	}
	if a.guarded() && a.dir != b.dir {
		return errnoOf(renameBetween(a.dir, a.name, b.dir, b.name))
	}
	return notEmpty(errnoOf(a.dir.Rename(a.name, b.name)))
}

// resemble gives a file the mode of the one whose place it takes, and its owner
// where the host may set that: a guest can do neither, and replacing a file as
// a whole is how it is changed safely.
func (p *place) resemble(other os.FileInfo) sys.Errno {
	host, errno := p.holdToChange()
	if errno != 0 {
		return errno
	}
	defer host.Close()
	keepOwner(host, other)
	return errnoOf(host.Chmod(other.Mode().Perm()))
}

// notEmpty is what a guest expects instead of EEXIST, which hosts may say of a
// directory that cannot be removed or replaced.
func notEmpty(errno sys.Errno) sys.Errno {
	if errno == sys.EEXIST {
		return sys.ENOTEMPTY
	}
	return errno
}

// Rmdir removes an empty directory.
func (f *FS) Rmdir(name string) sys.Errno { return f.remove(name, true) }

// Unlink removes a file or a symbolic link.
func (f *FS) Unlink(name string) sys.Errno { return f.remove(name, false) }

func (f *FS) remove(name string, dir bool) sys.Errno {
	p, errno := f.entry(name)
	defer p.close()
	if errno != 0 {
		return errno
	}
	if p.fixed() {
		return errOutside
	}
	fi, errno := p.lstat()
	switch {
	case errno != 0:
		return errno
	case dir && !fi.IsDir():
		return sys.ENOTDIR
	case !dir && fi.IsDir():
		return sys.EISDIR
	case !dir && p.slash:
		return sys.ENOTDIR
	}
	return notEmpty(errnoOf(p.dir.Remove(p.name)))
}

// Link is refused: the new name would give no access that the old one does
// not, but a file with two names can be changed through neither.
func (f *FS) Link(from, to string) sys.Errno {
	p, errno := f.at(from, keepLink)
	if errno != 0 {
		return errno
	}
	p.close()
	return f.Symlink(from, to)
}

// Symlink is refused: where a link leads is decided by whoever follows it, and
// the programs of the host follow it anywhere.
func (f *FS) Symlink(_, name string) sys.Errno {
	p, errno := f.entry(name)
	defer p.close()
	if errno != 0 {
		return errno
	}
	return sys.EPERM
}

// Readlink returns the target of a symbolic link if it is relative and, as
// text, stays inside the mount.
func (f *FS) Readlink(name string) (string, sys.Errno) {
	p, errno := f.at(name, keepLink)
	if errno != 0 {
		return "", errno
	}
	defer p.close()
	if p.m == nil {
		return "", sys.EINVAL
	}
	fi, errno := p.lstat()
	switch {
	case errno != 0:
		return "", errno
	case p.slash || fi.Mode().Type() != fs.ModeSymlink:
		return "", sys.EINVAL
	}
	target, err := p.dir.Readlink(p.name)
	if err != nil {
		return "", errnoOf(err)
	}
	// In a link, as elsewhere on Windows, a drive or a leading backslash
	// makes the target absolute, or nearly so.
	target = filepath.ToSlash(target)
	rel, _ := below(p.m.guest, p.shown)
	if target == "" || target[0] == '/' || filepath.VolumeName(target) != "" ||
		climbs(path.Dir(rel)+"/"+target) || strings.IndexByte(target, 0) >= 0 {
		return "", errOutside
	}
	return target, 0
}
