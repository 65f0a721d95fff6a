package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/guests/git/repo"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/sdk/go/config"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// hiddenName is the name of the configuration value with the paths of a repository that a
// policy hides from tools, one a line. Further lines of the name identify the repository to
// the host: its git directory, its main worktree and another worktree, each empty if unknown.
// Only the host reads the configuration of the repository, which can name other worktrees.
// notKnown is the host's answer if it cannot find the paths, and to a name without further
// lines if the policy hides any path.
const (
	hiddenName = "hidden"
	notKnown   = "*"
)

// configValue returns a configuration value of the module; tests replace it.
var configValue = func(name string) string {
	value, _ := config.Get(name)
	return value
}

// loadHidden fills c.hiddenPaths with the paths that a policy hides in some worktree of the
// repository, or of those from which it borrows objects. It fails if they are not known. For
// the operation secrets it does nothing.
func (c *call) loadHidden() error {
	if configValue(hiddenName) == "" || c.Operation == "secrets" { // only the host uses this operation
		return nil
	}
	for i, dir := range c.ObjectGitDirs() {
		question := []string{hiddenName, dir, "", ""}
		switch {
		case i > 0:
		case c.GitDir == c.CommonDir:
			question[2] = c.Worktree
		default:
			question[3] = c.Worktree
		}
		hidden, name := notKnown, strings.Join(question, "\n")
		if strings.Count(name, "\n") == 3 && utf8.ValidString(name) {
			hidden = configValue(name)
		}
		if hidden == notKnown {
			return tool.Denied("the policy hides paths (files.hidden), and it cannot be told which of them are in this repository; do without it")
		}
		c.hiddenPaths = slices.AppendSeq(c.hiddenPaths, strings.FieldsFuncSeq(hidden, func(r rune) bool { return r == '\n' }))
	}
	return nil
}

// looksSecret reports whether a path of the repository looks like that of a secret.
func (c *call) looksSecret(path string) bool {
	top := c.Worktree
	if dir, name := filepath.Split(c.GitDir); top == "" && name == ".git" {
		top = dir
	}
	_, secret := paths.SpecialForRead(top + "/" + path)
	return secret
}

// isHidden reports whether a policy hides a path of the repository, in all revisions.
func (c *call) isHidden(path string) bool {
	for _, h := range c.hiddenPaths {
		if h == "." || len(path) >= len(h) && strings.EqualFold(path[:len(h)], h) && (len(path) == len(h) || path[len(h)] == '/') {
			return true
		}
	}
	return false
}

// isSecretAlias reports whether an object is, by some index, also the content of a file that
// must not be shown: other entries, of an index or a tree, can name the object under any path.
// It checks this only where somebody could have made such an entry without reading the
// content: in an index (staged is set), or if the repository borrows objects. The result is
// false if path looks like a secret itself, which the caller checks.
func (c *call) isSecretAlias(id repo.ID, path string, staged bool) bool {
	if id == emptyBlob || !staged && len(c.ObjectGitDirs()) == 1 || c.looksSecret(path) { // the caller checks paths that look like secrets
		return false
	}
	if c.indexes == nil {
		for x, err := range c.Indexes(c.comparedIndex) {
			if err == nil {
				c.indexes = append(c.indexes, x)
			}
		}
	}
	begin := binary.LittleEndian.Uint64(id[:]) // a fast comparison: a large diff could spend most of its time here
	for _, x := range c.indexes {
		c.Spend(len(x.Entries) / entriesPerUnit)
		for i := range x.Entries {
			if e := &x.Entries[i]; binary.LittleEndian.Uint64(e.ID[:]) == begin && e.ID == id && (c.looksSecret(e.Path) || c.isHidden(e.Path)) {
				return true
			}
		}
	}
	return false
}

var emptyBlob = hashOf(nil)

const (
	entriesPerUnit  = 50             // index entries that are compared per unit of work
	maxSecrets      = 20             // listed files that look like secrets; with more, Whole is false
	maxSecretName   = 300            // bytes of the path of such a file; a longer one is cut
	maxTips         = 200            // commits in Tips; with more, Tips is empty
	maxSearch       = 3 * 10_000_000 // units of work of a search, which then ends
	extraSearchWork = 1_000_000      // units of work of a search after its first finding
)

// secretSearch searches a whole repository for files whose names look like secrets. Its
// exported fields are the result that the host reads.
type secretSearch struct {
	call *call
	seen map[string]bool // paths in Names, uncut

	Names   []string `json:"names"`   // paths that look like secrets
	Commits int      `json:"commits"` // number of searched commits
	Whole   bool     `json:"whole"`   // set if everything was searched, but for histories of earlier Tips
	Tips    []string `json:"tips"`    // IDs of commits that a later search can leave out, with histories
}

