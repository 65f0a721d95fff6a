package wasi

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/rootedfs"
	"github.com/stockade-dev/stockade/host/stage"
)

// FS is the file system that a guest sees. It is made by [New].
type FS struct {
	// Fixed at creation.
	mounts          []*mount            // longest name first
	tree            map[string][]string // for "/" and each directory above a mount: its entries that lead to mounts
	limits          Limits
	stage           *stage.Set // collects the changes; nil: they go to the host at once
	readableSpecial paths.Opened
	refusals        *refusals // shared with views
	dirCache        *dirCache // set in a view, and during Dirs and Lstats; else nil

	// Bytes written and files made so far, see [Limits].
	written, created int64

	mu        sync.Mutex
	open      map[io.Closer]struct{}
	openCount int // number of files and directories that are open, being opened, or reserved for views
	closed    bool
}

type mount struct {
	host  string // absolute name on the host
	guest string // absolute name for the guest
	write bool   // the guest may change the content
	dev   uint64 // device number for the guest; the host's is hidden
	root  rootedfs.Root
	info  os.FileInfo // describes root
	guard *guard      // hides paths inside the mount; nil: none is hidden
	// inodeDev is the device whose inode numbers in listings can be trusted; 0: none.
	inodeDev   uint64
	hostTrails []trail     // ways to the mount from each directory above it on the host
	tree       *stage.Tree // changes of the guest; nil: the mount is not staged
}

// Options holds the optional settings of an FS. A zero field means its default.
type Options struct {
	Limits Limits
	// Stage collects the guest's changes in its writable mounts, instead of changing the
	// host's files. It serves one FS, and may be committed when that is closed. Nil: changes
	// are made at once.
	Stage           *stage.Set
	ReadableSpecial paths.Opened // secret paths that the guest may read nevertheless
}

// New opens the mounts. Each must be an existing directory under an absolute, clean name;
// symbolic links in the name are followed now and never again. Masked paths are absolute,
// clean names too, and need not exist. Without mounts the file system is empty. Nil options
// are the zero value. It is an error if a mount is masked, or inside a masked directory, or a
// system directory such as /proc, or if a name is mounted twice with different rights. On a
// stage a directory with two names, one of them writable, is an error as well. The caller must
// Close the result.
func New(mounts []policy.Mount, masked []string, opts *Options) (*FS, error) {
	if opts == nil {
		opts = &Options{}
	}
	limits, err := opts.Limits.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("mount: %w", err)
	}
	f := &FS{
		tree:            map[string][]string{"/": nil},
		limits:          limits,
		stage:           opts.Stage,
		readableSpecial: opts.ReadableSpecial,
		refusals:        &refusals{},
		open:            map[io.Closer]struct{}{},
	}
	if f.stage != nil && f.stage.Dir() != "" {
		masked = append(slices.Clip(masked), f.stage.Dir())
	}
	err = f.addMounts(mounts, masked)
	if err == nil && f.stage != nil {
		err = f.stageMounts()
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func (f *FS) addMounts(mounts []policy.Mount, masked []string) error {
	for _, grant := range mounts {
		if i := slices.IndexFunc(f.mounts, func(m *mount) bool { return m.host == grant.Host }); i >= 0 {
			if f.mounts[i].write != grant.Write {
				return fmt.Errorf("mount %s: granted twice, with and without write", grant.Host)
			}
			continue
		}
		m, err := openMount(grant)
		if err != nil {
			return fmt.Errorf("mount %s: %w", grant.Host, err)
		}
		m.dev = syntheticDev + 1 + uint64(len(f.mounts))
		f.mounts = append(f.mounts, m)
	}
	if err := f.mask(masked); err != nil {
		return err
	}
	for _, inner := range f.mounts {
		for _, outer := range f.mounts {
			if _, inside := relativeTo(outer.guest, inner.guest); !inside || inner == outer {
				continue
			}
			outer.hide(inner.hostTrails, inner.info)
		}
	}
	slices.SortFunc(f.mounts, func(a, b *mount) int { return len(b.guest) - len(a.guest) })
	for _, m := range f.mounts {
		for p := m.guest; p != "/"; p = path.Dir(p) {
			dir, name := path.Dir(p), path.Base(p)
			if !slices.Contains(f.tree[dir], name) {
				f.tree[dir] = append(f.tree[dir], name)
			}
		}
	}
	return nil
}

func openMount(grant policy.Mount) (*mount, error) {
	if err := checkHostPath(grant.Host); err != nil {
		return nil, err
	}
	fi, err := os.Stat(grant.Host)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, errors.New("not a directory")
	}
	root, info, err := rootedfs.Open(grant.Host)
	if err != nil {
		return nil, err
	}
	m := &mount{host: grant.Host, guest: guestName(grant.Host), write: grant.Write, root: root, info: info}
	if m.hostTrails, _, err = (lstatCache{}).follow(grant.Host); err != nil {
		_ = root.Close()
		return nil, err
	}
	return m, nil
}

