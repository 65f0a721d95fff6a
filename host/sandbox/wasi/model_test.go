//go:build unix

package wasi

import (
	"path"
	"strings"
)

// maxModelLinks is a number of links that a name may have with every root.
const maxModelLinks = 8

// model is a plain file system in memory, with which the FS is compared. It knows nothing
// of hosts, handles or stages.
type model struct {
	root *modelNode
}

type modelNode struct {
	kind      FileType
	content   []byte
	target    string
	entries   map[string]*modelNode
	parent    *modelNode
	mtim      int64  // if set by the guest, else zero
	mode      string // if written through: the mode of the last file it replaced
	firstMode string // its mode when it was made
	staged    string // on a stage: "own", or the mode of the file whose place it has
	gone      bool
}

func newModelDir(up *modelNode) *modelNode {
	return &modelNode{kind: Directory, entries: map[string]*modelNode{}, parent: up}
}

// put makes a starting file of a test.
func (m *model) put(name string, n *modelNode) {
	dir := m.root
	parts := strings.Split(name, "/")
	for _, p := range parts[:len(parts)-1] {
		dir = dir.entries[p]
	}
	n.parent, n.firstMode, n.staged = dir, n.mode, n.mode
	dir.entries[parts[len(parts)-1]] = n
}

// find returns the directory of a name, the last name in it, and the node there. linked
// is set if a link at the end led there.
func (m *model) find(name string, follow bool) (dir *modelNode, last string, n *modelNode, linked bool, _ Errno) {
	todo := split(path.Clean("/" + name))
	dir = m.root
	for links := 0; len(todo) > 0; {
		last, todo = todo[0], todo[1:]
		if last == ".." {
			if dir == m.root {
				return nil, "", nil, false, EPERM
			}
			dir = dir.parent
			continue
		}
		n := dir.entries[last]
		end := len(todo) == 0
		switch {
		case n == nil && end:
			return dir, last, nil, linked, 0
		case n == nil:
			return nil, "", nil, false, ENOENT
		case n.kind == SymbolicLink && (!end || follow):
			if links++; links > maxModelLinks {
				return nil, "", nil, false, ELOOP
			}
			if n.target[0] == '/' {
				return nil, "", nil, false, EPERM
			}
			linked = linked || end
			todo = append(split(n.target), todo...)
		case end:
			return dir, last, n, linked, 0
		case n.kind != Directory:
			return nil, "", nil, false, ENOTDIR
		default:
			dir = n
		}
	}
	return dir, ".", dir, linked, 0
}

type modelFile struct {
	n                  *modelNode
	pos                int64
	readable, writable bool
	append             bool
}

func (m *model) open(name string, flag Flag) (*modelFile, Errno) {
	change := flag&accessMask != 0 || flag&(Create|Truncate|Append) != 0
	excl := flag&Create != 0 && flag&Exclusive != 0
	dir, last, n, linked, errno := m.find(name, flag&NoFollow == 0 && !excl)
	switch {
	case errno != 0:
		return nil, errno
	case n != nil && excl:
		return nil, EEXIST
	case n == nil && (flag&Create == 0 || linked):
		return nil, ENOENT
	case n == nil:
		n = &modelNode{kind: RegularFile, parent: dir}
		dir.entries[last] = n
	case n.kind == SymbolicLink:
		return nil, ELOOP
	case n.kind == Directory && change:
		return nil, EISDIR
	}
	if n.kind != Directory && flag&DirectoryOnly != 0 {
		return nil, ENOTDIR
	}
	if flag&Truncate != 0 && len(n.content) > 0 {
		n.resize(0)
	}
	return &modelFile{n: n, readable: flag&accessMask != WriteOnly, writable: flag&accessMask != 0, append: flag&Append != 0}, 0
}

func (n *modelNode) resize(size int) {
	n.mtim = 0
	for len(n.content) < size {
		n.content = append(n.content, 0)
	}
	n.content = n.content[:size]
}

func (f *modelFile) pread(size int, off int64) (string, Errno) {
	if !f.readable {
		return "", EBADF
	}
	off = min(off, int64(len(f.n.content)))
	end := min(off+int64(size), int64(len(f.n.content)))
	return string(f.n.content[off:end]), 0
}

func (f *modelFile) pwrite(p string, off int64) (int64, Errno) {
	if !f.writable {
		return 0, EBADF
	}
	if f.append {
		off = int64(len(f.n.content))
	}
	if p == "" {
		return off, 0
	}
	f.n.mtim = 0
	if end := int(off) + len(p); end > len(f.n.content) {
		f.n.resize(end)
	}
	copy(f.n.content[off:], p)
	return off + int64(len(p)), 0
}

func (m *model) mkdir(name string) Errno {
	dir, last, n, _, errno := m.find(name, false)
	switch {
	case errno != 0:
		return errno
	case n != nil:
		return EEXIST
	}
	dir.entries[last] = newModelDir(dir)
	return 0
}

func (m *model) remove(name string, isDir bool) Errno {
	dir, last, n, _, errno := m.find(name, false)
	switch {
	case errno != 0:
		return errno
	case last == ".":
		return EPERM
	case n == nil:
		return ENOENT
	case isDir && n.kind != Directory:
		return ENOTDIR
	case !isDir && n.kind == Directory:
		return EISDIR
	case len(n.entries) > 0:
		return ENOTEMPTY
	}
	n.gone = true
	delete(dir.entries, last)
	return 0
}

func (m *model) rename(from, to string) Errno {
	dir, last, n, _, errno := m.find(from, false)
	switch {
	case errno != 0:
		return errno
	case n == nil:
		return ENOENT
	}
	from, to = path.Clean(from), path.Clean(to)
	if n.kind == Directory && strings.HasPrefix(to, from+"/") {
		return EINVAL
	}
	toDir, toLast, dst, _, errno := m.find(to, false)
	if errno != 0 {
		return errno
	}
	switch {
	case n == dst:
		return 0
	case dst != nil && dst.kind == Directory && n.kind != Directory:
		return EISDIR
	case dst != nil && dst.kind != Directory && n.kind == Directory:
		return ENOTDIR
	case dst != nil && len(dst.entries) > 0:
		return ENOTEMPTY
	}
	for up := toDir; up != nil; up = up.parent {
		if up == n {
			return EINVAL
		}
	}
	taken := n.firstMode
	if dst != nil {
		dst.gone = true
		if dst.kind == RegularFile && n.kind == RegularFile {
			n.mode, taken = dst.mode, dst.staged
		}
	}
	n.staged = taken
	delete(dir.entries, last)
	toDir.entries[toLast], n.parent = n, toDir
	return 0
}

// tree describes every node, by name.
func (m *model) tree(staged bool) map[string]string {
	out := map[string]string{}
	var visit func(name string, n *modelNode)
	visit = func(name string, n *modelNode) {
		switch n.kind {
		case Directory:
			out[name] = "dir"
			for child, c := range n.entries {
				visit(path.Join(name, child), c)
			}
		case SymbolicLink:
			out[name] = "-> " + n.target
		default:
			mode := n.mode
			if staged {
				mode = n.staged
			}
			out[name] = "file " + mode + " " + string(n.content)
		}
	}
	visit(".", m.root)
	return out
}
