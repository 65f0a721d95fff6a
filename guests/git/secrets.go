package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/guests/git/repo"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/sdk/go/config"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// hiddenName is what the module is configured with: the paths that a policy hides from
// tools, a line each. hiddenAll stands for more than can be said.
const (
	hiddenName = "hidden"
	hiddenAll  = "*"
)

// configured is the value; tests have one of their own.
var configured = func() string {
	list, _ := config.Get(hiddenName)
	return list
}

// hide finds which paths of the repository a policy hides: those of any of its worktrees.
func (c *call) hide() error {
	list := configured()
	if list == "" {
		return nil
	}
	if list == hiddenAll {
		return tool.Denied("the policy hides more paths than this tool can leave out (files.hidden); do without it")
	}
	tops, all := c.Worktrees()
	if !all && c.Operation != "secrets" { // that one the host asks for
		return tool.Denied("the policy hides paths (files.hidden), and it cannot be told where the files of this repository are; do without it")
	}
	for _, top := range tops {
		for name := range strings.SplitSeq(list, "\n") {
			if rel, err := filepath.Rel(top, name); err == nil && filepath.IsLocal(rel) {
				c.hides = append(c.hides, filepath.ToSlash(rel))
			}
		}
	}
	return nil
}

// hidden reports whether a policy hides a path of the repository: it is shown of no
// revision.
func (c *call) hidden(path string) bool {
	for _, h := range c.hides {
		if h == "." || len(path) >= len(h) && strings.EqualFold(path[:len(h)], h) && (len(path) == len(h) || path[len(h)] == '/') {
			return true
		}
	}
	return false
}

// alias reports whether a content is, in the index of a repository that the objects can
// come from, that of a file which must not be shown: an index and a tree can give it any
// name. It is looked at where somebody could have made one without reading the content:
// of an index, and in a repository that borrows objects.
func (c *call) alias(id repo.ID, path string, staged bool) bool {
	if id == emptyBlob || !staged && !c.Borrows() {
		return false
	}
	if _, secret := paths.Read(c.abs(path)); secret {
		return false // it is asked about by its own name
	}
	var tops []string
	if c.indexes == nil {
		tops, _ = c.Worktrees()
	}
	switch {
	case c.indexes != nil:
	case c.indexed != nil && !c.Borrows() && len(tops) == 1:
		c.indexes = []*repo.Index{c.indexed}
	default:
		c.indexes = []*repo.Index{}
		_ = c.AllIndexes(func(x *repo.Index) { c.indexes = append(c.indexes, x) }) // as far as they can be read
	}
	begin := binary.LittleEndian.Uint64(id[:]) // most of the time of a large diff could be spent in here
	for _, x := range c.indexes {
		c.Spend(len(x.Entries) / perEntry)
		for i := range x.Entries {
			if e := &x.Entries[i]; binary.LittleEndian.Uint64(e.ID[:]) == begin && e.ID == id {
				if _, secret := paths.Read("/" + e.Path); secret || c.hidden(e.Path) {
					return true
				}
			}
		}
	}
	return false
}

var emptyBlob = hashOf(nil)

// perEntry is how many entries of an index are compared for a unit of work.
const perEntry = 50

const (
	// maxSecrets is how many files that look like secrets are named, and maxSecretName
	// how long a name is, in bytes.
	maxSecrets    = 20
	maxSecretName = 300
	// maxTips is how many commits are named with which a later search can leave off.
	maxTips = 200
	// maxSearch is how much work a search may do, and workMore how much more once
	// something was found.
	maxSearch = 3 * 10_000_000
	workMore  = 1_000_000
)

// secretSearch looks for files that look like secrets in all that a repository holds.
type secretSearch struct {
	*call
	searched
	top   paths.Dir
	seen  map[string]bool
	marks map[repo.ID]uint8
}

// searched is what the host reads.
type searched struct {
	Names   []string `json:"names"`
	Commits int      `json:"commits"` // that were looked at
	Whole   bool     `json:"whole"`   // all was looked at
	Tips    []string `json:"tips"`    // commits before which nothing was found, and none before another
}

// secrets is the operation of which no schema tells: the host alone asks for it. The
// revision names commits before which a search has found nothing.
func (c *call) secrets() error {
	c.Allow(maxSearch)
	s := &secretSearch{call: c, seen: map[string]bool{}, marks: map[repo.ID]uint8{}, searched: searched{Names: []string{}, Tips: []string{}, Whole: true}}
	if s.top = paths.DirOf("/"); filepath.Base(c.GitDir) == ".git" {
		s.top = paths.DirOf(filepath.ToSlash(filepath.Dir(c.GitDir)))
	}
	err := s.search()
	if err != nil && err != errFull && !repo.IsSpent(err) {
		return err
	}
	s.Whole = s.Whole && err == nil
	data, err := json.Marshal(s.searched)
	c.page.out.Write(data)
	return err
}

