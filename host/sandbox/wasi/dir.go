package wasi

import (
	"iter"
	"os"
	"path"
	"slices"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/beneath"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/stage"
	"github.com/stockade-dev/stockade/sdk/go/filename"
)

// Dir is an open directory: itself and its parent, the names that lead to
// mounts, then what the host has, if anything. Only one goroutine uses it.
type Dir struct {
	All bool // [Dir.Entry] tells names that are not UTF-8, too

	// Fixed at creation.
	fs      *FS
	shown   string
	ino     uint64
	first   []Dirent // what is listed first
	fixed   int      // so many of them stay; the others are staged
	m       *mount   // nil for a synthetic directory, as are the rest
	held    *held
	real    string        // of a writable mount: without links
	barred  paths.Special // why it must not be changed
	locked  bool          // that it must not
	trails  [][]string    // guarded: the hidden things below
	entries *beneath.Entries
	node    *stage.Node         // staged only
	merged  map[string]struct{} // staged: the names that are listed first

	last   Dirent // the entry read last
	lastAt uint64 // its cookie
	at     uint64 // the cookie of what entries reads next
	closed bool
}

// Dirent is an entry of a directory.
type Dirent struct {
	Name string
	Type FileType
	Ino  uint64
	Next uint64 // the cookie of the entry that follows
}

// held is what an open directory has of the host.
type held struct {
	file *os.File
	root beneath.Root // to look at entries; guarded mounts only
}

func (h *held) Close() error {
	if h.root != nil {
		_ = h.root.Close()
	}
	return h.file.Close()
}

// Cookies below firstCookie are the host's own. Those of the entries that the
// host does not have count from there, and the entry before the host's first
// one is followed by startCookie, because zero is the very first entry. A host
// that itself counts so high is only followed step by step.
const (
	firstCookie = 1 << 63
	startCookie = 1<<64 - 1
)

// maxLeftOut is how many entries are left out in a row.
const maxLeftOut = 64

