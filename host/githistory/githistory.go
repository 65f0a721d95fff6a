// Package githistory knows what was found in the histories of repositories of git, and
// where a repository has contents. It reads no object: the guest git does, in the
// sandbox, for a repository can come from a stranger. What was found is kept by what the
// references were like then.
//
// Where something was found that looks like a secret, that stays true for as long as the
// directory of objects is the same: what no reference leads to any more can still be read
// there.
package githistory

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/beneath"
	"github.com/stockade-dev/stockade/host/internal/private"
	"github.com/stockade-dev/stockade/host/policy"
)

// Found is what the guest says of a history.
type Found struct {
	Names   []string `json:"names"`
	Commits int      `json:"commits"`
	Whole   bool     `json:"whole"`
	Tips    []string `json:"tips"` // commits before which nothing was found
}

// known is what is kept of a repository.
type known struct {
	Path    string `json:"path"`    // its common git directory
	Objects string `json:"objects"` // which directory of objects it was
	State   string `json:"state"`   // what references, logs and indexes were like
	Found
}

// Store is what is known of all repositories. It is safe for concurrent use.
type Store struct {
	dir string // empty: it is forgotten when this process ends
	mu  sync.Mutex
	of  map[string]known // nil: not read yet
}

// New returns what is kept in a directory, which is made when it is needed. Empty: it is
// kept in memory.
func New(dir string) *Store { return &Store{dir: dir} }

// read reads what is kept, the first time, and forgets repositories that are gone. s.mu
// is held.
func (s *Store) read() {
	if s.of != nil {
		return
	}
	s.of = map[string]known{}
	if s.dir == "" {
		return
	}
	entries, _ := os.ReadDir(s.dir)
	for _, e := range entries {
		name := filepath.Join(s.dir, e.Name())
		var k known
		data, err := os.ReadFile(name)
		if err == nil && json.Unmarshal(data, &k) == nil {
			if _, err = os.Lstat(k.Path); err == nil {
				s.of[k.Path] = k
				continue
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(name)
		}
	}
}

func (s *Store) file(repository string) string {
	return filepath.Join(s.dir, fmt.Sprintf("%x.json", sha256.Sum256([]byte(repository))))
}

// get returns what is kept of a repository, if it is the same still.
func (s *Store) get(repository, objects string) (known, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read()
	k := s.of[repository]
	return k, k.Objects == objects && objects != ""
}

// Known says what is known of a repository as it is now, by its common git directory. ok
// is false if it has to be looked at. One that cannot be told from what it was is not whole.
func (s *Store) Known(repository string) (_ policy.History, ok bool) {
	objects, state := stateOf(repository)
	k, ok := s.get(repository, objects)
	out := policy.History{Repository: repository, Names: k.Names, Whole: k.Whole && state != "", Commits: k.Commits}
	return out, ok && (len(k.Names) > 0 || k.State == state)
}

// Unknown is a repository as it is now, to be looked at.
func (s *Store) Unknown(repository string) policy.UnknownHistory {
	out := policy.UnknownHistory{Repository: repository}
	objects, state := stateOf(repository)
	if k, ok := s.get(repository, objects); ok && k.Whole {
		out.Tips = k.Tips
	}
	out.Learn = func(found []byte) error {
		k := known{Path: repository, Objects: objects, State: state}
		if found != nil && (json.Unmarshal(found, &k.Found) != nil || len(k.Names)+len(k.Tips) > maxFound) {
			k.Found = Found{}
		}
		return s.keep(k)
	}
	return out
}

// maxFound is more names than the guest lists.
const maxFound = 1000

func (s *Store) keep(k known) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read()
	s.of[k.Path] = k
	if s.dir == "" {
		return nil
	}
	data, err := json.Marshal(k)
	if err == nil {
		err = os.MkdirAll(s.dir, 0o700)
	}
	if err != nil {
		return err
	}
	return private.Write(s.file(k.Path), data)
}

// Among lists the repositories in a directory of which it is known that they hold what
// looks like a secret, and whose objects are still where they were: also those that git
// would take for none any more.
func (s *Store) Among(shown func(repository string) bool) (out []policy.History) {
	s.mu.Lock()
	s.read()
	all := make([]string, 0, len(s.of))
	for repository, k := range s.of {
		if len(k.Names) > 0 && shown(repository) {
			all = append(all, repository)
		}
	}
	s.mu.Unlock()
	for _, repository := range all {
		if h, ok := s.Known(repository); ok {
			out = append(out, h)
		}
	}
	return out
}

// maxEntries is how many files and directories of a repository tell its state; tests have
// it be fewer.
var maxEntries = 50_000

