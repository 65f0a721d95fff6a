package stage

import (
	"os"
	"path/filepath"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// Layer is a directory of the host and what an overlay that is mounted on it needs
// to keep changes apart: the kernel writes them to Upper, and to Work what it has
// for itself. Each layer is mounted once. Whoever has one must Drop it, or give it
// to [Set.Collect].
type Layer struct {
	Host        string // absolute, without links
	Upper, Work string

	area      *Area
	dir       string      // that has both
	hostInfo  os.FileInfo // what Host was like when the layer was made
	canRename bool        // what is in Upper can be renamed to Host

	upper, trash *handle // of a commit
}

// NewLayer makes a layer in the area for a directory of the host. Upper belongs to
// whom that belongs.
func (a *Area) NewLayer(host string) (*Layer, error) {
	st, err := os.Stat(host)
	if err != nil {
		return nil, err
	}
	parent := a.Dir()
	if parent == "" {
		return nil, errNoRoom
	}
	dir, err := os.MkdirTemp(parent, "layer-")
	if err != nil {
		return nil, err
	}
	l := &Layer{Host: host, Upper: filepath.Join(dir, upperName), Work: filepath.Join(dir, "work"), area: a, dir: dir, hostInfo: st, canRename: canRenameBetween(dir, host)}
	for _, name := range []string{l.Upper, l.Work, filepath.Join(dir, trashName)} {
		if err == nil {
			err = os.Mkdir(name, 0o700)
		}
	}
	if err == nil {
		err = copyOwnerAndMode(l.Upper, st)
	}
	if err != nil {
		l.Drop()
		return nil, err
	}
	return l, nil
}

// Current reports whether the directory of the host belongs to whom it did when the
// layer was made, with the mode that it had.
func (l *Layer) Current() bool {
	st, err := os.Stat(l.Host)
	return err == nil && st.Mode() == l.hostInfo.Mode() && sameOwner(st, l.hostInfo)
}

// The names in the directory of a layer.
const (
	upperName = "upper"
	trashName = "trash" // what a commit has removed
)

// Drop drops the changes. Their files are removed in the background.
func (l *Layer) Drop() {
	l.close()
	l.area.discard(l.dir)
}

// upper is what an overlay has of a node.
type upper struct {
	layer    *Layer
	rel      string // in Upper
	size     int64  // of a regular file
	target   string // of a symbolic link
	hardLink *Node  // of a file, another that it is, too
	// tempMode says that we could not have looked into it, and that it has a mode
	// with which we can. Its own is that of the node.
	tempMode bool
	times    stamps
}

// path is where it is.
func (u *upper) path() string { return filepath.Join(u.layer.Upper, u.rel) }

func (u *upper) open() (*os.File, error) {
	return os.OpenFile(u.path(), os.O_RDONLY|rootedfs.Nonblock, 0)
}

// open opens what a commit needs of the layer.
func (l *Layer) open() error {
	if l.upper != nil {
		return nil
	}
	upper, _, err := rootedfs.Open(l.Upper)
	if err != nil {
		return err
	}
	trash, _, err := rootedfs.Open(filepath.Join(l.dir, trashName))
	if err != nil {
		_ = upper.Close()
		return err
	}
	l.upper, l.trash = &handle{root: upper, path: l.Upper}, &handle{root: trash, path: filepath.Join(l.dir, trashName)}
	return nil
}

func (l *Layer) close() {
	if l.upper != nil {
		l.upper.close()
		l.trash.close()
		l.upper, l.trash = nil, nil
	}
}

// trash is where what is removed from a tree goes; nil if it stays beside until
// the end of the commit.
func (c *commit) trash(tree *Tree) *handle {
	if l := tree.layer; l != nil && l.canRename && l.open() == nil {
		return l.trash
	}
	return nil
}
