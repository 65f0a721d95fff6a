package stage

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"time"
)

// Find looks up a name of a tree, part by part, and goes through no link. It returns
// the directory that has it, and what has it; nil if nothing has. A directory on the
// way that is not there, or is something else, is ENOENT or ENOTDIR.
func (tree *Tree) Find(rel string) (dir, n *Node, err error) {
	cur := tree.Cursor()
	cur.strict = true
	defer cur.Close()
	dir = tree.top
	above, name := path.Split(rel)
	for part := range strings.SplitSeq(above, "/") {
		if part == "" {
			continue
		}
		switch dir, _, err = cur.Child(dir, part); {
		case err != nil:
			return nil, nil, err
		case !dir.mode.IsDir():
			return nil, nil, syscall.ENOTDIR
		}
	}
	n, _, err = cur.Child(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return dir, nil, nil
	}
	return dir, n, err
}

// Put makes a regular file with a content, in the place of another one if there is
// one, which gives it its owner.
func (tree *Tree) Put(dir *Node, name string, over *Node, perm fs.FileMode, data []byte) error {
	if over != nil {
		if err := tree.Remove(over); err != nil {
			return err
		}
	}
	n, err := tree.Create(dir, name, perm)
	if err != nil {
		return err
	}
	if over != nil {
		n.ownerFrom = over.Origin()
	}
	f := &File{tree: tree, n: n}
	if _, err := f.WriteAt(data, 0); err != nil {
		return err
	}
	return tree.SetMode(n, perm)
}

// Symlink makes a symbolic link where there is nothing.
func (tree *Tree) Symlink(dir *Node, name, target string) error {
	n, err := tree.Create(dir, name, fs.ModeSymlink|fs.ModePerm)
	if err != nil {
		return err
	}
	now := time.Now().UnixNano()
	n.upper = &upper{target: target, times: stamps{atim: now, mtim: now}}
	return nil
}

// SetMode gives a file or directory these permissions, whatever the umask is.
func (tree *Tree) SetMode(n *Node, perm fs.FileMode) error {
	if n.stale {
		return errReplaced
	}
	n.pin()
	n.mode = n.mode.Type() | perm.Perm()
	n.modeSet = true
	return nil
}
