package wasi

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// layer is a writable mount whose changes are staged. It is used from the
// goroutine of the guest, and when that has ended from whoever commits.
type layer struct {
	stage *Stage
	m     *mount
	root  *os.Root // of its own: it outlives the FS
	top   *node
	inos  uint64
	away  map[*node]struct{} // what the host has and the guest moved or removed
}

func (s *Stage) newLayer(m *mount) (*layer, error) {
	root, err := m.root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	return &layer{
		stage: s,
		m:     m,
		root:  root,
		top:   &node{name: ".", mode: m.info.Mode(), origin: &origin{name: ".", info: m.info}, keep: true},
		away:  map[*node]struct{}{},
	}, nil
}

// cursor is a directory of the host that is open, so that the next one need
// not be looked for from the top.
type cursor struct {
	l    *layer
	at   *node
	root *os.Root
	// strict follows no symbolic link even to where the node was found.
	strict bool
}

func (l *layer) cursor() *cursor { return &cursor{l: l, at: l.top, root: l.root} }

func (c *cursor) close() { c.set(c.l.top, c.l.root) }

func (c *cursor) set(n *node, root *os.Root) {
	if c.root != c.l.root && c.root != root {
		_ = c.root.Close()
	}
	c.at, c.root = n, root
}

// to opens the directory of the host that a node was made from. Each one on the
// way must be what it was.
func (c *cursor) to(dir *node) Errno {
	switch {
	case c.at == dir:
		return 0
	case dir == c.l.top:
		c.close()
		return 0
	}
	if errno := c.to(dir.origin.dir); errno != 0 {
		return errno
	}
	root, fi, err := openDir(c.root, dir.origin.name)
	if err != nil {
		return errnoOf(err)
	}
	same := os.SameFile(fi, dir.origin.info)
	if same && c.strict {
		link, err := c.root.Lstat(dir.origin.name)
		same = err == nil && link.IsDir()
	}
	if !same {
		_ = root.Close()
		return errReplaced
	}
	c.set(dir, root)
	return 0
}

// child finds a name in a directory, and what the host says about it now.
func (c *cursor) child(dir *node, name string) (*node, os.FileInfo, Errno) {
	n, known := dir.children[name]
	if !known && (dir.origin == nil || dir.away[name] != nil) {
		return nil, nil, ENOENT
	}
	if known && n.origin == nil {
		return n, nil, 0
	}
	if known && !n.home() {
		fi, errno := c.look(n)
		return n, fi, errno
	}
	switch errno := c.to(dir); errno {
	case 0:
	case ENOENT:
		return nil, nil, errReplaced // the directory is gone, and not the name in it
	default:
		return nil, nil, errno
	}
	fi, err := c.root.Lstat(name)
	switch {
	case err == nil && known && os.SameFile(fi, n.origin.info):
		if !n.keep {
			n.origin.info, n.mode = fi, fi.Mode()
		}
		return n, fi, 0
	case known && (n.dirty() || n.keep && n.mode.IsDir()):
		return n, n.origin.info, 0 // the host has something else there, and the commit will tell
	case err != nil:
		return nil, nil, errnoOf(err)
	}
	n = &node{parent: dir, name: name, mode: fi.Mode(), origin: &origin{dir, name, fi}}
	if fi.IsDir() || known {
		dir.attach(name, n)
	}
	return n, fi, 0
}

// look asks the host about the origin of a node.
func (c *cursor) look(n *node) (os.FileInfo, Errno) {
	switch {
	case n.origin == nil:
		return nil, 0
	case n == c.l.top:
		fi, err := c.l.root.Stat(".")
		return fi, errnoOf(err)
	}
	if errno := c.to(n.origin.dir); errno != 0 {
		return nil, errno
	}
	fi, err := c.root.Lstat(n.origin.name)
	if err != nil || !os.SameFile(fi, n.origin.info) {
		return n.origin.info, 0
	}
	return fi, 0
}

// open opens what the host has for a node, without following a link, and says
// what it is.
func (c *cursor) open(n *node, access int) (*os.File, os.FileInfo, Errno) {
	dir, name := n.origin.dir, n.origin.name
	if dir == nil {
		dir = c.l.top
	}
	if errno := c.to(dir); errno != 0 {
		return nil, nil, errno
	}
	file, err := c.root.OpenFile(name, access|openNonblock, 0)
	if err != nil {
		return nil, nil, errnoOf(err)
	}
	fi, err := file.Stat()
	switch {
	case err != nil:
		_ = file.Close()
		return nil, nil, errnoOf(err)
	case !os.SameFile(fi, n.origin.info):
		_ = file.Close()
		return nil, nil, errReplaced
	}
	return file, fi, 0
}