func checkHostPath(p string) error {
	switch {
	case !filepath.IsAbs(p):
		return errors.New("not an absolute path")
	case filepath.Clean(p) != p:
		return errors.New("not a clean path")
	case strings.IndexByte(p, 0) >= 0 || !utf8.ValidString(p):
		return errors.New("not valid UTF-8")
	}
	return nil
}

func guestName(host string) string {
	return path.Clean("/" + filepath.ToSlash(host))
}

// mask hides the masked paths and the system directories in every mount that may contain them,
// and sets inodeDev of the mounts.
func (f *FS) mask(masked []string) error {
	if len(f.mounts) == 0 {
		return nil
	}
	// A file system mounted inside a mount may show anything there, also masked paths
	// from elsewhere.
	crossed := make([]bool, len(f.mounts))
	for i, m := range f.mounts {
		crossed[i] = rootedfs.HoldsMountPoint(m.host)
		if !crossed[i] && m.root.ListsInodes() {
			m.inodeDev = rootedfs.StatOf(m.info).Dev
		}
	}
	seen := lstatCache{}
	if err := f.hideSystem(seen, crossed); err != nil {
		return err
	}
	for _, p := range masked {
		if err := checkHostPath(p); err != nil {
			return fmt.Errorf("mask %q: %w", p, err)
		}
		trails, end, err := seen.follow(p)
		if err != nil {
			return fmt.Errorf("mask %s: %w", p, err)
		}
		for i, m := range f.mounts {
			_, inside := relativeTo(guestName(p), m.guest)
			if inside || end != nil && (rootedfs.SameFile(end, m.info) || passThrough(m.hostTrails, end)) {
				return fmt.Errorf("mask %s: the mount %s is the same directory or inside it", p, m.host)
			}
			if crossed[i] || passThrough(trails, m.info) {
				m.hide(trails, end)
			}
		}
	}
	return nil
}

// hide hides the file end, if it is not nil, and the names at the ends of trails.
func (m *mount) hide(trails []trail, end os.FileInfo) {
	if m.guard == nil {
		m.guard = &guard{}
	}
	m.guard.trails = append(m.guard.trails, trails...)
	if end != nil {
		m.guard.hidden = append(m.guard.hidden, end)
	}
}

// Mounts returns the guest's names of the mounts.
func (f *FS) Mounts() []string {
	var names []string
	for _, m := range f.mounts {
		names = append(names, m.guest)
	}
	return names
}

// Shows reports whether name, which is absolute and clean, is a mount, could be inside a
// mount, or leads to a mount. It compares names only.
func (f *FS) Shows(name string) bool {
	_, leads := f.tree[name]
	return leads || slices.ContainsFunc(f.mounts, func(m *mount) bool {
		_, inside := relativeTo(m.guest, name)
		return inside
	})
}

// Close releases the mounts and closes every open file. It may be called at any time; further
// calls do nothing. Afterwards nothing can be opened or changed.
func (f *FS) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	var errs []error
	for c := range f.open {
		errs = append(errs, c.Close())
	}
	f.open = nil
	for _, m := range f.mounts {
		errs = append(errs, m.root.Close())
	}
	return errors.Join(errs...)
}

func (f *FS) isClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// reserve counts a file or directory before it is opened; EMFILE: too many are open, EBADF: f is
// closed. release undoes it.
func (f *FS) reserve() Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return EBADF
	case f.openCount >= f.limits.MaxOpenFiles:
		return errTooManyOpen
	}
	f.openCount++
	return 0
}

// track makes Close close c, too. After Close it closes c at once and returns EBADF.
func (f *FS) track(c io.Closer) Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		_ = c.Close()
		return EBADF
	}
	f.open[c] = struct{}{}
	return 0
}

// release undoes reserve and track. c is nil if it was not tracked.
func (f *FS) release(c io.Closer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.openCount--
	delete(f.open, c)
}

