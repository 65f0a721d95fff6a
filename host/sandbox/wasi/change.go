package wasi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/tool"
)

// change is a [tool.Change] with its nodes.
type change struct {
	kind tool.ChangeKind
	l    *layer
	n    *node // as it is afterwards; nil if gone
	was  *node // what the host has in that place, or had where n comes from
}

func (c *change) path() string {
	if c.n == nil {
		return c.was.origin.path()
	}
	return c.n.path()
}

// changes finds the changes of a layer, in no particular order except that a
// directory comes before what is in it.
func (l *layer) changes() (out []change, _ error) {
	replaced := map[*node]bool{}
	var visit func(dir *node) error
	visit = func(dir *node) error {
		for _, n := range dir.children {
			was := dir.away[n.name]
			if was != nil && (!was.gone || !was.mode.IsRegular() || !n.mode.IsRegular()) {
				was = nil
			}
			kind, err := l.kindOf(n, was)
			if err != nil {
				return err
			}
			if was != nil {
				replaced[was] = true
			}
			switch {
			case kind == "":
			case was == nil && n.origin != nil:
				out = append(out, change{kind, l, n, n})
			default:
				out = append(out, change{kind, l, n, was})
				if n.origin != nil {
					out = append(out, change{tool.Removed, l, nil, n})
				}
			}
			if err := visit(n); err != nil {
				return err
			}
		}
		return nil
	}
	if t := l.top.times; t != nil && (t.setAtim || t.setMtim) {
		out = append(out, change{tool.Times, l, l.top, l.top})
	}
	if err := visit(l.top); err != nil {
		return nil, err
	}
	for n := range l.away {
		switch {
		case !n.gone || replaced[n]:
		case n.origin.info.IsDir():
			out = append(out, change{tool.DirectoryRemoved, l, nil, n})
		default:
			out = append(out, change{tool.Removed, l, nil, n})
		}
	}
	return out, nil
}

// kindOf is what becomes of a name that has a node now and, if was is not nil,
// had another regular file before. Empty is nothing.
func (l *layer) kindOf(n, was *node) (tool.ChangeKind, error) {
	switch {
	case was != nil:
		equal, err := same(l.before(was), l.after(n))
		switch {
		case err != nil || !equal || n.origin != nil || n.mode.Perm() != was.origin.info.Mode().Perm():
			return tool.Modified, err
		case n.times.setAtim || n.times.setMtim:
			return tool.Times, nil
		}
		return "", nil
	case n.origin == nil && n.mode.IsDir():
		return tool.DirectoryCreated, nil
	case n.origin == nil:
		return tool.Created, nil
	case !n.home():
		return tool.Renamed, nil
	}
	if n.data != nil {
		if equal, err := l.sameBlocks(n); err != nil || !equal {
			return tool.Modified, err
		}
	}
	if n.chmod && n.mode.Perm() != n.origin.info.Mode().Perm() {
		return tool.Modified, nil // it was away and came back with a mode
	}
	if t := n.times; t != nil && (t.setAtim || t.setMtim) {
		return tool.Times, nil
	}
	return "", nil
}

// Changes lists what a commit would do, sorted by Path. It reads what was
// written and compares it with what is there. After the end of the stage there
// are none.
func (s *Stage) Changes() ([]tool.Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended() {
		return nil, nil
	}
	all, err := s.changes()
	if err != nil {
		return nil, fmt.Errorf("compare what is staged: %w", err)
	}
	out := make([]tool.Change, 0, len(all))
	for _, c := range all {
		shown := tool.Change{Kind: c.kind, Path: c.l.hostPath(c.path())}
		if c.was != nil {
			shown.Before = c.l.before(c.was).shown()
		}
		if c.n != nil {
			shown.After = c.l.after(c.n).shown()
		}
		if c.kind == tool.Renamed {
			shown.From = c.l.hostPath(c.was.origin.path())
		}
		out = append(out, shown)
	}
	slices.SortFunc(out, func(a, b tool.Change) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return strings.Compare(string(b.Kind), string(a.Kind)) // removed before created
	})
	return out, nil
}

func (s *Stage) changes() ([]change, error) {
	var all []change
	for _, l := range s.layers {
		c, err := l.changes()
		if err != nil {
			return nil, err
		}
		all = append(all, c...)
	}
	return all, nil
}
