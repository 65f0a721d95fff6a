package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/rootedfs"
)

// FileClockNow returns the time of the clock that stamps files. The next change of any file
// gets this time or a later one. It waits until the clock has passed the latest [NoteWrite] of
// this process.
func FileClockNow() time.Time {
	for {
		var ts unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &ts)
		if now := ts.Nano(); now > lastWrite.Load() {
			return time.Unix(0, now)
		}
		time.Sleep(time.Millisecond)
	}
}

// lastWrite is the time of the latest NoteWrite, in nanoseconds since 1970.
var lastWrite atomic.Int64

// NoteWrite notes for [FileClockNow] that this process has just changed files which a
// command may find, for example at the end of a commit. Some file systems stamp by a finer
// clock, which the coarse one follows some milliseconds later.
func NoteWrite() { lastWrite.Store(time.Now().UnixNano()) }

// canRenameBetween reports whether files can be renamed from directory a to directory b. It
// renames a missing name: the kernel compares the mounts before it looks for names.
func canRenameBetween(a, b string) bool {
	const none = "/.stockade-none"
	return unix.Renameat2(unix.AT_FDCWD, a+none, unix.AT_FDCWD, b+none, unix.RENAME_NOREPLACE) == unix.ENOENT
}

// copyOwnerAndMode gives dir the permissions of other, and its owner if we are root.
func copyOwnerAndMode(dir string, other os.FileInfo) error {
	if os.Geteuid() == 0 {
		st := other.Sys().(*syscall.Stat_t)
		if err := os.Chown(dir, int(st.Uid), int(st.Gid)); err != nil {
			return err
		}
	}
	return os.Chmod(dir, other.Mode().Perm())
}

// ownedByNonRoot reports whether our user owns the file and is not root.
func ownedByNonRoot(fi os.FileInfo) bool {
	uid := os.Geteuid()
	return uid != 0 && fi.Sys().(*syscall.Stat_t).Uid == uint32(uid)
}

// Collect adds the files that an overlay has written to a layer as changes to the set. since
// is a result of [FileClockNow] from before the overlay was mounted. The overlay must not be
// mounted any more. The error wraps [policy.ErrChanged] if somebody has changed the same files
// of the host since then. The set owns the layer from now on, even after an error. Files
// of [Set.Skipped] count as removed, and so do files that git can make again from other files.
//
// The format is that of the kernel with the option userxattr, see
// Documentation/filesystems/overlayfs.rst: a removed file is a character device 0/0, and a
// directory that hides the entries of the host has the attribute user.overlay.opaque.
func (s *Set) Collect(ctx context.Context, layer *Layer, since time.Time) error {
	s.layers = append(s.layers, layer)
	root, info, err := rootedfs.Open(layer.Host)
	if err != nil {
		return fmt.Errorf("stage %s: %w", layer.Host, err)
	}
	defer root.Close()
	tree, err := s.Add(root, layer.Host, info)
	if err != nil {
		return err
	}
	tree.layer = layer
	if st, err := os.Lstat(layer.Upper); err == nil && lacksOwnerRights(st) {
		if err := os.Chmod(layer.Upper, st.Mode().Perm()|ownerRights); err != nil {
			return fmt.Errorf("stage: %w", err)
		}
	}
	top, err := unix.Open(layer.Upper, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("stage: open %s: %w", layer.Upper, err)
	}
	c := &collector{ctx: ctx, tree: tree, layer: layer, since: since.UnixNano(), cur: tree.Cursor(), byInode: map[uint64]*Node{}}
	defer c.cur.Close()
	if err := c.collectDir(tree.top, top, "", false); err != nil {
		return fmt.Errorf("stage %s: %w", layer.Host, err)
	}
	return nil
}

type collector struct {
	ctx     context.Context
	tree    *Tree
	layer   *Layer
	since   int64 // start of the command, in nanoseconds since 1970
	cur     *Cursor
	byInode map[uint64]*Node // files of the layer with several names, by inode
	names   int              // names so far, also of hidden files of the host; at most maxCollected
	depth   int              // number of open directories, each inside the one before; at most maxDepth
}

