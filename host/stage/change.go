package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/tool"
)

// change is a [tool.Change] with its nodes.
type change struct {
	kind     tool.ChangeKind
	tree     *Tree
	n        *Node // as it is afterwards; nil if gone
	original *Node // what the host has in that place, or had where n comes from

	path  string // in the tree: of n, or of was if that is gone
	depth int    // of path
}

// changeSet is changes in no order.
func changeSet(all []change) map[change]bool {
	out := make(map[change]bool, len(all))
	for _, c := range all {
		out[c] = true
	}
	return out
}

// lister finds the changes of all trees.
type lister struct {
	ctx       context.Context
	most      int // changes
	out       []change
	pathBytes int
	newBytes  int64 // of files that a commit would write
}

// errTooMuch is of changes that take too long to be looked through and made.
var errTooMuch = errors.New("these are too many changes for one call; divide them among several")

func (s *lister) add(c change) error {
	s.pathBytes += len(c.path)
	if c.n != nil && c.n.data != nil && c.isNewOnHost() {
		s.newBytes += c.n.data.size
	}
	switch {
	case len(s.out) == s.most:
		return fmt.Errorf("%w: more than %d files and directories", errTooMuch, s.most)
	case s.newBytes > maxNewBytes:
		return fmt.Errorf("%w: files of more than %d GiB", errTooMuch, maxNewBytes>>30)
	case s.pathBytes > maxPathBytes:
		return fmt.Errorf("%w: names of more than %d MiB", errTooMuch, maxPathBytes>>20)
	}
	c.depth = strings.Count(c.path, "/")
	s.out = append(s.out, c)
	return nil
}

// addRemoved adds what the host has and what is not there any more.
func (s *lister) addRemoved(kind tool.ChangeKind, tree *Tree, was *Node) error {
	return s.add(change{kind: kind, tree: tree, original: was, path: was.origin.path()})
}

// addTree finds the changes of a tree, in no particular order except that a
// directory comes before what is in it.
func (s *lister) addTree(tree *Tree) error {
	replaced := map[*Node]bool{}
	var visit func(dir *Node, prefix string) error
	visit = func(dir *Node, prefix string) error {
		for _, n := range dir.children {
			if err := s.ctx.Err(); err != nil {
				return err
			}
			path := prefix + n.name
			was := dir.displaced[n.name]
			if was != nil && (!was.gone || !was.mode.IsRegular() || !n.mode.IsRegular()) {
				was = nil
			}
			kind, err := s.kindOf(tree, n, was)
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return fmt.Errorf("%s is shorter", tree.hostPath(path))
			}
			if err != nil {
				return err
			}
			if was != nil {
				replaced[was] = true
			}
			switch {
			case kind == "":
			case was == nil && n.origin != nil:
				err = s.add(change{kind: kind, tree: tree, n: n, original: n, path: path})
			default:
				err = s.add(change{kind: kind, tree: tree, n: n, original: was, path: path})
				if err == nil && n.origin != nil {
					err = s.addRemoved(tool.Removed, tree, n)
				}
			}
			if err == nil && len(n.children) > 0 {
				err = visit(n, path+"/")
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if tree.top.times.given() {
		if err := s.add(change{kind: tool.TimesChanged, tree: tree, n: tree.top, original: tree.top, path: "."}); err != nil {
			return err
		}
	}
	if err := visit(tree.top, ""); err != nil {
		return err
	}
	for n := range tree.displaced {
		kind := tool.Removed
		switch {
		case !n.gone || replaced[n]:
			continue
		case n.origin.info.IsDir():
			kind = tool.DirectoryRemoved
		}
		if err := s.addRemoved(kind, tree, n); err != nil {
			return err
		}
	}
	return nil
}

// kindOf is what becomes of a name that has a node now and, if was is not nil,
// had another regular file before. Empty is nothing.
func (s *lister) kindOf(tree *Tree, n, was *Node) (tool.ChangeKind, error) {
	switch {
	case was != nil:
		equal, err := sameContent(s.ctx, tree.hostVersion(was), tree.stagedVersion(n))
		switch {
		case err != nil || !equal || n.origin != nil || n.mode.Perm() != was.origin.info.Mode().Perm():
			return tool.Modified, err
		case n.times.given():
			return tool.TimesChanged, nil
		}
		return "", nil
	case n.origin == nil && n.mode.IsDir():
		return tool.DirectoryCreated, nil
	case n.origin == nil:
		return tool.Created, nil
	case !n.atOrigin():
		return tool.Renamed, nil
	}
	if n.data != nil {
		if equal, err := tree.sameBlocks(s.ctx, n); err != nil || !equal {
			return tool.Modified, err
		}
	}
	if n.upper != nil {
		if n.upper.hardLink != nil {
			return tool.Modified, nil // it is one file with another now
		}
		if equal, err := sameContent(s.ctx, tree.hostVersion(n), tree.stagedVersion(n)); err != nil || !equal {
			return tool.Modified, err
		}
	}
	if n.modeSet && n.mode.Perm() != n.origin.info.Mode().Perm() {
		return tool.ModeChanged, nil // or it was away and came back with a mode
	}
	if n.times.given() {
		return tool.TimesChanged, nil
	}
	return "", nil
}

// Changes lists what a commit would do, sorted by Path. It reads what was
// written and compares it with what is there. After the end of the set there
// are none. ctx ends it. An error wraps [policy.ErrChanged] if what the host
// has cannot be compared any more.
func (s *Set) Changes(ctx context.Context) ([]tool.Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Ended() {
		return nil, nil
	}
	if s.failure != nil {
		return nil, s.failure
	}
	all, err := s.changes(ctx)
	if err != nil {
		return nil, fmt.Errorf("compare what is staged: %w", err)
	}
	s.lastListed = changeSet(all)
	heads := map[string]bool{}
	for _, c := range all {
		if c.n != nil && c.tree.layer != nil && strings.HasSuffix(c.path, "HEAD") {
			heads[c.tree.hostPath(c.path)] = true
		}
	}
	out := make([]tool.Change, 0, len(all))
	for _, c := range all {
		shown := tool.Change{Kind: c.kind, Path: c.tree.hostPath(c.path)}
		if c.tree.layer != nil { // a guest has been refused
			shown.InRepository = inRepository(heads, shown.Path, c.n != nil && c.n.mode.Type() == fs.ModeSymlink)
		}
		if c.original != nil {
			shown.Before = c.tree.hostVersion(c.original)
		}
		if c.n != nil {
			shown.After = c.afterVersion()
		}
		if c.kind == tool.Renamed {
			shown.From = c.tree.hostPath(c.original.origin.path())
		}
		out = append(out, shown)
	}
	slices.SortFunc(out, func(a, b tool.Change) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(b.Kind, a.Kind)) // removed before created
	})
	return out, nil
}

