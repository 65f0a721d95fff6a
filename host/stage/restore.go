package stage

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"time"
)

// Find looks up a path in the tree, and follows no symbolic links. It returns the node, or nil
// if the name is free, and its directory. The error is ENOENT if there is no such directory,
// and ENOTDIR if something on the way is no directory.
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

// Put makes a regular file with this content and exactly these permissions. replaced is the
// node that has the name so far, whose owner the new file gets; nil if the name is free.
func (tree *Tree) Put(dir *Node, name string, replaced *Node, perm fs.FileMode, data []byte) error {
	if replaced != nil {
		if err := tree.Remove(replaced); err != nil {
			return err
		}
	}
	n, err := tree.Create(dir, name, perm)
	if err != nil {
		return err
	}
	if replaced != nil {
		n.ownerFrom = replaced.Origin()
	}
	f := &File{tree: tree, n: n}
	if _, err := f.WriteAt(data, 0); err != nil {
		return err
	}
	return tree.SetMode(n, perm)
}

// Symlink makes a symbolic link under a free name.
func (tree *Tree) Symlink(dir *Node, name, target string) error {
	n, err := tree.Create(dir, name, fs.ModeSymlink|fs.ModePerm)
	if err != nil {
		return err
	}
	now := time.Now().UnixNano()
	n.upper = &upper{target: target, times: stamps{atim: now, mtim: now}}
	return nil
}

// SetMode sets the permissions of a file or directory, whatever the umask is.
func (tree *Tree) SetMode(n *Node, perm fs.FileMode) error {
	if n.stale {
		return errReplaced
	}
	n.pin()
	n.mode = n.mode.Type() | perm.Perm()
	n.modeSet = true
	return nil
}
