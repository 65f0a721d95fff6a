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

// FS is what a guest sees of the host's files.
type FS struct {
	// Fixed at creation.
	mounts          []*mount            // the longest name first
	tree            map[string][]string // "/" and each directory above a mount: the names in it that lead to one
	limits          Limits
	stage           *stage.Set // nil: what is written goes to the host at once
	readableSpecial paths.Opened
	refusals        *refusals // shared with views
	dirCache        *dirCache // of a view, and while directories are listed; else nil

	written, created int64

	mu        sync.Mutex
	open      map[io.Closer]struct{}
	openCount int // at least len(open): also what is being opened
	closed    bool
}

// mount is one granted directory.
type mount struct {
	host  string
	guest string
	write bool
	dev   uint64 // what the guest is told; the host's number is its own affair
	root  rootedfs.Root
	info  os.FileInfo // of root
	guard *guard      // nil if nothing is hidden inside
	// inodeDev is the device on which a file that is listed is the one that has
	// the inode number in the list; zero if that is not known of any.
	inodeDev   uint64
	hostTrails []trail     // what the host's name goes through
	tree       *stage.Tree // nil if it is not staged
}

// Options is what an FS can have besides mounts. A zero field is its default.
type Options struct {
	Limits Limits
	// Stage takes what the guest changes in its writable mounts, instead of the
	// host's files. It is for one FS, and may be committed when that is closed.
	// Nil: changes are made at once.
	Stage *stage.Set
	// ReadableSpecial says which special paths the guest may read all the same.
	ReadableSpecial paths.Opened
}

// New opens the mounts. Each must be an existing directory under an absolute,
// clean name; a name that is a symbolic link, or has one, is followed now and
// never again. Masked paths are absolute, clean names too, and need not exist.
// No mounts is an empty file system. Nil options are the zero value.
//
// A mount that is masked, or inside a masked directory, is an error, as is a
// directory that is mounted twice with different rights.
//
// The caller must Close the result.
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

// guestName is the name under which a host directory appears.
func guestName(host string) string {
	return path.Clean("/" + filepath.ToSlash(host))
}

// mask hides paths of the host from every mount they can be inside of.
func (f *FS) mask(masked []string) error {
	if len(f.mounts) == 0 {
		return nil
	}
	// A file system mounted somewhere in a mount may show anything there,
	// also what is masked and elsewhere.
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
				return fmt.Errorf("mask %s: the mount %s is this or inside it", p, m.host)
			}
			if crossed[i] || passThrough(trails, m.info) {
				m.hide(trails, end)
			}
		}
	}
	return nil
}

func (m *mount) hide(trails []trail, end os.FileInfo) {
	if m.guard == nil {
		m.guard = &guard{}
	}
	m.guard.trails = append(m.guard.trails, trails...)
	if end != nil {
		m.guard.hidden = append(m.guard.hidden, end)
	}
}

// Mounts returns the names under which the guest finds the mounts.
func (f *FS) Mounts() []string {
	var names []string
	for _, m := range f.mounts {
		names = append(names, m.guest)
	}
	return names
}

// Shows reports whether an absolute, clean name is that of a mount, or of something
// that could be in one or leads to one. It looks at names only.
func (f *FS) Shows(name string) bool {
	_, leads := f.tree[name]
	return leads || slices.ContainsFunc(f.mounts, func(m *mount) bool {
		_, inside := relativeTo(m.guest, name)
		return inside
	})
}

// Close releases the mounts and every file that is still open. It may be
// called at any time and more than once. Nothing can be opened or changed
// afterwards.
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

// reserve takes one of the files that may be open, before it is opened.
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

// track makes Close close c too; if Close has been called already, it happens
// now.
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

// release gives back what reserve took, and forgets c.
func (f *FS) release(c io.Closer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.openCount--
	delete(f.open, c)
}

// countWritten counts bytes that are about to be written.
func (f *FS) countWritten(n int64) Errno {
	return addWithinLimit(&f.written, n, f.limits.MaxWriteBytes)
}