func (s *secretSearch) search() error {
	if err := s.Indexes(func(x *repo.Index) {
		for i := range x.Entries {
			s.Whole = s.look(x.Entries[i].Path) == nil && s.Whole
		}
	}); err != nil {
		s.Whole = false
	}
	from, err := s.tips()
	if err != nil {
		return err
	}
	var known []*repo.Link
	for name := range strings.FieldsSeq(s.Revision) {
		if id, err := s.Rev(name); err == nil {
			if l, err := s.Link(id); err == nil {
				known = append(known, l)
				s.marks[l.ID] = isTip
			}
		}
	}
	w := s.walk(from...)
	if len(known) > 0 {
		if err := s.pass(w.exclude(known, from)); err != nil {
			return err
		}
	}
	for {
		c, err := w.next()
		if err := s.pass(err); err != nil {
			return err
		}
		if c == nil && err == nil {
			s.Whole = s.Whole && !w.cut
			s.leaveOff()
			return nil
		}
		if c == nil {
			continue
		}
		s.Commits++
		s.mark(c.ID, isTip)
		for _, id := range c.Parents {
			s.mark(id, isParent)
		}
		var before repo.ID
		if len(c.Parents) > 0 {
			if p, err := s.Parent(c, 0); err == nil {
				before = p.Tree
			}
		}
		if err := s.trees(before, c.Tree); err != nil {
			return err
		}
	}
}

// Marks of commits that a later search could leave off with.
const (
	isTip    = 1 // it was looked at, now or before
	isParent = 2 // of one that was
)

func (s *secretSearch) mark(id repo.ID, as uint8) {
	if was, ok := s.marks[id]; ok {
		s.marks[id] = was | as
	}
}

// leaveOff finds the tips for a later search. There is none where the history ends early:
// what is before can still come.
func (s *secretSearch) leaveOff() {
	for id, mark := range s.marks {
		if mark == isTip {
			s.Tips = append(s.Tips, id.String())
		}
	}
	if slices.Sort(s.Tips); len(s.Tips) > maxTips || s.Shallow() {
		s.Tips = []string{}
	}
}

// tips are the commits by which a history is found.
func (s *secretSearch) tips() (from []*repo.Link, err error) {
	ids, more, err := s.call.Tips()
	if err != nil {
		return nil, err
	}
	s.Whole = s.Whole && !more
	for _, id := range ids {
		l, err := s.tip(id, 0)
		if err := s.pass(err); err != nil {
			return nil, err
		}
		if l != nil {
			from = append(from, l)
			s.marks[l.ID] = 0
		}
	}
	return from, nil
}

// tip returns a commit, or looks at what is none.
func (s *secretSearch) tip(id repo.ID, depth int) (*repo.Link, error) {
	kind, err := s.Kind(id)
	switch {
	case err != nil: // also what is missing: it can come without a change of what names it
		return nil, err
	case kind == repo.KindCommit:
		return s.Link(id)
	case kind == repo.KindTree:
		return nil, s.trees(repo.ID{}, id)
	case kind == repo.KindTag && depth < maxTags:
		t, err := s.Tag(id)
		if err != nil {
			return nil, err
		}
		return s.tip(t.Object, depth+1)
	}
	return nil, nil
}

// trees looks at what a tree has that another has not.
func (s *secretSearch) trees(from, to repo.ID) error {
	d := treeDiffer{call: s.call, all: true, each: func(ch change) error {
		if ch.from.exists() {
			return nil
		}
		return s.look(ch.to.path)
	}}
	return s.pass(d.trees(from, to, "", 0))
}

// pass lets a search go on past what cannot be read, which is then not whole.
func (s *secretSearch) pass(err error) error {
	if err == nil || err == errFull || repo.IsSpent(err) {
		return err
	}
	s.Whole = false
	return s.Check()
}

// look looks at the name of a file.
func (s *secretSearch) look(path string) error {
	if !s.looksSecret(path) || s.seen[path] {
		return nil
	}
	if len(s.Names) == 0 {
		s.Allow(workMore)
	}
	if len(s.Names) == maxSecrets {
		return errFull
	}
	s.seen[path] = true
	s.Names = append(s.Names, path[:min(len(path), maxSecretName)])
	return nil
}

// looksSecret goes along a path as whoever walks the files does.
func (s *secretSearch) looksSecret(path string) bool {
	dir := s.top
	for {
		name, rest, isDir := strings.Cut(path, "/")
		found, _ := dir.Find(name)
		if found.Hidden != nil && (!isDir || found.SecretAll) {
			return true
		}
		if !isDir {
			return false
		}
		dir, path = dir.Enter(name), rest
	}
}

var errHidden = errors.New("the policy hides it from tools; do without it")
