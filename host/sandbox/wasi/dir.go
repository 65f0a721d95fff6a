package wasi

import (
	"iter"
	"os"
	"path"
	"slices"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/rootedfs"
	"github.com/stockade-dev/stockade/host/stage"
	"github.com/stockade-dev/stockade/sdk/go/filename"
)

// Dir is an open directory. It lists itself and its parent, the names that lead to mounts,
// the entries that the stage has added, then the other entries of the host, if any. A Dir may
// be used by one goroutine only.
type Dir struct {
	AllNames bool // [Dir.Entry] also returns names that are not UTF-8, encoded

	// Fixed at creation.
	fs             *FS
	shown          string // absolute name under which the guest opened the directory
	ino            uint64
	leadingEntries []Dirent // entries that are listed first
	numFixed       int      // number of leading entries that stay; the others are staged
	// m is the mount of the directory; nil for a synthetic directory, which has no values in the
	// fields from here to addedNames either.
	m               *mount
	host            *hostDir      // nil: synthetic, or the guest has made the directory on the stage
	realPath        string        // absolute name for the guest, without links; in a writable mount only
	forbiddenBy     paths.Special // special path that forbids changes of the directory
	changeForbidden bool          // whether forbiddenBy applies
	trails          [][]string    // paths from here to hidden files, as lists of names; in a guarded mount
	entries         *rootedfs.DirReader
	node            *stage.Node         // the directory on the stage, in a staged mount only
	addedNames      map[string]struct{} // names of the leading entries that the stage has added

	last       Dirent // the host's entry that was read last; zero: none, or the position was forgotten
	lastCookie uint64 // cookie of that entry
	nextCookie uint64 // cookie of the entry that entries reads next without seeking; zero: none
	closed     bool
}

// Dirent is an entry of a directory.
type Dirent struct {
	Name string
	Type FileType
	Ino  uint64
	Next uint64 // cookie of the next entry
}

// hostDir is the host's side of an open directory.
type hostDir struct {
	file *os.File
	root rootedfs.Root // the directory for look-ups of entries; nil unless [place.isWalked]
}

func (h *hostDir) Close() error {
	if h.root != nil {
		_ = h.root.Close()
	}
	return h.file.Close()
}

// Cookies below firstCookie are the host's own. Leading entries, which the host does not have,
// have cookies from firstCookie on. Behind the last of them comes startCookie, which stands
// for the host's first entry, because zero is the first entry of all. If a host itself uses
// cookies from firstCookie on, its directory can only be read in order.
const (
	firstCookie = 1 << 63
	startCookie = 1<<64 - 1
)

// maxLeftOut limits the entries left out in a row; then an entry without a name is returned.
const maxLeftOut = 64

// newDir returns a Dir for the directory at a place. It takes over host, which is nil for a
// directory that the host does not have; on error the caller closes host.
func (f *FS) newDir(p *place, host *os.File, fi os.FileInfo) (*Dir, Errno) {
	d := &Dir{fs: f, shown: p.shown, m: p.m, ino: hashIno(p.shown), node: p.node}
	if p.m != nil && p.m.write {
		d.forbiddenBy, d.changeForbidden = f.changeForbiddenBy(p, false)
		d.realPath = p.realPath()
	}
	if p.m != nil {
		d.ino = p.m.describe(fi, p.shown).Ino
	}
	// Directories above a mount are hidden from the guest, so the number of the parent is
	// made up.
	d.leadingEntries = []Dirent{
		{Name: ".", Type: Directory, Ino: d.ino},
		{Name: "..", Type: Directory, Ino: hashIno(path.Dir(p.shown))},
	}
	for _, name := range f.tree[p.shown] {
		child := join(p.shown, name)
		i := slices.IndexFunc(f.mounts, func(m *mount) bool { return m.guest == child })
		switch {
		case i >= 0:
			st := f.mounts[i].describe(f.mounts[i].info, child)
			d.leadingEntries = append(d.leadingEntries, Dirent{Name: name, Type: Directory, Ino: st.Ino})
		case p.m == nil:
			d.leadingEntries = append(d.leadingEntries, Dirent{Name: name, Type: Directory, Ino: hashIno(child)})
		}
	}
	d.numFixed = len(d.leadingEntries)
	d.assignCookies()
	if host == nil {
		return d, 0
	}
	d.host = &hostDir{file: host}
	d.entries = &rootedfs.DirReader{}
	if p.staged() && p.isWalked() {
		if errno := d.guardStaged(p); errno != 0 {
			return nil, errno
		}
	} else if p.isWalked() {
		root, fi, err := rootedfs.OpenDir(p.dir, p.name)
		if err != nil {
			return nil, errnoOf(err)
		}
		d.host.root = root
		if !rootedfs.SameFile(fi, p.info) {
			_ = root.Close()
			return nil, errReplaced
		}
		d.trails = p.trails
		if p.name != "." {
			d.trails = p.m.guard.trailsIn(fi, p.trails, p.name)
		}
	}
	if errno := f.track(d.host); errno != 0 {
		return nil, errno
	}
	return d, 0
}