// newDir opens the directory at a place. It takes over host, which is nil for
// a synthetic directory; the caller closes it on error.
func (f *FS) newDir(p *place, host *os.File, fi os.FileInfo) (*Dir, Errno) {
	d := &Dir{fs: f, shown: p.shown, m: p.m, ino: hashIno(p.shown), node: p.node}
	if p.m != nil && p.m.write {
		d.barred, d.locked = f.barred(p, false)
		d.real = p.real()
	}
	if p.m != nil {
		d.ino = p.m.describe(fi, p.shown).Ino
	}
	// What is above a mount is not the guest's business, so the number of the
	// parent is made up.
	d.first = []Dirent{
		{Name: ".", Type: Directory, Ino: d.ino},
		{Name: "..", Type: Directory, Ino: hashIno(path.Dir(p.shown))},
	}
	for _, name := range f.tree[p.shown] {
		child := join(p.shown, name)
		i := slices.IndexFunc(f.mounts, func(m *mount) bool { return m.guest == child })
		switch {
		case i >= 0:
			st := f.mounts[i].describe(f.mounts[i].info, child)
			d.first = append(d.first, Dirent{Name: name, Type: Directory, Ino: st.Ino})
		case p.m == nil:
			d.first = append(d.first, Dirent{Name: name, Type: Directory, Ino: hashIno(child)})
		}
	}
	d.fixed = len(d.first)
	d.number()
	if host == nil {
		return d, 0
	}
	d.held = &held{file: host}
	d.entries = &beneath.Entries{}
	if p.staged() && p.guarded() {
		if errno := d.guardStaged(p); errno != 0 {
			return nil, errno
		}
	} else if p.guarded() {
		root, fi, err := beneath.OpenDir(p.dir, p.name)
		if err != nil {
			return nil, errnoOf(err)
		}
		d.held.root = root
		if !beneath.SameFile(fi, p.info) {
			_ = root.Close()
			return nil, errReplaced
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

// number gives the entries that are listed first their cookies.
func (d *Dir) number() {
	for i := range d.first {
		d.first[i].Next = firstCookie + uint64(i) + 1
	}
	d.first[len(d.first)-1].Next = startCookie
}

// Name is the absolute name under which the directory was opened, cleaned.
func (d *Dir) Name() string { return d.shown }

// Stat describes the directory.
func (d *Dir) Stat() (Stat, Errno) {
	d.fs.limits.Fuel(costSyscall)
	if d.m == nil {
		return syntheticStat(d.shown), 0
	}
	if d.node != nil {
		return d.stagedStat()
	}
	fi, err := d.held.file.Stat()
	if err != nil {
		return Stat{}, errnoOf(err)
	}
	return d.m.describe(fi, d.shown), 0
}

// Entry returns the entry of a cookie, or false at the end. Zero is the cookie
// of the first entry, and each entry has that of the next one; any other value
// is that of some entry, or of the end, or an error. Going on is cheap, also
// with the entry that was read last; going elsewhere costs no more than the
// host needs for it. Names that are not UTF-8 cannot be passed to WASI and are
// left out, or written as package filename does if All is set.
//
// An entry without a name stands for many that were left out in a row, so that
// the caller gets to think of other things. What is read is what is there at
// the time; an entry that comes and goes meanwhile may be missing.
func (d *Dir) Entry(cookie uint64) (e Dirent, more bool, errno Errno) {
	e, more, errno = d.entry(cookie)
	e.Name = filename.UTF8(e.Name)
	return e, more, errno
}

func (d *Dir) entry(cookie uint64) (_ Dirent, more bool, _ Errno) {
	d.fs.limits.Fuel(costEntry)
	switch {
	case d.closed:
		return Dirent{}, false, EBADF
	case cookie == 0:
		d.forget() // from the start again means as it is now
		d.merge()
		return d.first[0], true, 0
	case d.held != nil && cookie == d.lastAt:
		return d.last, true, 0
	case d.held != nil && cookie == d.at:
	case cookie >= firstCookie && cookie != startCookie:
		if cookie-firstCookie >= uint64(len(d.first)) {
			return Dirent{}, false, EINVAL
		}
		return d.first[cookie-firstCookie], true, 0
	case d.node != nil && d.node.Gone():
		return Dirent{}, false, ENOENT
	case d.held == nil:
		return Dirent{}, false, 0
	}
	if cookie != d.at {
		where := cookie
		if cookie == startCookie {
			where = 0
		}
		d.fs.limits.Fuel(costSyscall)
		passed, err := d.entries.Seek(d.held.file, where)
		d.fs.limits.Fuel(passed * costSyscall)
		if err != nil {
			d.forget()
			return Dirent{}, false, errnoOf(err)
		}
	}
	for left := 0; ; left++ {
		e, more, err := d.entries.Read(d.held.file)
		if err != nil || !more {
			d.forget()
			return Dirent{}, false, errnoOf(err)
		}
		d.fs.limits.Fuel(costEntry)
		if d.shows(e) {
			shown := ""
			if e.Ino == 0 { // its number is made of its name
				shown = join(d.shown, e.Name)
			}
			out := Dirent{Name: e.Name, Type: typeOfMode(e.Type), Ino: d.m.ino(e.Ino, e.Dev, shown), Next: e.Next}
			d.restage(&out)
			d.last, d.lastAt, d.at = out, cookie, e.Next
			return out, true, 0
		}
		if left >= maxLeftOut {
			d.forget()
			d.at = e.Next
			return Dirent{Next: e.Next}, true, 0
		}
	}
}

// forget makes the next entry of the host's be looked for. Zero is the cookie
// of none of them.
func (d *Dir) forget() { d.last, d.lastAt, d.at = Dirent{}, 0, 0 }

func (d *Dir) shows(e beneath.Entry) bool {
	if !d.All && !utf8.ValidString(e.Name) {
		return false
	}
	if d.node != nil && !d.showsStaged(e.Name) {
		return false
	}
	for _, first := range d.first[:d.fixed] {
		if first.Name == e.Name {
			return false // it is something else for this guest
		}
	}
	if d.held.root == nil {
		return true
	}
	if ends(d.trails, e.Name) {
		return false
	}
	d.fs.limits.Fuel(costSyscall)
	if !e.Type.IsDir() && e.Dev == d.m.inodesOf && !d.m.guard.hidesInode(e.Ino) {
		return true
	}
	fi, err := d.held.root.Lstat(e.Name)
	return err == nil && !d.m.guard.hides(fi)
}

// SetTimes changes the times of the directory, see [FS.SetTimes].
func (d *Dir) SetTimes(atim, mtim int64) Errno {
	if d.m == nil || !d.m.write {
		return errReadOnly
	}
	if d.locked {
		return d.fs.refuse(d.m, d.real, d.barred)
	}
	d.fs.limits.Fuel(costSyscall)
	if d.node != nil {
		return d.setStagedTimes(atim, mtim)
	}
	return errnoOf(beneath.SetTimes(d.held.file, atim, mtim))
}

// Dirs opens directories one after the other, and closes each when who lists it
// goes on to the next. What leads to several of them is looked up once.
func (f *FS) Dirs(names []string) iter.Seq2[*Dir, Errno] {
	return func(yield func(*Dir, Errno) bool) {
		defer f.descend()()
		for _, name := range names {
			if !f.withDir(name, yield) {
				return
			}
		}
	}
}

// Lstats is [FS.Lstat] of one name after the other. What leads to several of them is
// looked up once in a row of them.
func (f *FS) Lstats(names []string) iter.Seq2[Stat, Errno] {
	const row = 64
	return func(yield func(Stat, Errno) bool) {
		defer f.descend()()
		for i, name := range names {
			if i%row == 0 {
				f.descent.begin()
			}
			if !yield(f.Lstat(name)) {
				return
			}
		}
	}
}

// descend keeps open what walks go through, until what it returns is called.
func (f *FS) descend() (end func()) {
	f.descent = &descent{}
	return func() {
		f.descent.close()
		f.descent = nil
	}
}

func (f *FS) withDir(name string, do func(*Dir, Errno) bool) bool {
	h, errno := f.Open(name, ReadOnly|DirectoryOnly)
	if errno != 0 {
		return do(nil, errno)
	}
	defer h.Close()
	dir, ok := h.(*Dir)
	if !ok {
		return do(nil, ENOTDIR)
	}
	return do(dir, 0)
}

// Close closes the directory. It may be called more than once.
func (d *Dir) Close() {
	if d.closed {
		return
	}
	d.closed = true
	if d.held == nil {
		d.fs.release(nil)
		return
	}
	d.fs.release(d.held)
	_ = d.held.Close() // FS.Close may have done it
}