// stateOf says which directory of objects a repository has, and what its references and
// its indexes are like, by the names, sizes and times of files. A log changes with its
// reference. No state is that of one that has more files than are looked at.
func stateOf(repository string) (objects, state string) {
	if st, err := os.Stat(filepath.Join(repository, "objects")); err == nil {
		at := beneath.StatOf(st)
		objects = fmt.Sprintf("%d:%d:%d", at.Dev, at.Ino, born(filepath.Join(repository, "objects")))
	}
	var all []byte
	for _, dir := range lenders(repository) {
		_, err := os.Stat(dir)
		all = fmt.Appendf(all, "%q %t\n", dir, err == nil)
	}
	left := maxEntries
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if left--; left < 0 {
				return
			}
			name := filepath.Join(dir, e.Name())
			switch {
			case !e.IsDir():
				if st, err := os.Lstat(name); err == nil {
					at := beneath.StatOf(st)
					all = append(append(all, name...), 0)
					for _, n := range []uint64{uint64(st.Size()), at.Ino, uint64(st.ModTime().UnixNano()), uint64(at.Ctim)} {
						all = binary.LittleEndian.AppendUint64(all, n)
					}
				}
			case depth > 0 && e.Name() != "objects", e.Name() == "refs", e.Name() == "worktrees":
				walk(name, depth+1)
			}
		}
	}
	walk(repository, 0)
	if left < 0 {
		return objects, ""
	}
	return objects, fmt.Sprintf("%x", sha256.Sum256(all))
}

// contents are the names in a git directory below which there are contents of files.
var contents = []string{"objects", "lfs", "annex", "rr-cache", "lost-found", "rebase-apply", "rebase-merge/patch", "COMMIT_EDITMSG"}

// Contents lists what holds contents of a repository: directories, but for a patch and
// the message of a commit, which can hold one; also those that it borrows from. What is behind links is under its real name.
func Contents(repository string) (out []string) {
	add := func(name string) {
		if real, err := filepath.EvalSymlinks(name); err == nil {
			out = append(out, real)
		}
	}
	dirs := []string{repository}
	worktrees, _ := os.ReadDir(filepath.Join(repository, "worktrees"))
	for _, e := range worktrees {
		dirs = append(dirs, filepath.Join(repository, "worktrees", e.Name()))
	}
	for _, dir := range dirs {
		for _, name := range contents {
			add(filepath.Join(dir, name))
		}
	}
	for _, dir := range lenders(repository) {
		add(dir)
	}
	return out
}

// lenders are the directories of objects that a repository borrows from, whether they are
// there or not.
func lenders(repository string) (out []string) {
	const most = 32 // as many as are read of
	for i, queue := 0, []string{filepath.Join(repository, "objects")}; i < len(queue) && i < most; i++ {
		for _, line := range small(filepath.Join(queue[i], "info", "alternates")) {
			line = absolute(line, queue[i])
			out, queue = append(out, line), append(queue, line)
		}
	}
	return out
}

// Common is the git directory that worktrees share: of one that is another's, that of
// the other; and of a file .git, that to which it leads. Empty: there is none.
func Common(name string) string {
	if st, err := os.Stat(name); err == nil && st.Mode().IsRegular() {
		to, found := strings.CutPrefix(first(name), "gitdir: ")
		if !found {
			return ""
		}
		if name = absolute(to, filepath.Dir(name)); to == "" {
			return ""
		}
	}
	if to := first(filepath.Join(name, "commondir")); to != "" {
		name = absolute(to, name)
	}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	return ""
}

// Above lists what is called .git in the directories that a file is in.
func Above(file string) (out []string) {
	for dir := file; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			out = append(out, filepath.Join(dir, ".git"))
		}
		if dir == filepath.Dir(dir) {
			return out
		}
	}
}

var worktreeKey = regexp.MustCompile(`(?i)(?:^|\])[ \t]*worktree[ \t]*=[ \t]*(.*)$`)

// Tops lists where the files of a git directory are, as far as it says so. ok is false if
// it cannot be told: then they can be anywhere.
func Tops(dir string) (tops []string, ok bool) {
	if filepath.Base(dir) == ".git" {
		tops = append(tops, filepath.Dir(dir))
	}
	for _, name := range []string{"config", "config.worktree"} {
		name = filepath.Join(dir, name)
		lines := small(name)
		if _, err := os.Lstat(name); err == nil && lines == nil {
			if st, err := os.Stat(name); err != nil || st.Size() > 0 {
				return nil, false
			}
		}
		for _, line := range lines {
			if m := worktreeKey.FindStringSubmatch(line); m != nil {
				top := absolute(strings.Trim(m[1], "\" \t"), dir)
				if real, err := filepath.EvalSymlinks(top); err == nil {
					top = real
				}
				if tops = append(tops, top); strings.ContainsAny(m[1], "\\#;") {
					return nil, false
				}
			}
		}
	}
	return tops, true
}

func absolute(name, dir string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

func first(name string) string {
	lines := small(name)
	if len(lines) == 0 {
		return ""
	}
	return lines[0]
}

// small reads the lines of a file that is as small as git takes for one that leads
// somewhere, and nothing that is none.
func small(name string) []string {
	const most = 1 << 20
	st, err := os.Stat(name)
	if err != nil || !st.Mode().IsRegular() || st.Size() > most {
		return nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	return strings.FieldsFunc(string(data[:min(len(data), most)]), func(r rune) bool { return r == '\n' || r == '\r' })
}
