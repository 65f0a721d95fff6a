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
	n        *Node // the node after the change; nil if the file is removed
	original *Node // the host's node that is changed, moved, replaced or removed; nil: n is only added

	path  string // path of n in the tree; if n is nil, that of original on the host, relative to the top
	depth int    // number of slashes in path
}

func changeSet(all []change) map[change]bool {
	out := make(map[change]bool, len(all))
	for _, c := range all {
		out[c] = true
	}
	return out
}

// lister collects the changes of all trees.
type lister struct {
	ctx       context.Context
	limit     int // maximum of len(out)
	out       []change
	pathBytes int   // bytes of all paths in out
	newBytes  int64 // bytes of the files that a commit would write anew, see maxNewBytes
}

// errTooMuch is wrapped by the error for more changes than can be examined and made in
// reasonable time, see the limits in bounds.go.
var errTooMuch = errors.New("these are too many changes for one call; divide them among several")

// add adds a change. Beyond a limit it returns an error that wraps errTooMuch.
func (s *lister) add(c change) error {
	s.pathBytes += len(c.path)
	if c.n != nil && c.n.data != nil && c.isNewOnHost() {
		s.newBytes += c.n.data.size
	}
	switch {
	case len(s.out) == s.limit:
		return fmt.Errorf("%w: more than %d files and directories", errTooMuch, s.limit)
	case s.newBytes > maxNewBytes:
		return fmt.Errorf("%w: files of more than %d GiB", errTooMuch, maxNewBytes>>30)
	case s.pathBytes > maxPathBytes:
		return fmt.Errorf("%w: names of more than %d MiB", errTooMuch, maxPathBytes>>20)
	}
	c.depth = strings.Count(c.path, "/")
	s.out = append(s.out, c)
	return nil
}

func (s *lister) addRemoved(kind tool.ChangeKind, tree *Tree, was *Node) error {
	return s.add(change{kind: kind, tree: tree, original: was, path: was.origin.path()})
}

// addTree adds the changes of a tree, in any order.
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

// kindOf returns the kind of the change at the name of n; empty if nothing changes. was is the
// node of the host's regular file at this name if n, also one, has replaced it; otherwise nil.
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
			return tool.Modified, nil // two names are one file now
		}
		if equal, err := sameContent(s.ctx, tree.hostVersion(n), tree.stagedVersion(n)); err != nil || !equal {
			return tool.Modified, err
		}
	}
	if n.modeSet && n.mode.Perm() != n.origin.info.Mode().Perm() {
		return tool.ModeChanged, nil // or the file left its place and came back with another mode
	}
	if n.times.given() {
		return tool.TimesChanged, nil
	}
	return "", nil
}

// Changes lists the changes that a commit would make, sorted by Path. It compares written
// files with those of the host; ctx cancels that. A set that has ended has no changes and no
// error. Before that, but after [Set.Fail], it only returns the error of Fail. The error wraps
// [policy.ErrChanged] if a file of the host cannot be compared any more. Too many changes are
// an error, too.
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
	s.rememberContents(ctx, all)
	heads := map[string]bool{}
	for _, c := range all {
		if c.n != nil && c.tree.layer != nil && strings.HasSuffix(c.path, "HEAD") {
			heads[c.tree.hostPath(c.path)] = true
		}
	}
	out := make([]tool.Change, 0, len(all))
	for _, c := range all {
		shown := tool.Change{Kind: c.kind, Path: c.tree.hostPath(c.path)}
		if c.tree.layer != nil { // guests are refused such changes at once
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

// inRepository reports whether a path is a part of a repository that can make git run
// something. The repository is on the host, or has one of the HEAD files in heads. moves is
// set for a symbolic link, with which everything below its name changes.
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

// afterVersion returns the version of the file after a commit.
func (c *change) afterVersion() *tool.Version {
	v := c.tree.stagedVersion(c.n)
	if c.isNewOnHost() || c.n.modeSet {
		v.Mode = v.Mode.Type() | v.Mode.Perm() // a commit sets no other bits
	}
	if t := c.n.times; t != nil && t.setMtim && (c.n.upper == nil || c.onlyAttributes()) {
		mtim := time.Unix(0, t.mtim)
		v.ModTime = &mtim
	}
	return v
}

// isNewOnHost reports whether a commit writes the node anew. It does not if a file of the host
// was only written with the bytes it had.
func (c *change) isNewOnHost() bool { return c.n.fresh() && !c.onlyAttributes() }

// onlyAttributes reports whether the host keeps its file, and only the times or mode change.
func (c *change) onlyAttributes() bool {
	return (c.kind == tool.TimesChanged || c.kind == tool.ModeChanged) && c.n == c.original
}

// changes returns the changes of all trees, in no particular order. The caller holds s.mu.
func (s *Set) changes(ctx context.Context) ([]change, error) {
	all := lister{ctx: ctx, limit: maxChanges}
	if len(s.layers) > 0 {
		all.limit = maxCollected
	}
	for _, tree := range s.trees {
		switch err := all.addTree(tree); {
		case err == nil:
		case ctx.Err() != nil || errors.Is(err, errTooMuch):
			return nil, err
		default: // a file of the host could not be compared
			return nil, fmt.Errorf("%w: %w", policy.ErrChanged, err)
		}
	}
	return all.out, nil
}