// clash returns an error that wraps [policy.ErrChanged], for a file that somebody else has
// changed while the command ran. how describes the change.
func (c *collector) clash(rel, how string) error {
	return fmt.Errorf("%s: %w: %s", c.tree.hostPath(rel), policy.ErrChanged, how)
}

// refuseChanged returns a clash if live, the state of n, has changed since the command began. An
// index that others have only refreshed has not.
func (c *collector) refuseChanged(n *Node, live os.FileInfo) error {
	if rootedfs.StatOf(live).Ctim < c.since {
		return nil
	}
	if was := c.layer.index; was != nil && n.Path() == indexPath {
		if now, _, err := c.tree.contentOf(n); err == nil && now == *was {
			return nil
		}
	}
	return c.clash(n.Path(), "while the command ran")
}

// upperEntry is an entry of a directory of the upper layer.
type upperEntry struct {
	name string
	st   unix.Stat_t
	n    *Node       // the node of the same name on the host; nil: none
	live os.FileInfo // the present state of n; nil without n
}

// collectDir takes over the entries of a directory of the upper layer, and closes its
// descriptor fd. dir is the node of the directory, and rel its path in the layer. opaque is
// set if the directory hides the entries that the host has in it.
func (c *collector) collectDir(dir *Node, fd int, rel string, opaque bool) error {
	f := os.NewFile(uintptr(fd), rel)
	defer f.Close()
	if c.depth++; c.depth > maxDepth {
		return unix.ENAMETOOLONG
	}
	defer func() { c.depth-- }()
	var dirs []upperEntry
	kept := map[string]bool{}
	err := eachName(f, 1024, func(name string) error {
		e := upperEntry{name: name}
		if err := c.lookUp(dir, fd, &e); err != nil {
			return err
		}
		if opaque {
			kept[name] = true
		}
		if e.st.Mode&unix.S_IFMT == unix.S_IFDIR {
			dirs = append(dirs, e) // so that the cursor stays in dir until the loop ends
			return nil
		}
		return c.collectFile(dir, fd, path.Join(rel, name), e)
	})
	if err != nil {
		return err
	}
	if opaque && dir.origin != nil {
		if err := c.removeHidden(dir, kept); err != nil {
			return err
		}
	}
	for _, e := range dirs {
		if err := c.collectSubdir(dir, fd, path.Join(rel, e.name), e, opaque); err != nil {
			return err
		}
	}
	return nil
}

// count counts a name. More than maxCollected, and the end of ctx, are errors.
func (c *collector) count() error {
	if c.names++; c.names > maxCollected {
		return fmt.Errorf("%w: more than %d files and directories", errTooMuch, maxCollected)
	}
	return c.ctx.Err()
}

