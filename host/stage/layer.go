package stage

import (
	"os"
	"path/filepath"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// Layer holds two directories for an overlay that is mounted on a directory of the host. The
// kernel writes changed files to Upper, and its own data to Work. A layer is mounted only
// once. Its owner must Drop it, or give it to [Set.Collect].
type Layer struct {
	Host        string // absolute path of the host's directory, without symbolic links
	Upper, Work string

	area      *Area
	dir       string      // contains Upper, Work and the trash
	hostInfo  os.FileInfo // state of Host when the layer was made
	canRename bool        // files can be renamed from Upper to Host
	index     *digest     // of git's index in Host, see NoteIndex; nil: unknown, or there is none

	upper, trash *handle // of Upper, and of the directory for removed files; nil until a commit needs them
}

// NewLayer makes a layer for a directory of the host. Upper gets the permissions of the
// directory and, if we are root, its owner. The error is ENOSPC if the area cannot be made.
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

// indexPath is the path of git's index in a repository.
const indexPath = ".git/index"

// NoteIndex remembers git's index in Host, when a command begins: others may refresh it until
// [Set.Collect].
func (l *Layer) NoteIndex() {
	l.index = nil
	file, err := os.OpenFile(filepath.Join(l.Host, indexPath), os.O_RDONLY|rootedfs.Nonblock, 0)
	if err != nil {
		return
	}
	defer file.Close()
	if st, err := file.Stat(); err == nil && st.Mode().IsRegular() {
		if sum, err := contentDigest(file, indexPath); err == nil {
			l.index = &sum
		}
	}
}

// Current reports whether the owner and the mode of the host's directory are still the same as
// when the layer was made.
func (l *Layer) Current() bool {
	st, err := os.Stat(l.Host)
	return err == nil && st.Mode() == l.hostInfo.Mode() && rootedfs.SameOwner(st, l.hostInfo)
}

// Names in the directory of a layer.
const (
	upperName = "upper"
	trashName = "trash" // files that a commit has removed from the host
)

// Drop forgets the changes. It removes their files in the background.
func (l *Layer) Drop() {
	l.close()
	l.area.discard(l.dir)
}

// upper is the file of a node in the upper layer of an overlay, or a link of [Tree.Symlink],
// which has only target and times.
type upper struct {
	layer    *Layer
	rel      string // path in Layer.Upper
	size     int64  // bytes of a regular file
	target   string // target of a symbolic link
	hardLink *Node  // another node that is the same file; nil: none
	// tempMode is set if its mode lacked rights that the owner needs, so that we have added them.
	// Node.mode is its real mode.
	tempMode bool
	times    stamps
}

func (u *upper) path() string { return filepath.Join(u.layer.Upper, u.rel) }

func (u *upper) open() (*os.File, error) {
	return os.OpenFile(u.path(), os.O_RDONLY|rootedfs.Nonblock, 0)
}

// open opens Upper and the trash.
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

// trash returns the directory of a layer to which removed files are moved. It is nil if they
// stay beside their places until the end of the commit.
func (c *commit) trash(tree *Tree) *handle {
	if l := tree.layer; l != nil && l.canRename && l.open() == nil {
		return l.trash
	}
	return nil
}
