package main

import (
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/guests/git/repo"
)

// file is one side of a change.
type file struct {
	path       string
	mode       uint32  // git's mode; 0: the file does not exist
	id         repo.ID // zero if inWorktree is set
	inWorktree bool    // set for a file of the worktree, whose id is not known
}

func (f file) exists() bool { return f.mode != 0 }

// change is a file that differs between two sides.
type change struct {
	from, to file
	score    int // similarity of a rename, in percent
}

// path returns the path under which the change is listed: the new one if there is one.
func (ch *change) path() string {
	if ch.to.exists() {
		return ch.to.path
	}
	return ch.from.path
}

func (ch *change) isRename() bool {
	return ch.from.exists() && ch.to.exists() && ch.from.path != ch.to.path
}

// statusLetter returns git's letter for the change: A, D, R, T or M.
func (ch *change) statusLetter() byte {
	switch {
	case !ch.from.exists():
		return 'A'
	case !ch.to.exists():
		return 'D'
	case ch.isRename():
		return 'R'
	case repo.Type(ch.from.mode) != repo.Type(ch.to.mode):
		return 'T'
	}
	return 'M'
}

func sortChanges(changes []change) {
	slices.SortStableFunc(changes, func(a, b change) int { return strings.Compare(a.path(), b.path()) })
}

// maxChanges limits the files that differ between two sides; more are an error.
var maxChanges = 50_000

const (
	maxTreeDepth = 500    // levels of nested directories in a tree; more are an error
	maxTrees     = 20_000 // directories that one comparison enters; more are an error
)

// treeDiffer compares trees.
type treeDiffer struct {
	*call
	all     bool               // set if changes outside of the path of the call are reported, too
	each    func(change) error // called with each change, also hidden ones; nil: changes collects them
	changes []change
	seen    int // number of directories so far, see maxTrees
}

// diffTrees returns the files that differ between two trees, sorted by path. Hidden ones are left
// out, and unless all is set those that the call does not cover. The zero ID is an empty tree.
func (c *call) diffTrees(from, to repo.ID, all bool) ([]change, error) {
	d := treeDiffer{call: c, all: all}
	if err := d.trees(from, to, "", 0); err != nil {
		return nil, err
	}
	sortChanges(d.changes)
	return d.changes, nil
}

func (d *treeDiffer) add(ch change) error {
	if d.each != nil {
		return d.each(ch)
	}
	if !d.all && !d.covers(ch.path()) || d.isHidden(ch.path()) {
		return nil
	}
	if len(d.changes) == maxChanges {
		return repo.TooLarge("more than %d files differ; name a path", maxChanges)
	}
	d.changes = append(d.changes, ch)
	return nil
}

// enter counts a directory. Beyond a limit it fails: hostile trees can contain one another.
func (d *treeDiffer) enter(depth int) error {
	if depth > maxTreeDepth {
		return repo.Corrupt("trees are nested deeper than %d", maxTreeDepth)
	}
	if d.seen++; d.seen > maxTrees {
		return repo.TooLarge("more than %d directories would have to be compared; name a path", maxTrees)
	}
	return nil
}

// trees compares two trees of the directory dir, which ends in a slash or is "".
func (d *treeDiffer) trees(from, to repo.ID, dir string, depth int) error {
	if from == to || !d.all && !d.mayHold(dir) {
		return nil
	}
	if err := d.enter(depth); err != nil {
		return err
	}
	a, err := d.Tree(from)
	if err != nil {
		return err
	}
	b, err := d.Tree(to)
	if err != nil {
		return err
	}
	for len(a) > 0 || len(b) > 0 {
		var x, y repo.Entry
		switch {
		case len(b) == 0:
			x, a = a[0], a[1:]
		case len(a) == 0:
			y, b = b[0], b[1:]
		default:
			switch order := strings.Compare(orderName(a[0]), orderName(b[0])); {
			case order < 0:
				x, a = a[0], a[1:]
			case order > 0:
				y, b = b[0], b[1:]
			default:
				x, y, a, b = a[0], b[0], a[1:], b[1:]
			}
		}
		if err := d.entries(x, y, dir, depth); err != nil {
			return err
		}
	}
	return nil
}