// lookUp counts the name of e, and sets the other fields.
func (c *collector) lookUp(dir *Node, fd int, e *upperEntry) (err error) {
	if err := c.count(); err != nil {
		return err
	}
	if err := unix.Fstatat(fd, e.name, &e.st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	e.n, e.live, err = c.cur.Child(dir, e.name)
	if errors.Is(err, fs.ErrNotExist) {
		e.n, err = nil, nil
	}
	return err
}

// collectFile takes over an entry that is no directory. dir and fd are its directory, and rel
// its path in the layer.
func (c *collector) collectFile(dir *Node, fd int, rel string, e upperEntry) error {
	st := &e.st
	kind := st.Mode & unix.S_IFMT
	u := &upper{layer: c.layer, rel: rel, times: stamps{atim: st.Atim.Nano(), mtim: st.Mtim.Nano(), setAtim: true, setMtim: true}}
	var mode fs.FileMode
	switch kind {
	case unix.S_IFCHR:
		if st.Rdev == 0 {
			return c.collectRemoved(e.n, e.live)
		}
		fallthrough
	default:
		c.tree.set.skipped = append(c.tree.set.skipped, c.tree.hostPath(rel))
		return c.leaveOut(fd, e)
	case unix.S_IFLNK:
		target, err := readlink(fd, e.name)
		if err != nil {
			return err
		}
		u.target, mode = target, fs.ModeSymlink|0o777
		if e.n != nil && e.n.mode.Type() == fs.ModeSymlink {
			was, err := c.cur.Readlink(e.n)
			if err != nil {
				return err
			}
			if was == target {
				return c.collectSameLink(e.n, e.live, u)
			}
		}
	case unix.S_IFREG:
		if c.derived(rel) {
			return c.leaveOut(fd, e)
		}
		u.size = st.Size
		if err := c.grantAccess(fd, e.name, st, u, 0o400); err != nil {
			return err
		}
		if err := c.restoreAttributes(dir, fd, rel, &e, 0o400); err != nil {
			return err
		}
		mode = fs.FileMode(st.Mode & 0o777)
		if e.n != nil && e.n.mode.IsRegular() {
			return c.collectModified(e.n, e.live, mode, u, st)
		}
	}
	if err := c.collectRemoved(e.n, e.live); err != nil {
		return err
	}
	if e.n == nil {
		if err := c.refuseVanished(dir, fd, e.name, rel); err != nil {
			return err
		}
	}
	n, err := c.create(dir, e.name, mode, u)
	if err != nil || kind != unix.S_IFREG {
		return err
	}
	c.noteHardLink(n, st)
	if dir.origin == nil { // it moves with its directory, without prepareForRename
		return stripXattrs(fmt.Sprintf("/proc/self/fd/%d/%s", fd, e.name))
	}
	return nil
}

// noteHardLink sets the hardLink of nodes that are one file, found by its inode.
func (c *collector) noteHardLink(n *Node, st *unix.Stat_t) {
	if st.Nlink < 2 {
		return
	}
	if other := c.byInode[st.Ino]; other != nil {
		n.upper.hardLink, other.upper.hardLink = other, n
	}
	c.byInode[st.Ino] = n
}

// grantAccess adds the mode bits need to a file of the upper layer, so that we can read it, and
// removes its set-id and sticky bits. It sets u.tempMode if it has added bits.
func (c *collector) grantAccess(fd int, name string, st *unix.Stat_t, u *upper, need uint32) error {
	want := st.Mode & 0o777
	u.tempMode = want&need != need
	if want |= need; want == st.Mode&0o7777 {
		return nil
	}
	return unix.Fchmodat(fd, name, want, 0)
}

// collectModified takes over a regular file that the host has. [Set.Changes] compares the two.
func (c *collector) collectModified(n *Node, live os.FileInfo, mode fs.FileMode, u *upper, st *unix.Stat_t) error {
	if err := c.refuseChanged(n, live); err != nil {
		return err
	}
	n.pin()
	n.origin.info = live
	n.upper, n.mode, n.modeSet = u, mode, mode != live.Mode().Perm()
	if u.times.mtim != rootedfs.StatOf(live).Mtim {
		n.times = &u.times
	}
	c.noteHardLink(n, st)
	return nil
}

// collectSameLink takes over the times of a symbolic link whose target stays.
func (c *collector) collectSameLink(n *Node, live os.FileInfo, u *upper) error {
	if u.times.mtim == rootedfs.StatOf(live).Mtim {
		return nil
	}
	if err := c.refuseChanged(n, live); err != nil {
		return err
	}
	n.pin()
	n.origin.info, n.times = live, &u.times
	return nil
}

// collectRemoved removes a node of the host from the tree, with all its entries. If somebody
// has changed it since the command began, it returns a clash. It does nothing if n is nil.
func (c *collector) collectRemoved(n *Node, live os.FileInfo) error {
	if n == nil {
		return nil
	}
	if err := c.refuseChanged(n, live); err != nil {
		return err
	}
	n.pin()
	n.origin.info = live
	if n.mode.IsDir() {
		if err := c.removeHidden(n, nil); err != nil {
			return err
		}
	}
	c.tree.unlink(n)
	return nil
}

// removeHidden removes the host's entries of a directory from the tree, except names in kept.
func (c *collector) removeHidden(dir *Node, kept map[string]bool) error {
	if c.depth++; c.depth > maxDepth {
		return unix.ENAMETOOLONG
	}
	defer func() { c.depth-- }()
	list, _, err := c.cur.list(dir)
	if err != nil {
		return err
	}
	defer list.Close()
	var dirs []upperEntry
	err = eachName(list, 1024, func(name string) error {
		if kept[name] {
			return nil
		}
		if err := c.count(); err != nil {
			return err
		}
		n, live, err := c.cur.Child(dir, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return c.clash(path.Join(dir.Path(), name), "while the command ran")
		case err != nil:
			return err
		case n.mode.IsDir():
			dirs = append(dirs, upperEntry{n: n, live: live})
			return nil
		}
		return c.collectRemoved(n, live)
	})
	if err != nil {
		return err
	}
	for _, e := range dirs {
		if err := c.collectRemoved(e.n, e.live); err != nil {
			return err
		}
	}
	return nil
}

// collectSubdir takes over a directory of the upper layer with its entries. hidden is set if
// entries of the host do not show through the directory above.
func (c *collector) collectSubdir(dir *Node, fd int, rel string, e upperEntry, hidden bool) error {
	merged := e.n != nil && e.n.mode.IsDir()
	if !merged {
		if err := c.collectRemoved(e.n, e.live); err != nil {
			return err
		}
	}
	u := &upper{layer: c.layer, rel: rel}
	if err := c.grantAccess(fd, e.name, &e.st, u, 0o700); err != nil {
		return err
	}
	if err := c.restoreAttributes(dir, fd, rel, &e, 0o700); err != nil {
		return err
	}
	sub, err := unix.Openat(fd, e.name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	opaque := hidden || hasXattr(sub, "user.overlay.opaque")
	perm := fs.FileMode(e.st.Mode & 0o777)
	n := e.n
	if merged {
		n.pin()
		n.origin.info = e.live
		if perm != e.live.Mode().Perm() {
			n.mode, n.modeSet = n.mode&^fs.ModePerm|perm, true
		}
		// A change of an entry sets the time, too. Only an older time was set on purpose.
		if mtim := e.st.Mtim.Nano(); mtim < c.since && mtim != rootedfs.StatOf(e.live).Mtim {
			n.times = &stamps{atim: e.st.Atim.Nano(), mtim: mtim, setAtim: true, setMtim: true}
		}
	} else {
		if n, err = c.create(dir, e.name, fs.ModeDir|perm, u); err == nil {
			err = stripXattrs(fmt.Sprintf("/proc/self/fd/%d/%s", fd, e.name))
		}
		if err != nil {
			unix.Close(sub)
			return err
		}
	}
	return c.collectDir(n, sub, rel, opaque && merged)
}

// create makes a node of the layer under a name that is free in the tree.
func (c *collector) create(dir *Node, name string, mode fs.FileMode, u *upper) (*Node, error) {
	if err := c.tree.reserveName(dir, name, nil); err != nil {
		return nil, err
	}
	c.tree.lastSerial++
	n := &Node{mode: mode, createMode: mode, serial: c.tree.lastSerial, cost: int64(nodeBytes + len(name)), upper: u}
	dir.pin()
	dir.attach(name, n)
	n.pinned = true
	return n, nil
}

// refuseVanished returns a clash for a file that the overlay has copied from a file of the
// host which somebody has removed since.
func (c *collector) refuseVanished(dir *Node, fd int, name, rel string) error {
	if dir.origin == nil {
		return nil
	}
	live, err := c.cur.StatOrigin(dir)
	if err != nil || rootedfs.StatOf(live).Ctim < c.since {
		return err
	}
	if _, err := unix.Lgetxattr(fmt.Sprintf("/proc/self/fd/%d/%s", fd, name), originXattr, nil); err == nil {
		return c.clash(rel, "removed while the command ran")
	}
	return nil
}

func readlink(dir int, name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// prepareForRename removes the attributes of the overlay from a file of the upper layer before
// its rename to the host, and waits until the disk has it, if wait is set. Links are skipped.
func (u *upper) prepareForRename(wait bool) error {
	fd, err := unix.Open(u.path(), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == unix.ELOOP && u.target != "" {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = stripXattrs(u.path())
	if err == nil && wait {
		err = unix.Fsync(fd)
	}
	return err
}

// sync waits until the disk has all files of the layer's file system.
func (l *Layer) sync() error {
	f, err := os.Open(filepath.Clean(l.Upper))
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}