// walk finds rel, as [mount.walk] does in a mount that is not staged.
func (l *layer) walk(rel, shown string, followLast, slash bool) (p place, steps int, errno Errno) {
	cur := l.cursor()
	defer cur.close()
	p = place{m: l.m, dir: l.m.root, name: ".", shown: shown, slash: slash, up: l.top, node: l.top}
	if p.info, errno = cur.look(l.top); errno != 0 {
		return place{}, 0, errno
	}
	p.trails = l.trails(l.top, p.info, nil)
	trails := [][][]string{p.trails} // of each directory down to p.up
	todo := split(rel)
	links := 0
	for ; len(todo) > 0; steps++ {
		if steps > maxSteps {
			return place{}, steps, ELOOP
		}
		name, last := todo[0], len(todo) == 1
		if name == ".." {
			if p.up == l.top {
				return place{}, steps, errOutside
			}
			p.up, todo = p.up.parent, todo[1:]
			trails = trails[:len(trails)-1]
			p.trails = trails[len(trails)-1]
			continue
		}
		if ends(p.trails, name) {
			return place{}, steps, errOutside
		}
		n, fi, errno := cur.child(p.up, name)
		if errno != 0 {
			if last && errno == ENOENT {
				p.name, p.node, p.info = name, nil, nil
				return p, steps, 0
			}
			return place{}, steps, errno
		}
		if g := l.m.guard; g != nil && n.origin != nil && g.hides(n.origin.info) {
			return place{}, steps, errOutside
		}
		switch {
		case n.mode.Type() == fs.ModeSymlink && (!last || followLast):
			if links++; links > maxLinks {
				return place{}, steps, ELOOP
			}
			target, errno := cur.readlink(n)
			if errno != 0 {
				return place{}, steps, errno
			}
			if target == "" || filepath.IsAbs(target) || target[0] == '/' || filepath.VolumeName(target) != "" {
				return place{}, steps, errOutside
			}
			if last {
				p.linked = true
				p.slash = p.slash || strings.HasSuffix(target, "/")
			}
			todo = append(split(target), todo[1:]...)
			continue
		case last:
			p.name, p.node, p.info = name, n, nodeInfo{n, fi}
			return p, steps, 0
		case !n.mode.IsDir():
			return place{}, steps, ENOTDIR
		}
		p.trails = l.trails(n, fi, p.trails)
		trails = append(trails, p.trails)
		p.up, todo = n, todo[1:]
	}
	// The mount itself, or a symbolic link that ended in "..".
	fi, errno := cur.look(p.up)
	p.name, p.node, p.info = ".", p.up, nodeInfo{p.up, fi}
	return p, steps, errno
}

func (l *layer) trails(n *node, fi os.FileInfo, parent [][]string) [][]string {
	if l.m.guard == nil {
		return nil
	}
	return l.m.guard.from(fi, parent, n.name)
}

// readlink reads a symbolic link, which is always the host's.
func (c *cursor) readlink(n *node) (string, Errno) {
	if errno := c.to(n.origin.dir); errno != 0 {
		return "", errno
	}
	fi, err := c.root.Lstat(n.origin.name)
	if err == nil && !os.SameFile(fi, n.origin.info) {
		return "", errReplaced
	}
	if err != nil {
		return "", errnoOf(err)
	}
	target, err := c.root.Readlink(n.origin.name)
	return target, errnoOf(err)
}

// empty reports whether a directory has nothing in it.
func (l *layer) empty(n *node) (bool, Errno) {
	for _, c := range n.children {
		if !c.home() {
			return false, 0
		}
	}
	if n.origin == nil {
		return true, 0
	}
	cur := l.cursor()
	defer cur.close()
	dir, _, errno := cur.open2dir(n)
	if errno != 0 {
		return false, errno
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(64)
		for _, name := range names {
			if n.away[name] == nil {
				return false, 0
			}
		}
		if err != nil || len(names) == 0 {
			return true, errnoOf(err)
		}
	}
}

// open2dir opens a directory of the host to be listed.
func (c *cursor) open2dir(n *node) (*os.File, os.FileInfo, Errno) {
	if errno := c.to(n); errno != 0 {
		return nil, nil, errno
	}
	dir, err := c.root.Open(".")
	if err != nil {
		return nil, nil, errnoOf(err)
	}
	fi, err := dir.Stat()
	if err != nil {
		_ = dir.Close()
		return nil, nil, errnoOf(err)
	}
	return dir, fi, 0
}

// device is the device that a directory is on, or would be.
func (n *node) device() uint64 {
	for n.origin == nil {
		n = n.parent
	}
	return hostStat(n.origin.info).Dev
}

// move puts a node under another name, where there is nothing.
func (l *layer) move(n, dir *node, name string) {
	n.hold()
	dir.hold()
	l.touch(n.parent)
	l.touch(dir)
	delete(n.parent.children, n.name)
	dir.attach(name, n)
	l.settle(n)
}

// remove takes a node away for good.
func (l *layer) remove(n *node) {
	n.hold()
	l.touch(n.parent)
	delete(n.parent.children, n.name)
	n.gone, n.parent = true, nil
	l.settle(n)
	if n.opens == 0 && n.data != nil {
		n.data.free()
	}
}

// settle notes whether a node is where the host has it.
func (l *layer) settle(n *node) {
	o := n.origin
	switch {
	case o == nil:
	case n.home():
		delete(l.away, n)
		delete(o.dir.away, o.name)
	default:
		l.away[n] = struct{}{}
		if o.dir.away == nil {
			o.dir.away = map[string]*node{}
		}
		o.dir.away[o.name] = n
	}
}

// touch is what a change of its entries does to a directory.
func (l *layer) touch(dir *node) {
	var live os.FileInfo
	if dir.times == nil {
		cur := l.cursor()
		defer cur.close()
		live, _ = cur.look(dir)
	}
	dir.touch(live)
}

// add makes a new file or directory.
func (l *layer) add(dir *node, name string, mode fs.FileMode) *node {
	now := time.Now().UnixNano()
	l.inos++
	n := &node{mode: mode, ino: hashIno(l.m.guest + "\x00" + strconv.FormatUint(l.inos, 10)), times: &stamps{atim: now, mtim: now, ctim: now}}
	dir.hold()
	l.touch(dir)
	dir.attach(name, n)
	n.keep = true
	return n
}
