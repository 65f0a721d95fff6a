package walk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/rootedfs"
)

// Root is a mount of the command: an absolute path of the host without links. The content of
// roots that are not writable is not remembered.
type Root struct {
	Path     string
	Writable bool
}

// Budget limits a walk of all roots together, which ends when it is used up; then the result
// is not complete. Zero stands for the default.
type Budget struct {
	Names int           // names to read; default: 200,000
	Time  time.Duration // default: 1 s
}

const (
	defaultNames = 200_000
	defaultTime  = time.Second
	// maxPath limits the length of paths in bytes, like the kernel. Directories with longer
	// paths are not read; they cannot be mounted on either.
	maxPath = unix.PathMax - 1
	// maxFound limits each kind of special paths, which need mounts; more are an error.
	maxFound = 10_000
	// maxListed limits the entries of lists that are only shown; others are counted.
	maxListed = 1000
)

// Found is a path on the list of special paths.
type Found struct {
	Path    string // absolute
	Dir     bool   // the path is a directory, and stands for all its content
	Special paths.Special
}

// Snapshot is the result of a walk. Its fields must not be changed.
type Snapshot struct {
	// Secrets are files that the command must not open. Git configuration is not included,
	// because git has to read it.
	Secrets []Found
	// Closed are files that must be read-only, in writable roots. The content of a closed
	// directory is not listed.
	Closed []Found
	// Pinned are directories that must not be renamed, outer ones first. Otherwise another
	// directory could replace them, with the closed files below.
	Pinned []string
	// Links are symbolic links in place of such files. Nothing can be mounted on a link.
	// Restore restores the closed ones.
	Links []Found

	// Repositories are directories that git would accept as a repository or as the git
	// directory of a worktree, and files and links that lead to one.
	Repositories []string

	// Complete is set if everything was read. Otherwise Unread lists the first 1,000
	// directories that were not read completely; it can be empty if time or names ran out.
	Complete bool
	Unread   []string
	Names    int // number of names that were read

	roots   []root
	masked  []string
	entries []entry // all entries; those of a directory are adjacent
	names   []byte  // names of all entries, one after the other
	dirs    []dir
	saved   []savedFile
}

// root is a writable root.
type root struct {
	path     string
	dev, ino uint64
	top      int32 // index of its directory in dirs
	inodes   bool  // directories list the true inode numbers of files
}

type entry struct {
	ino   uint64
	ctime int64  // change time in nanoseconds; 0: it was not read
	name  uint32 // offset in Snapshot.names
	dir   int32  // index in dirs of its directory
	child int32  // for a directory: its index in dirs; 0: it is none, or was not read
	size  uint16 // length of the name in bytes
	kind  uint8  // DT_…
	flags uint8
}

const (
	isClosed = 1 << iota
	isSecret
	isGit     // a directory .git
	isChanged // changed since the time that was given to the walk

	isSpecial = isClosed | isSecret | isGit
)

// dir is a directory that was read.
type dir struct {
	parent     int32 // index of the parent; -1: it is a root
	entry      int32 // index of its entry in the parent, or of the root in roots
	first, end int32 // range of its entries
	partial    bool  // entries of it may be missing
	repository bool  // git would accept it as a repository
	foreign    bool  // on another file system than its root
}

var errTooManyFound = fmt.Errorf("more than %d files that look like secrets or decide what git runs; mask a directory, or mount less", maxFound)

// Scan walks the files below roots. It does not read the directories in masked, which are
// absolute paths. A root inside of another root is walked separately. The error is that of
// ctx, or concerns a root, a closed link that cannot be saved, or too many special paths.
func Scan(ctx context.Context, roots []Root, masked []string, budget Budget) (*Snapshot, error) {
	s := &Snapshot{masked: masked}
	if err := s.walk(ctx, roots, time.Time{}, budget); err != nil {
		return nil, err
	}
	if len(s.Links) == 0 {
		return s, nil
	}
	return s, s.saveContent(unix.DT_LNK, maxSavedBytes)
}

