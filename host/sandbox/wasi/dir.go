package wasi

import (
	"io"
	"io/fs"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"
)

// dir is an open directory: the names that lead to mounts, then what the host
// has, if anything. Only one goroutine uses it.
type dir struct {
	sys.DirFile

	// Fixed at creation.
	fs      *FS
	shown   string
	mounts  []sys.Dirent // what is listed first
	m       *mount       // nil for a synthetic directory, as are the rest
	held    *held
	trails  [][]string // guarded: the hidden things below
	entries *entries

	next   int // of mounts
	closed bool
}

// held is what an open directory has of the host.
type held struct {
	file *os.File
	root *os.Root // to look at entries; guarded mounts only
}

func (h *held) Close() error {
	if h.root != nil {
		_ = h.root.Close()
	}
	return h.file.Close()
}

var _ sys.File = (*dir)(nil)

// maxList is how many entries one call of Readdir returns at most. wazero asks
// for as many as could fit into the buffer the guest says it has, and takes
// fewer for the end; so where a guest with an enormous buffer lists an
// enormous directory it gets ERANGE.
const maxList = 1 << 16

// newDir opens the directory at a place. It takes over host, which is nil for
// a synthetic directory; the caller closes it on error.
func (f *FS) newDir(p *place, host *os.File) (sys.File, sys.Errno) {
	d := &dir{fs: f, shown: p.shown, m: p.m}
	for _, name := range f.tree[p.shown] {
		child := join(p.shown, name)
		i := slices.IndexFunc(f.mounts, func(m *mount) bool { return m.guest == child })
		switch {
		case i >= 0:
			st := f.mounts[i].describe(f.mounts[i].info, child)
			d.mounts = append(d.mounts, sys.Dirent{Name: name, Type: fs.ModeDir, Ino: st.Ino})
		case p.m == nil:
			d.mounts = append(d.mounts, sys.Dirent{Name: name, Type: fs.ModeDir, Ino: hashIno(child)})
		}
	}
	if host == nil {
		return d, 0
	}
	d.held = &held{file: host}
	d.entries = &entries{}
	if p.guarded() {
		root, fi, err := openDir(p.dir, p.name)
		if err != nil {
			return nil, errnoOf(err)
		}
		d.held.root = root
		if !os.SameFile(fi, p.info) {
			_ = root.Close()
			return nil, errBusy
		}
		d.trails = p.trails
		if p.name != "." {
			d.trails = p.m.guard.from(fi, p.trails, p.name)
		}
	}
	if errno := f.keep(d.held); errno != 0 {
		return nil, errno
	}
	return d, 0
}

func (d *dir) Stat() (wsys.Stat_t, sys.Errno) {
	if d.m == nil {
		return d.fs.syntheticStat(d.shown), 0
	}
	fi, err := d.held.file.Stat()
	if err != nil {
		return wsys.Stat_t{}, errnoOf(err)
	}
	return d.m.describe(fi, d.shown), 0
}

func (d *dir) Dev() (uint64, sys.Errno) {
	st, errno := d.Stat()
	return st.Dev, errno
}

func (d *dir) Ino() (wsys.Inode, sys.Errno) {
	st, errno := d.Stat()
	return st.Ino, errno
}

// Seek can only go back to the start.
func (d *dir) Seek(off offset, whence int) (int64, sys.Errno) {
	if off != 0 || whence != io.SeekStart {
		return 0, sys.EINVAL
	}
	d.next = 0
	if d.m != nil {
		if _, err := d.held.file.Seek(0, io.SeekStart); err != nil {
			return 0, errnoOf(err)
		}
		*d.entries = entries{}
	}
	return 0, 0
}

// Readdir returns up to n further entries, fewer only at the end. Names that
// are not UTF-8 cannot be passed to WASI and are left out.
func (d *dir) Readdir(n int) (list []sys.Dirent, _ sys.Errno) {
	if d.closed {
		return nil, sys.EBADF
	}
	if n > 0 {
		list = make([]sys.Dirent, 0, min(n, 64))
	}
	for n <= 0 || len(list) < n {
		if d.next < len(d.mounts) {
			list = append(list, d.mounts[d.next])
			d.next++
			continue
		}
		if d.m == nil {
			break
		}
		entry, more, err := d.entries.read(d.held.file)
		if err != nil {
			return list, errnoOf(err)
		}
		if !more {
			break
		}
		d.fs.limits.Fuel(costSyscall)
		if len(list) >= maxList {
			return nil, errNoRoom
		}
		if d.shows(entry) {
			entry.Ino = d.m.ino(entry.Ino, entry.dev, join(d.shown, entry.Name))
			list = append(list, entry.Dirent)
		}
	}
	return list, 0
}

// hostEntry is a directory entry with the numbers of the host.
type hostEntry struct {
	sys.Dirent
	dev uint64
}

func (d *dir) shows(e hostEntry) bool {
	if e.Name == "." || e.Name == ".." || !utf8.ValidString(e.Name) {
		return false
	}
	for _, m := range d.mounts {
		if m.Name == e.Name {
			return false // it is something else for this guest
		}
	}
	if d.held.root == nil {
		return true
	}
	if ends(d.trails, e.Name) {
		return false
	}
	fi, err := d.held.root.Lstat(e.Name)
	return err == nil && !d.m.guard.hides(fi)
}

func (d *dir) Sync() sys.Errno { return 0 }

func (d *dir) Datasync() sys.Errno { return 0 }

func (d *dir) Utimens(atim, mtim int64) sys.Errno {
	if d.m == nil || !d.m.write {
		return errReadOnly
	}
	return errnoOf(setTimes(d.held.file, atim, mtim))
}

func (d *dir) Close() sys.Errno {
	if d.closed {
		return 0
	}
	d.closed = true
	if d.held == nil {
		d.fs.release(nil)
		return 0
	}
	d.fs.release(d.held)
	_ = d.held.Close() // FS.Close may have done it
	return 0
}