// orderName returns the name by which git sorts an entry of a tree.
func orderName(e repo.Entry) string {
	if repo.Type(e.Mode) == repo.ModeTree {
		return e.Name + "/"
	}
	return e.Name
}

// entries compares two entries of the same name; a zero entry is missing.
func (d *treeDiffer) entries(x, y repo.Entry, dir string, depth int) error {
	if x == y {
		return nil
	}
	var fromTree, toTree repo.ID
	name := max(x.Name, y.Name)
	ch := change{}
	if x.Mode == repo.ModeTree {
		fromTree = x.ID
	} else if x.Mode != 0 {
		ch.from = file{path: dir + name, mode: x.Mode, id: x.ID}
	}
	if y.Mode == repo.ModeTree {
		toTree = y.ID
	} else if y.Mode != 0 {
		ch.to = file{path: dir + name, mode: y.Mode, id: y.ID}
	}
	if ch.from.exists() || ch.to.exists() {
		if err := d.add(ch); err != nil {
			return err
		}
	}
	if fromTree.IsZero() && toTree.IsZero() {
		return nil
	}
	return d.trees(fromTree, toTree, dir+name+"/", depth+1)
}

// diffIndex returns the files that differ between a tree and the index, sorted by path,
// without those with conflicts or that the call does not cover.
func (c *call) diffIndex(tree repo.ID, x *repo.Index) ([]change, error) {
	d := indexDiffer{treeDiffer: treeDiffer{call: c}, x: x}
	if err := d.tree(tree, "", 0); err != nil {
		return nil, err
	}
	if err := d.addUntil(""); err != nil {
		return nil, err
	}
	sortChanges(d.changes)
	return d.changes, nil
}

// indexDiffer compares a tree with the index.
type indexDiffer struct {
	treeDiffer
	x  *repo.Index
	at int // position of the next entry in x.Entries
}

// tree compares the tree of a directory with the entries of the index from d.at on.
func (d *indexDiffer) tree(id repo.ID, dir string, depth int) error {
	if d.at < len(d.x.Entries) {
		if n := d.x.MatchingEntries(dir, id, d.at); n > 0 {
			d.at += n
			return nil
		}
	}
	if err := d.enter(depth); err != nil {
		return err
	}
	entries, err := d.Tree(id)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := dir + e.Name
		if e.Mode == repo.ModeTree {
			if err := d.addUntil(path + "/"); err != nil {
				return err
			}
			if err := d.tree(e.ID, path+"/", depth+1); err != nil {
				return err
			}
			continue
		}
		if err := d.addUntil(path); err != nil {
			return err
		}
		from := file{path: path, mode: e.Mode, id: e.ID}
		if d.at == len(d.x.Entries) || d.x.Entries[d.at].Path != path {
			err = d.add(change{from: from})
		} else if at := &d.x.Entries[d.at]; at.Stage > 0 {
			for d.at < len(d.x.Entries) && d.x.Entries[d.at].Path == path {
				d.at++ // conflicts are reported elsewhere
			}
		} else {
			d.at++
			to := file{path: path, mode: at.Mode, id: at.ID}
			if at.Flags&repo.IntentToAdd != 0 {
				to = file{}
			}
			if from != to {
				err = d.add(change{from: from, to: to})
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addUntil adds the index entries that precede a path as new files, since the tree lacks them.
// "" adds all remaining ones. Conflicts and entries without content are left out.
func (d *indexDiffer) addUntil(path string) error {
	for ; d.at < len(d.x.Entries); d.at++ {
		e := &d.x.Entries[d.at]
		if path != "" && e.Path >= path {
			break
		}
		if e.Stage > 0 || e.Flags&repo.IntentToAdd != 0 {
			continue
		}
		if err := d.add(change{to: file{path: e.Path, mode: e.Mode, id: e.ID}}); err != nil {
			return err
		}
	}
	return nil
}