type walker struct {
	*Snapshot
	ctx       context.Context
	skip      map[string]bool // absolute paths to skip
	skipNames map[string]bool // last names of these paths
	since     time.Time       // later changes set isChanged; zero: the first walk, see maxStamped
	deadline  time.Time
	maxNames  int  // budget of names
	exhausted bool // the budget of time or names is used up
	buf       []byte

	root  Root    // root that is being walked
	fd    int     // descriptor of the root
	path  []byte  // path of the current directory, relative to the root
	stack []frame // directories from the root to the current directory
}

// frame is a directory whose subdirectories are being walked.
type frame struct {
	dir    int32
	next   int32 // index of the next entry
	path   int   // length of its path
	rules  paths.Dir
	pinned bool
	inside uint8 // isClosed and isSecret, if the directory or one above it has the flag
}

func (s *Snapshot) walk(ctx context.Context, roots []Root, since time.Time, budget Budget) error {
	if budget.Names <= 0 {
		budget.Names = defaultNames
	}
	if budget.Time <= 0 {
		budget.Time = defaultTime
	}
	w := &walker{
		Snapshot: s, ctx: ctx, since: since, deadline: time.Now().Add(budget.Time), maxNames: min(budget.Names, math.MaxUint32/unix.NAME_MAX/4),
		skip: map[string]bool{}, skipNames: map[string]bool{}, buf: make([]byte, 64<<10),
	}
	for _, name := range s.masked {
		w.mask(name)
	}
	for _, r := range roots {
		w.mask(r.Path)
	}
	s.Complete = true
	for _, r := range roots {
		if !path.IsAbs(r.Path) || path.Clean(r.Path) != r.Path {
			return fmt.Errorf("walk %q: not an absolute path", r.Path)
		}
		if err := w.walkRoot(r); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) mask(name string) { w.skip[name], w.skipNames[path.Base(name)] = true, true }

func (w *walker) walkRoot(r Root) error {
	below, fi, err := rootedfs.Open(r.Path)
	if err != nil {
		return err
	}
	defer below.Close()
	top, err := below.Open(".")
	if err != nil {
		return err
	}
	defer top.Close()
	w.root, w.fd, w.path = r, int(top.Fd()), w.path[:0]

	entries, names, dirs := len(w.entries), len(w.names), len(w.dirs)
	stat := rootedfs.StatOf(fi)
	w.roots = append(w.roots, root{r.Path, stat.Dev, stat.Ino, int32(dirs), below.ListsInodes()})
	f := frame{rules: paths.DirOf(r.Path), pinned: true}
	if up, last := path.Split(r.Path); last != "" {
		found, _ := paths.DirOf(up).Find(last)
		if f.inside, err = w.noteSpecial(entry{kind: unix.DT_DIR}, r.Path, found, 0); err != nil {
			return err
		}
	}
	if err := w.enter(-1, int32(len(w.roots)-1), f); err != nil {
		return err
	}
	for len(w.stack) > 0 {
		f := &w.stack[len(w.stack)-1]
		if f.next == w.dirs[f.dir].end || w.exhausted {
			w.stack = w.stack[:len(w.stack)-1]
			continue
		}
		at := f.next
		f.next++
		if err := w.descend(f, at); err != nil {
			return err
		}
	}
	if !r.Writable {
		w.entries, w.names, w.dirs, w.roots = w.entries[:entries], w.names[:names], w.dirs[:dirs], w.roots[:len(w.roots)-1]
	}
	return nil
}

// descend walks into an entry if it is a directory that is not skipped.
func (w *walker) descend(f *frame, at int32) error {
	e := &w.entries[at]
	if e.kind != unix.DT_DIR {
		return nil
	}
	name := w.name(e)
	w.path = append(w.path[:f.path], name...)
	if w.skipNames[name] && w.skip[w.absolute("")] {
		return nil
	}
	e.child = int32(len(w.dirs))
	return w.enter(f.dir, at, frame{rules: f.rules.Enter(name), inside: f.inside | e.flags&(isClosed|isSecret)})
}

// enter lists the directory at w.path.
func (w *walker) enter(parent, at int32, f frame) error {
	if err := w.ctx.Err(); err != nil {
		return context.Cause(w.ctx)
	}
	d := dir{parent: parent, entry: at, first: int32(len(w.entries))}
	var fd int
	var err error = unix.ENAMETOOLONG
	if len(w.root.Path)+1+len(w.path) < maxPath {
		fd, d.foreign, err = openDir(w.fd, string(w.path))
	}
	if err == nil {
		d.repository, err = w.list(fd)
		_ = unix.Close(fd)
	}
	switch {
	case errors.Is(err, unix.ENOENT): // gone meanwhile
	case err != nil:
		d.partial = true
		w.addUnread()
	case w.exhausted:
		d.partial = true
		w.Complete = false
	}
	d.end = int32(len(w.entries))
	f.dir, f.next = int32(len(w.dirs)), d.first
	w.dirs = append(w.dirs, d)
	if d.repository {
		f.rules = f.rules.Repository()
		w.Repositories = append(w.Repositories, path.Clean(w.absolute("")))
	}
	if len(w.path) > 0 {
		w.path = append(w.path, '/')
	}
	f.path = len(w.path)
	w.stack = append(w.stack, f)
	for i := d.first; i < d.end; i++ {
		e := &w.entries[i]
		name := w.name(e)
		if name == gitDir && (e.kind == unix.DT_REG || e.kind == unix.DT_LNK) {
			w.Repositories = append(w.Repositories, w.absolute(name))
		}
		found, special := f.rules.Find(name)
		if !special {
			continue
		}
		if e.flags, err = w.noteSpecial(*e, w.absolute(name), found, f.inside); err != nil {
			return err
		}
	}
	return nil
}

// addUnread clears Complete, and adds the current directory to Unread if there is room.
func (w *walker) addUnread() {
	w.Complete = false
	if len(w.Unread) < maxListed {
		w.Unread = append(w.Unread, path.Clean(w.absolute("")))
	}
}

// absolute returns the absolute path of a name in the directory w.path, which ends with "/".
func (w *walker) absolute(name string) string {
	return strings.TrimSuffix(w.root.Path, "/") + "/" + string(w.path) + name
}

// noteSpecial adds an entry to the lists of special paths, unless a directory above has the
// same flag, and returns the flags of the entry. The error means that a list is too long.
func (w *walker) noteSpecial(e entry, name string, found paths.Protection, above uint8) (flags uint8, err error) {
	isDir := e.kind == unix.DT_DIR
	flags = e.flags
	switch {
	case found.ReadOnly == nil:
	case isDir && found.ReadOnly.Pattern == gitDir:
		flags |= isGit // only a part of its content is closed
	default:
		flags |= isClosed
	}
	if found.Hidden != nil && (!isDir || found.SecretAll) {
		flags |= isSecret
	}
	note := func(list *[]Found, flag uint8, s *paths.Special) {
		if e.kind == unix.DT_LNK {
			list = &w.Links
		}
		if flags&^above&flag != 0 && len(*list) <= maxFound {
			*list = append(*list, Found{name, isDir, *s})
		}
	}
	note(&w.Secrets, isSecret, found.Hidden)
	if w.root.Writable && found.ReadOnly != nil {
		w.pin()
		if flags&isGit != 0 {
			w.Pinned = append(w.Pinned, name)
		} else {
			note(&w.Closed, isClosed, found.ReadOnly)
		}
	}
	if max(len(w.Secrets), len(w.Closed), len(w.Links), len(w.Pinned), len(w.Repositories)) > maxFound {
		return 0, errTooManyFound
	}
	return flags, nil
}

const gitDir = ".git"

// pin adds to Pinned the directories from the root to the current one whose names decide that
// a file in the current one is closed.
func (w *walker) pin() {
	for i := range w.stack {
		if f := &w.stack[i]; !f.pinned && f.inside&isClosed == 0 && f.rules.LeadsToReadOnly() {
			f.pinned = true
			if name := strings.TrimSuffix(w.root.Path, "/") + "/" + strings.TrimSuffix(string(w.path[:f.path]), "/"); len(w.Pinned) == 0 || w.Pinned[len(w.Pinned)-1] != name {
				w.Pinned = append(w.Pinned, name)
			}
		}
	}
}

// list appends the entries of the directory fd, and reports whether git would accept the
// directory as a repository.
func (w *walker) list(fd int) (repository bool, _ error) {
	var head, objects, refs, common bool
	for {
		if time.Now().After(w.deadline) {
			w.exhausted = true
			return false, nil
		}
		n, err := rootedfs.RetryEINTR(func() (int, error) { return unix.Getdents(fd, w.buf) })
		if err != nil || n <= 0 {
			return head && (objects && refs || common), err
		}
		for rest := w.buf[:n]; len(rest) > 0; {
			const header = 19 // inode, offset, length, type
			if len(rest) < header {
				return false, unix.EIO
			}
			size := int(binary.NativeEndian.Uint16(rest[16:]))
			if size < header || size > len(rest) {
				return false, unix.EIO
			}
			name := unix.ByteSliceToString(rest[header:size])
			e := entry{ino: binary.NativeEndian.Uint64(rest), kind: rest[18], size: uint16(len(name)), name: uint32(len(w.names)), dir: int32(len(w.dirs))}
			rest = rest[size:]
			if name == "." || name == ".." {
				continue
			}
			if w.Names == w.maxNames {
				w.exhausted = true
				return false, nil
			}
			w.status(fd, name, &e)
			w.Names++
			w.names = append(w.names, name...)
			w.entries = append(w.entries, e)

			head = head || isName(fd, name, "HEAD")
			objects = objects || isName(fd, name, "objects")
			refs = refs || isName(fd, name, "refs")
			common = common || isName(fd, name, "commondir")
		}
	}
}

// isName reports whether the file system takes name for want, for example without regard to
// case. fd is the directory.
func isName(fd int, name, want string) bool {
	if len(name) != len(want) || !strings.EqualFold(name, want) {
		return false
	}
	var st unix.Stat_t
	return name == want || unix.Fstatat(fd, want, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

// maxStamped is the number of entries whose change time the first walk reads, for a later
// comparison. Reading more takes longer than a tick of the clock that stamps files; for
// further files the comparison uses the start time of the command.
const maxStamped = 2000

// status sets the type, change time and isChanged of an entry, as far as the walk needs them.
func (w *walker) status(dir int, name string, e *entry) {
	if e.kind == unix.DT_DIR || e.kind != unix.DT_UNKNOWN && w.since.IsZero() && len(w.entries) >= maxStamped {
		return
	}
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT); err != nil {
		e.flags |= isChanged // unknown
		return
	}
	e.kind, e.ctime = uint8(st.Mode&unix.S_IFMT>>12), st.Ctim.Nano()
	if !w.since.IsZero() && !time.Unix(st.Ctim.Unix()).Before(w.since) {
		e.flags |= isChanged
	}
}

// openDir opens the directory rel below top without following links. foreign reports whether
// it is on another file system than top.
func openDir(top int, rel string) (fd int, foreign bool, err error) {
	if rel == "" {
		rel = "."
	}
	how := unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NONBLOCK | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	}
	fd, err = rootedfs.RetryEINTR(func() (int, error) { return unix.Openat2(top, rel, &how) })
	switch err {
	case nil:
		return fd, false, nil
	case unix.EXDEV, unix.ENOSYS, unix.EPERM: // the last two: openat2 does not work
		fd, err = stepDown(top, rel)
	}
	if err != nil {
		return -1, false, err
	}
	var here, there unix.Stat_t
	if err = errors.Join(rootedfs.RefuseKernelFd(fd), unix.Fstat(top, &here), unix.Fstat(fd, &there)); err != nil {
		_ = unix.Close(fd)
		return -1, false, err
	}
	return fd, here.Dev != there.Dev, nil
}

// stepDown opens a directory like openDir, on any file system and any kernel, name by name.
func stepDown(top int, rel string) (int, error) {
	fd, err := unix.Dup(top)
	for name := range strings.SplitSeq(rel, "/") {
		if err != nil {
			return -1, err
		}
		if name == ".." {
			_ = unix.Close(fd)
			return -1, os.ErrInvalid // no entry has this name
		}
		var next int
		next, err = rootedfs.RetryEINTR(func() (int, error) {
			return unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		})
		_ = unix.Close(fd)
		fd = next
	}
	return fd, err
}