func (d *Dir) assignCookies() {
	for i := range d.leadingEntries {
		d.leadingEntries[i].Next = firstCookie + uint64(i) + 1
	}
	d.leadingEntries[len(d.leadingEntries)-1].Next = startCookie
}

// Name returns the absolute, clean name under which the directory was opened.
func (d *Dir) Name() string { return d.shown }

// Stat describes the directory.
func (d *Dir) Stat() (Stat, Errno) {
	d.fs.limits.Charge(costSyscall)
	if d.m == nil {
		return syntheticStat(d.shown), 0
	}
	if d.node != nil {
		return d.stagedStat()
	}
	fi, err := d.host.file.Stat()
	if err != nil {
		return Stat{}, errnoOf(err)
	}
	return d.m.describe(fi, d.shown), 0
}

// Entry returns the entry with a cookie; more is false at the end. Zero is the cookie of the
// first entry, and each entry has the cookie of the next one; any other value is the cookie of
// some entry, or the end, or an error. Reading the next entry, or the same one again, is
// cheap; any other costs as much as the host needs to find it. Names that are not UTF-8 cannot
// be passed to WASI: they are left out, or encoded by package filename if AllNames is set.
//
// An entry with an empty name stands for many that were left out in a row, so that the caller
// can check for other things to do. An entry that others add or remove after the call with
// the cookie zero may be returned or missing.
func (d *Dir) Entry(cookie uint64) (e Dirent, more bool, errno Errno) {
	e, more, errno = d.entry(cookie)
	e.Name = filename.UTF8(e.Name)
	return e, more, errno
}

func (d *Dir) entry(cookie uint64) (_ Dirent, more bool, _ Errno) {
	d.fs.limits.Charge(costEntry)
	switch {
	case d.closed:
		return Dirent{}, false, EBADF
	case cookie == 0:
		d.forgetPosition() // a restart shows the current state
		d.listAdded()
		return d.leadingEntries[0], true, 0
	case d.host != nil && cookie == d.lastCookie:
		return d.last, true, 0
	case d.host != nil && cookie == d.nextCookie:
	case cookie >= firstCookie && cookie != startCookie:
		if cookie-firstCookie >= uint64(len(d.leadingEntries)) {
			return Dirent{}, false, EINVAL
		}
		return d.leadingEntries[cookie-firstCookie], true, 0
	case d.node != nil && d.node.Gone():
		return Dirent{}, false, ENOENT
	case d.host == nil:
		return Dirent{}, false, 0
	}
	if cookie != d.nextCookie {
		where := cookie
		if cookie == startCookie {
			where = 0
		}
		d.fs.limits.Charge(costSyscall)
		passed, err := d.entries.Seek(d.host.file, where)
		d.fs.limits.Charge(passed * costSyscall)
		if err != nil {
			d.forgetPosition()
			return Dirent{}, false, errnoOf(err)
		}
	}
	for left := 0; ; left++ {
		e, more, err := d.entries.Read(d.host.file)
		if err != nil || !more {
			d.forgetPosition()
			return Dirent{}, false, errnoOf(err)
		}
		d.fs.limits.Charge(costEntry)
		if d.shows(e) {
			shown := ""
			if e.Ino == 0 { // the number is a hash of the name
				shown = join(d.shown, e.Name)
			}
			out := Dirent{Name: e.Name, Type: typeOfMode(e.Type), Ino: d.m.ino(e.Ino, e.Dev, shown), Next: e.Next}
			d.overlayStaged(&out)
			d.last, d.lastCookie, d.nextCookie = out, cookie, e.Next
			return out, true, 0
		}
		if left >= maxLeftOut {
			d.forgetPosition()
			d.nextCookie = e.Next
			return Dirent{Next: e.Next}, true, 0
		}
	}
}