// countWritten counts n bytes that are about to be written; ENOSPC: they exceed the limit.
func (f *FS) countWritten(n int64) Errno {
	return addWithinLimit(&f.written, n, f.limits.MaxWriteBytes)
}

// addWithinLimit adds n to a counter, or nothing and ENOSPC if that exceeds the limit.
func addWithinLimit(counter *int64, n, limit int64) Errno {
	if n > limit-*counter {
		return errNoRoom
	}
	*counter += n
	return 0
}

// place is the result of looking up a name of the guest.
type place struct {
	m     *mount        // nil for a synthetic directory
	dir   rootedfs.Root // the directory in which name is looked up; in a staged mount the mount itself
	name  string        // a single name if walked or staged, without lookupErrno; else a path in dir, with its links
	shown string        // the absolute name that the guest used
	slash bool          // the name must be that of a directory

	// Set only if the name was walked:
	walked     bool
	cached     bool        // a dirCache closes dir; else close does, unless dir is the root of the mount
	rel        string      // path of dir relative to the mount
	info       os.FileInfo // describes the file; nil: there is none, or unexamined or lookupErrno is set
	trails     [][]string  // paths from dir to hidden files, as lists of names
	viaLink    bool        // a symbolic link at the end of the guest's name led here
	unexamined bool        // the file with the name was not looked up
	steps      int         // number of names that the walk looked up before this one, if unexamined is set

	lookupErrno Errno // error of the look-up; 0: it found a file, or that the name is free, or was not made

	// Set only in a staged mount; there info, trails, viaLink and lookupErrno are set as well:
	parent *stage.Node // directory in which name is looked up
	node   *stage.Node // the file; nil: there is none
}

// close closes the directory that the walk opened, if any.
func (p *place) close() {
	if p.m != nil && p.dir != p.m.root && !p.cached {
		_ = p.dir.Close()
	}
}

// linkMode selects the treatment of a symbolic link at the end of a name.
type linkMode int

const (
	keepLink        linkMode = iota // the name means the link
	keepUnlessSlash                 // the name means the link unless a slash follows
	followLink                      // the name means the file to which the link leads
	openDirectly                    // like followLink, without looking the file up before, where that is safe
)

// follows reports whether a link at the end of a name is followed; slash: before a slash.
func (l linkMode) follows(slash bool) bool {
	return l == followLink || l == openDirectly || l == keepUnlessSlash && slash
}

// resolve finds the place of a name, which the caller must close. last is the treatment of a
// link at the end, if the name is walked or staged; otherwise it depends on the method of place
// that the caller uses. In a mount without a guard, an error of the look-up is only in the
// place, as lookupErrno.
func (f *FS) resolve(name string, last linkMode) (place, Errno) {
	f.limits.Charge(costPath)
	shown, slash, errno := clean(name)
	if errno != 0 {
		return place{}, errno
	}
	for _, m := range f.mounts {
		rel, inside := relativeTo(m.guest, shown)
		switch {
		case !inside:
			continue
		case hasHostSyntax(rel):
			return place{}, EINVAL
		case m.tree != nil && (f.isClosed() || f.stage.Ended()):
			return place{}, EBADF
		case m.tree != nil:
			p, steps, errno := m.walkStaged(rel, shown, last.follows(slash), slash)
			if m.guard != nil {
				f.limits.Charge(uint64(steps) * costWalk)
				return p, errno
			}
			f.limits.Charge(uint64(strings.Count(rel, "/")) * costName)
			if errno != 0 {
				// Without a guard the host is asked later, so the error is returned later.
				p = place{m: m, dir: m.root, name: rel, shown: shown, slash: slash, parent: m.tree.Top(), lookupErrno: errno}
			}
			return p, 0
		case m.guard != nil || m.write:
			p, steps, errno := m.walk(rel, shown, last, slash, f.dirCache)
			f.chargeWalk(steps, rel)
			if errno != 0 && m.guard == nil {
				// Without a guard the host is asked later, so the error is returned later.
				p, errno = place{m: m, dir: m.root, name: rel, shown: shown, slash: slash, walked: true, rel: ".", lookupErrno: errno}, 0
			}
			return p, errno
		}
		f.limits.Charge(uint64(strings.Count(rel, "/")) * costName)
		return place{m: m, dir: m.root, name: rel, shown: shown, slash: slash}, 0
	}
	if _, ok := f.tree[shown]; !ok {
		return place{}, errOutside
	}
	return place{shown: shown, slash: slash}, 0
}