// secrets is the operation secrets, which the schema does not mention: only the host uses it.
// The revision of the call lists the Tips of an earlier search that has found nothing.
func (c *call) secrets() error {
	c.AllowMore(maxSearch)
	s := &secretSearch{call: c, seen: map[string]bool{}, Names: []string{}, Tips: []string{}}
	err := s.search()
	if err != nil && err != errFull && !repo.IsSpent(err) {
		return err
	}
	// A shallow clone can get older commits later.
	if s.Whole = s.Whole && err == nil; c.Shallow() || len(s.Tips) > maxTips {
		s.Tips = s.Tips[:0]
	}
	data, err := json.Marshal(s)
	c.page.out.Write(data)
	return err
}

func (s *secretSearch) search() error {
	s.Whole = true
	for x, err := range s.call.Indexes(nil) {
		s.Whole = s.Whole && err == nil
		for i := range x.Entries {
			s.Whole = s.addIfSecret(x.Entries[i].Path) == nil && s.Whole
		}
	}
	refs, logged, all, err := s.call.Tips()
	if err != nil {
		return err
	}
	s.Whole = s.Whole && all
	var from []*repo.CommitNode
	for i, id := range slices.Concat(refs, logged) {
		l, err := s.commit(id)
		if err := s.tolerate(err); err != nil {
			return err
		}
		if l == nil {
			continue
		}
		if from = append(from, l); i < len(refs) {
			s.Tips = append(s.Tips, l.ID.String())
		}
	}
	var known []*repo.CommitNode
	for name := range strings.FieldsSeq(s.call.Revision) {
		if id, err := s.call.Rev(name); err == nil {
			if l, err := s.call.CommitNode(id); err == nil {
				known = append(known, l)
			}
		}
	}
	w := s.call.newWalk(from...)
	if len(known) > 0 {
		if err := s.tolerate(w.exclude(known, from)); err != nil {
			return err
		}
	}
	for {
		c, err := w.next()
		if err := s.tolerate(err); err != nil {
			return err
		}
		if c == nil && err == nil {
			s.Whole = s.Whole && !w.truncated
			return nil
		}
		if c == nil {
			continue
		}
		s.Commits++
		var before repo.ID
		if len(c.Parents) > 0 {
			if p, err := s.call.Parent(c, 0); err == nil {
				before = p.Tree
			}
		}
		if err := s.trees(before, c.Tree); err != nil {
			return err
		}
	}
}

// commit returns the commit with this ID, and follows tags; nil: the object is no commit. If
// it is a tree, commit searches it for secrets at once.
func (s *secretSearch) commit(id repo.ID) (*repo.CommitNode, error) {
	for range maxTags {
		switch kind, err := s.call.Kind(id); {
		case err != nil: // also a missing object: it can come later without a change of a reference
			return nil, err
		case kind == repo.KindCommit:
			return s.call.CommitNode(id)
		case kind == repo.KindTree:
			return nil, s.trees(repo.ID{}, id)
		case kind == repo.KindBlob:
			return nil, nil
		}
		t, err := s.call.Tag(id)
		if err != nil {
			return nil, err
		}
		id = t.Object
	}
	return nil, nil
}

// trees searches the paths that the tree to has, and the tree from does not have.
func (s *secretSearch) trees(from, to repo.ID) error {
	d := treeDiffer{call: s.call, all: true, each: func(ch change) error {
		if ch.from.exists() {
			return nil
		}
		return s.addIfSecret(ch.to.path)
	}}
	return s.tolerate(d.trees(from, to, "", 0))
}

// tolerate ignores an error about an object that cannot be read, and sets Whole to false. It
// returns errors that end the search.
func (s *secretSearch) tolerate(err error) error {
	if err == nil || err == errFull || repo.IsSpent(err) {
		return err
	}
	s.Whole = false
	return s.call.Check()
}

// addIfSecret adds a path to Names if it looks like a secret. It may return errFull.
func (s *secretSearch) addIfSecret(path string) error {
	if !s.call.looksSecret(path) || s.seen[path] {
		return nil
	}
	if len(s.Names) == 0 {
		s.call.AllowMore(extraSearchWork)
	}
	if len(s.Names) == maxSecrets {
		return errFull
	}
	s.seen[path] = true
	s.Names = append(s.Names, path[:min(len(path), maxSecretName)])
	return nil
}

var errHidden = errors.New("the policy hides it from tools; do without it")
