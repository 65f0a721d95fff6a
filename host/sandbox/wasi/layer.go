package wasi

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/beneath"
)

// layer is a writable mount whose changes are staged. It is used from the
// goroutine of the guest, and when that has ended from whoever commits.
type layer struct {
	stage *Stage
	m     *mount
	root  beneath.Root // of its own: it outlives the FS
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
		if g := l.m.guard; n.origin != nil && g.hides(n.origin.info) {
			return place{}, steps, errOutside
		}
		switch {
		case n.mode.Type() == fs.ModeSymlink && (!last || followLast):
			if links++; links > l.root.MaxLinks() {
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
	return l.m.guard.from(fi, parent, n.name)
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
	dir, _, errno := cur.list(n)
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

// device is the device that a directory is on, or would be.
func (n *node) device() uint64 {
	for n.origin == nil {
		n = n.parent
	}
	return beneath.StatOf(n.origin.info).Dev
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
	if n.origin == nil {
		l.stage.tree -= n.cost
		l.stage.budget.memory.take(-n.cost)
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

// add makes a new file or directory, which fits.
func (l *layer) add(dir *node, name string, mode fs.FileMode) *node {
	now := time.Now().UnixNano()
	l.inos++
	n := &node{mode: mode, cost: int64(nodeBytes + len(name)), ino: hashIno(l.m.guest + "\x00" + strconv.FormatUint(l.inos, 10)), times: &stamps{atim: now, mtim: now, ctim: now}}
	dir.hold()
	l.touch(dir)
	dir.attach(name, n)
	n.keep = true
	return n
}