// inRepository reports whether a file is a part of a repository from which git runs
// something: of one that is there, or that has one of these heads. moves says that
// what is below its name comes with it.
func inRepository(heads map[string]bool, path string, moves bool) bool {
	return slices.ContainsFunc(paths.PossibleRepositories(paths.Guest(path), moves), func(dir string) bool {
		head := filepath.Join(dir, "HEAD")
		if heads[head] {
			return true
		}
		_, err := os.Lstat(head)
		return err == nil
	})
}

// afterVersion is what a commit makes.
func (c *change) afterVersion() *tool.Version {
	v := c.tree.stagedVersion(c.n)
	if c.isNewOnHost() || c.n.modeSet {
		v.Mode = v.Mode.Type() | v.Mode.Perm() // nothing else is set
	}
	if t := c.n.times; t != nil && t.setMtim && (c.n.upper == nil || c.onlyAttributes()) {
		mtim := time.Unix(0, t.mtim)
		v.ModTime = &mtim
	}
	return v
}

// isNewOnHost reports whether the node comes on the host as something new. One that
// was written with what it had does not.
func (c *change) isNewOnHost() bool { return c.n.fresh() && !c.onlyAttributes() }

// onlyAttributes reports whether nothing else changes of what the host has.
func (c *change) onlyAttributes() bool {
	return (c.kind == tool.TimesChanged || c.kind == tool.ModeChanged) && c.n == c.original
}

func (s *Set) changes(ctx context.Context) ([]change, error) {
	all := lister{ctx: ctx, most: maxChanges}
	if len(s.layers) > 0 {
		all.most = maxCollected
	}
	for _, tree := range s.trees {
		switch err := all.addTree(tree); {
		case err == nil:
		case ctx.Err() != nil || errors.Is(err, errTooMuch):
			return nil, err
		default: // the host's files are compared with what was staged
			return nil, fmt.Errorf("%w: %w", policy.ErrChanged, err)
		}
	}
	return all.out, nil
}