// forgetPosition makes the next call of Entry seek its entry on the host. No host entry has
// the cookie zero.
func (d *Dir) forgetPosition() { d.last, d.lastCookie, d.nextCookie = Dirent{}, 0, 0 }

func (d *Dir) shows(e rootedfs.Entry) bool {
	if !d.AllNames && !utf8.ValidString(e.Name) {
		return false
	}
	if d.node != nil && !d.showsStaged(e.Name) {
		return false
	}
	for _, first := range d.leadingEntries[:d.numFixed] {
		if first.Name == e.Name {
			return false // the name is something else for this guest
		}
	}
	if d.host.root == nil {
		return true
	}
	if isHiddenName(d.trails, e.Name) {
		return false
	}
	d.fs.limits.Charge(costSyscall)
	if !e.Type.IsDir() && e.Dev == d.m.inodeDev && !d.m.guard.hidesInode(e.Ino) {
		return true
	}
	fi, err := d.host.root.Lstat(e.Name)
	return err == nil && !d.m.guard.hides(fi)
}

// SetTimes changes the times of the directory, see [FS.SetTimes].
func (d *Dir) SetTimes(atim, mtim int64) Errno {
	if d.m == nil || !d.m.write {
		return errReadOnly
	}
	if d.changeForbidden {
		return d.fs.recordRefusal(d.m, d.realPath, d.forbiddenBy)
	}
	d.fs.limits.Charge(costSyscall)
	if d.node != nil {
		return d.setStagedTimes(atim, mtim)
	}
	return errnoOf(rootedfs.SetTimes(d.host.file, atim, mtim))
}

// Dirs opens directories one after the other, and closes each before the next. Of those that
// follow one another, the common directories on the way are looked up once, if their mount is
// walked, see [mount.walk].
func (f *FS) Dirs(names []string) iter.Seq2[*Dir, Errno] {
	return func(yield func(*Dir, Errno) bool) {
		defer f.cacheDirs()()
		for _, name := range names {
			if !f.withDir(name, yield) {
				return
			}
		}
	}
}

// Lstats calls [FS.Lstat] for one name after the other. Of names that follow one another, the
// common directories on the way are looked up once, as for [FS.Dirs], and again after every 64
// names.
func (f *FS) Lstats(names []string) iter.Seq2[Stat, Errno] {
	const row = 64
	return func(yield func(Stat, Errno) bool) {
		defer f.cacheDirs()()
		for i, name := range names {
			if i%row == 0 {
				f.dirCache.beginRow()
			}
			if !yield(f.Lstat(name)) {
				return
			}
		}
	}
}

// cacheDirs makes walks leave their directories open for the next walk, until end is called.
func (f *FS) cacheDirs() (end func()) {
	f.dirCache = &dirCache{}
	return func() {
		f.dirCache.close()
		f.dirCache = nil
	}
}

// withDir calls do with a directory, which it then closes, or with the error. It returns the result.
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

// Close closes the directory. Further calls do nothing.
func (d *Dir) Close() {
	if d.closed {
		return
	}
	d.closed = true
	if d.host == nil {
		d.fs.release(nil)
		return
	}
	d.fs.release(d.host)
	_ = d.host.Close() // FS.Close may have done it
}
