package main

import (
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/guests/git/repo"
)

// file is one side of a change.
type file struct {
	path       string
	mode       uint32 // 0: it does not exist
	id         repo.ID
	inWorktree bool // it is in the worktree, and id is not known
}

func (f file) exists() bool { return f.mode != 0 }

// change is a file that differs.
type change struct {
	from, to file
	score    int // of a rename, in percent
}

// path is the name under which it is listed.
func (ch *change) path() string {
	if ch.to.exists() {
		return ch.to.path
	}
	return ch.from.path
}

func (ch *change) isRename() bool {
	return ch.from.exists() && ch.to.exists() && ch.from.path != ch.to.path
}

// statusLetter is how git calls it.
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

// maxChanges is how many files may differ.
var maxChanges = 50_000

const (
	// maxTreeDepth is how deep a tree may be.
	maxTreeDepth = 500
	// maxTrees is how many trees are gone into.
	maxTrees = 20_000
)

// treeDiffer compares trees.
type treeDiffer struct {
	*call
	all     bool               // paths that the call does not cover, too
	each    func(change) error // called with each change; nil: changes has them
	changes []change
	seen    int // trees
}

// diffTrees lists what differs between two trees, in the order of paths. The zero
// ID is an empty tree.
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

// enter bounds what trees can be that hold one another.
func (d *treeDiffer) enter(depth int) error {
	if depth > maxTreeDepth {
		return repo.Corrupt("trees are nested deeper than %d", maxTreeDepth)
	}
	if d.seen++; d.seen > maxTrees {
		return repo.TooLarge("more than %d directories differ; name a path", maxTrees)
	}
	return nil
}

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

// orderName is by what git orders the entries of a tree.
func orderName(e repo.Entry) string {
	if repo.Type(e.Mode) == repo.ModeTree {
		return e.Name + "/"
	}
	return e.Name
}

// entries compares two entries of the same name, of which one may be missing.
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

// diffIndex lists what differs between a tree and the index.
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

type indexDiffer struct {
	treeDiffer
	x  *repo.Index
	at int // in the entries of x
}

// tree goes along the index and a tree, both in the order of paths.
func (d *indexDiffer) tree(id repo.ID, dir string, depth int) error {
	if err := d.enter(depth); err != nil {
		return err
	}
	if d.at < len(d.x.Entries) {
		if n := d.x.MatchingEntries(dir, id, d.at); n > 0 {
			d.at += n
			return nil
		}
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
				d.at++ // a conflict is told otherwise
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

// addUntil adds the files of the index that come before a path, or all that are left;
// the tree does not have them.
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