// addWithinLimit adds n to a counter unless that exceeds the limit.
func addWithinLimit(counter *int64, n, limit int64) Errno {
	if n > limit-*counter {
		return errNoRoom
	}
	*counter += n
	return 0
}

// place is where a name of the guest leads.
type place struct {
	m     *mount        // nil for a synthetic directory
	dir   rootedfs.Root // name is looked up here
	name  string        // one name in a guarded mount; else all of it, with links to follow
	shown string        // the absolute name the guest used
	slash bool          // must be a directory

	// Where the name was walked only:
	walked     bool
	cached     bool        // a descent closes dir
	rel        string      // of dir, below the mount
	info       os.FileInfo // what the walk found under name; nil if nothing
	trails     [][]string  // the hidden things below dir
	viaLink    bool        // a symbolic link at the end of the name led here
	unexamined bool        // what is under name was not looked at, after so many steps
	steps      int

	lookupErrno Errno // why it was not found, unless there is just nothing

	// In a staged mount only, with what is above but for the first two:
	parent *stage.Node // the directory
	node   *stage.Node // what is there; nil if nothing
}

// close releases what the walk opened. It does nothing to the zero place.
func (p *place) close() {
	if p.m != nil && p.dir != p.m.root && !p.cached {
		_ = p.dir.Close()
	}
}

// linkMode says what becomes of a symbolic link at the end of a name.
type linkMode int

const (
	keepLink        linkMode = iota // it stands for itself
	keepUnlessSlash                 // it stands for itself unless a slash follows it
	followLink
	openDirectly // what has the name is not looked at before it is opened, where that is safe
)

// follows reports whether a link at the end is followed, if it is seen to be one.
func (l linkMode) follows(slash bool) bool {
	return l == followLink || l == openDirectly || l == keepUnlessSlash && slash
}

// resolve finds the place of a name. What last says is done here only where the name
// is walked, and nothing else may; elsewhere the root does it.
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
				// The host would not have been asked yet.
				p = place{m: m, dir: m.root, name: rel, shown: shown, slash: slash, parent: m.tree.Top(), lookupErrno: errno}
			}
			return p, 0
		case m.guard != nil || m.write:
			p, steps, errno := m.walk(rel, shown, last, slash, f.dirCache)
			f.chargeWalk(steps, rel)
			if errno != 0 && m.guard == nil {
				// The host would not have been asked yet.
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

// resolveEntry finds a directory entry that is to be made, changed or removed. The
// place must be closed also if it is not writable.
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

// isWalked reports whether the name was walked, one name at a time.
func (p *place) isWalked() bool { return p.walked || p.staged() && p.m.guard != nil }

// staged reports whether changes are made to a node. What the walk found is
// known then, as it is in a guarded mount.
func (p *place) staged() bool { return p.parent != nil }

func (p *place) isResolved() bool { return p.isWalked() || p.staged() }

// isPinned reports whether the entry must stay what it is: the mount itself, and
// what leads to something hidden.
func (p *place) isPinned() bool {
	return p.name == "." || p.isWalked() && leadsToHidden(p.trails, p.name)
}

// lstat is what is at the place, without following a symbolic link unless the
// walk did.
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

// stat is what is at the place behind symbolic links.
func (p *place) stat() (os.FileInfo, Errno) {
	if p.isResolved() {
		return p.lstat()
	}
	fi, err := p.dir.Stat(p.name)
	return fi, errnoOf(err)
}

// openExisting opens what is at the place and says what it is, which is a regular
// file or a directory. It never creates, truncates or blocks.
func (p *place) openExisting(access int) (*os.File, os.FileInfo, Errno) {
	if p.isWalked() {
		// A link is at the place only if it was not to be followed.
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

// open opens what is at the place. A name that was not walked is ELOOP if it has
// symbolic links, or if they cannot be told.
func (p *place) open(flag int) (*os.File, error) {
	if p.isWalked() {
		return p.dir.OpenFile(p.name, flag, 0)
	}
	return p.dir.OpenNoSymlinks(p.name, flag)
}

// openForChange opens what is at the place in order to change what is known
// about it.
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