func (f *FS) chargeWalk(steps int, rel string) {
	f.limits.Charge(max(uint64(steps)*costWalk, uint64(strings.Count(rel, "/"))*costName))
}

// resolveEntry finds a directory entry that the caller will make, change or remove. It is
// EROFS in a read-only mount or outside of mounts. The caller must close the place also on error.
func (f *FS) resolveEntry(name string) (place, Errno) {
	p, errno := f.resolve(name, keepLink)
	if errno != 0 {
		return p, errno
	}
	return p, p.checkWritable()
}

func (p *place) checkWritable() Errno {
	if p.m == nil || !p.m.write {
		return errReadOnly
	}
	return 0
}

// isWalked reports whether the name was walked, or is in a staged mount that is guarded.
func (p *place) isWalked() bool { return p.walked || p.staged() && p.m.guard != nil }

// staged reports whether the place is in a staged mount. If so, resolve has looked up its file,
// as it does for a walked name.
func (p *place) staged() bool { return p.parent != nil }

func (p *place) isResolved() bool { return p.isWalked() || p.staged() }

// isPinned reports whether the place must not be renamed, replaced or removed, for example
// because it is the mount itself, or on the way to a hidden path.
func (p *place) isPinned() bool {
	return p.name == "." || p.isWalked() && leadsToHidden(p.trails, p.name)
}

// lstat describes the file at the place. It follows a symbolic link only if the walk did.
func (p *place) lstat() (os.FileInfo, Errno) {
	if p.isResolved() {
		if p.lookupErrno != 0 {
			return nil, p.lookupErrno
		}
		if p.info == nil {
			return nil, ENOENT
		}
		return p.info, 0
	}
	fi, err := p.dir.Lstat(p.name)
	return fi, errnoOf(err)
}

// stat describes the file at the place. It follows symbolic links, unless resolve has already
// looked up the file.
func (p *place) stat() (os.FileInfo, Errno) {
	if p.isResolved() {
		return p.lstat()
	}
	fi, err := p.dir.Stat(p.name)
	return fi, errnoOf(err)
}

// openExisting opens and describes the regular file or directory at the place. It never
// creates, truncates or blocks.
func (p *place) openExisting(access int) (*os.File, os.FileInfo, Errno) {
	if p.isWalked() {
		// A link is at the place only if it must not be followed.
		switch {
		case p.lookupErrno != 0:
			return nil, nil, p.lookupErrno
		case p.info == nil:
			return nil, nil, ENOENT
		case p.info.Mode().Type() == fs.ModeSymlink:
			return nil, nil, ELOOP
		case !p.info.Mode().IsRegular() && !p.info.IsDir():
			return nil, nil, errNotFileOrDir
		}
	}
	file, err := p.open(access | rootedfs.Nonblock)
	if err != nil {
		return nil, nil, errnoOf(err)
	}
	fi, err := file.Stat()
	if err == nil {
		err = p.dir.RefuseKernelFile(file, fi)
	}
	errno := errnoOf(err)
	switch {
	case errno != 0:
	case !fi.Mode().IsRegular() && !fi.IsDir():
		errno = errNotFileOrDir
	case p.isWalked() && !rootedfs.SameFile(fi, p.info):
		errno = errReplaced
	case p.slash && !fi.IsDir():
		errno = ENOTDIR
	}
	if errno != 0 {
		_ = file.Close()
		return nil, nil, errno
	}
	return file, fi, 0
}

// open opens the file at the place. If the name was not walked, it returns ELOOP for a
// name with symbolic links, or one in which the host cannot detect them.
func (p *place) open(flag int) (*os.File, error) {
	if p.isWalked() {
		return p.dir.OpenFile(p.name, flag, 0)
	}
	return p.dir.OpenNoSymlinks(p.name, flag)
}

func (p *place) openForChange() (*os.File, Errno) {
	if errno := p.checkWritable(); errno != 0 {
		return nil, errno
	}
	file, fi, errno := p.openExisting(rootedfs.AttrAccess)
	if errno == EISDIR {
		file, fi, errno = p.openExisting(os.O_RDONLY)
	}
	if errno != 0 {
		return nil, errno
	}
	if err := rootedfs.RefuseHardLinks(file, fi); err != nil {
		_ = file.Close()
		return nil, errnoOf(err)
	}
	return file, 0
}
