// Package githistory stores the results of searching the histories of git repositories for
// secrets, and lists the paths with contents of a repository. It reads no objects: the guest
// git does that in the sandbox, because a repository can come from a stranger. A result is
// stored with the state of the references at that time.
//
// If something in a history looks like a secret, the result holds as long as the repository
// has the same directory of objects: an object that no reference reaches can still be read.
package githistory

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/internal/private"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/gitconfig"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/rootedfs"
)

// Store holds the results for all repositories. It is safe for concurrent use.
type Store struct {
	dir string                    // empty: results are kept in memory only
	mu  sync.Mutex                // guards of
	of  map[string]policy.History // results by the common git directory of the repository; nil: not read yet
}

// New returns the store of the results in a directory, which is created when it is needed.
// If dir is empty, results are kept in memory only.
func New(dir string) *Store { return &Store{dir: dir} }

// load reads the stored results at its first call, and removes those of repositories that
// do not exist any more. The caller holds s.mu.
func (s *Store) load() {
	if s.of != nil {
		return
	}
	s.of = map[string]policy.History{}
	if s.dir == "" {
		return
	}
	entries, _ := os.ReadDir(s.dir)
	for _, e := range entries {
		name := filepath.Join(s.dir, e.Name())
		var k policy.History
		data, err := os.ReadFile(name)
		if err != nil || json.Unmarshal(data, &k) != nil {
			continue
		}
		if _, err = os.Lstat(k.Repository); errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(name)
		} else if err == nil {
			s.of[k.Repository] = k
		}
	}
}

// Lookup returns the result for a repository in its present state. repository is its common
// git directory. ok is false if the repository must be searched; the result then has the state
// for [Store.Save]. If the present state is unknown, the result is not Whole.
func (s *Store) Lookup(repository string) (_ policy.History, ok bool) {
	objects, state := objectsOf(repository), stateOf(repository)
	now := policy.History{Repository: repository, At: objects + state}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load()
	k := s.of[repository]
	switch {
	case objects == "" || !strings.HasPrefix(k.At, objects):
		return now, false
	case k.At != now.At && len(k.Names) == 0:
		now.Tips = k.Tips
		return now, false
	}
	k.Whole = k.Whole && state != ""
	return k, true
}

// Save stores the JSON that a guest has found in a repository; with invalid JSON, an empty
// result. as is a result of [Store.Lookup], which has the repository and its state. The error
// is that of writing the file.
func (s *Store) Save(as policy.History, found []byte) error {
	var k policy.History
	if json.Unmarshal(found, &k) != nil {
		k = policy.History{}
	}
	if k.Repository, k.At = as.Repository, as.At; !k.Whole {
		k.Tips = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load()
	s.of[k.Repository] = k
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
	return private.Write(filepath.Join(s.dir, fmt.Sprintf("%x.json", sha256.Sum256([]byte(k.Repository)))), data)
}

// WithSecrets lists the repositories whose histories seem to hold secrets, if shown returns
// true for them and their directory of objects is still the same. Git may no longer
// recognise them as repositories.
func (s *Store) WithSecrets(shown func(repository string) bool) (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load()
	for repository, k := range s.of {
		if len(k.Names) > 0 && shown(repository) && strings.HasPrefix(k.At, cmp.Or(objectsOf(repository), "none")) {
			out = append(out, repository)
		}
	}
	return out
}

// objectsOf identifies the directory of objects of a repository; empty if it cannot be found.
func objectsOf(repository string) string {
	name := filepath.Join(repository, "objects")
	st, err := os.Stat(name)
	if err != nil {
		return ""
	}
	at := rootedfs.StatOf(st)
	return fmt.Sprintf("%d:%d:%d ", at.Dev, at.Ino, birthTime(name))
}

// maxEntries limits the files and directories that are read for the state of a repository;
// with more, the state is unknown. Tests lower it.
var maxEntries = 50_000

// stateOf returns a hash of the state of a repository's references and indexes: of the
// names, inodes, sizes and times of their files. Reflogs are left out, because they change
// with their references. Empty: unknown, because there are more than maxEntries files.
func stateOf(repository string) string {
	sum := sha256.New()
	for _, dir := range alternates(repository) {
		_, err := os.Stat(dir)
		fmt.Fprintf(sum, "%q %t\n", dir, err == nil)
	}
	left := maxEntries
	_ = filepath.WalkDir(repository, func(name string, e fs.DirEntry, err error) error {
		if left--; left < 0 {
			return fs.SkipAll
		}
		if err != nil || name == repository {
			return nil
		}
		if e.IsDir() {
			if top := filepath.Dir(name) == repository; e.Name() == "objects" || top && e.Name() != "refs" && e.Name() != "worktrees" {
				return fs.SkipDir
			}
			return nil
		}
		if st, err := e.Info(); err == nil {
			at := rootedfs.StatOf(st)
			fmt.Fprintf(sum, "%q %d %d %d %d\n", name, st.Size(), at.Ino, st.ModTime().UnixNano(), at.Ctim)
		}
		return nil
	})
	if left < 0 {
		return ""
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// contentNames holds the names in a git directory under which contents of files lie:
// directories, a patch, and the message of a commit.
var contentNames = []string{"objects", "lfs", "annex", "rr-cache", "lost-found", "rebase-apply", "rebase-merge/patch", "COMMIT_EDITMSG"}

// ContentPaths lists the directories and files that exist and hold contents of a repository,
// and the directories from which it borrows objects. Their paths have no symbolic links.
func ContentPaths(repository string) (out []string) {
	names := alternates(repository)
	for _, dir := range gitDirs(repository) {
		for _, name := range contentNames {
			names = append(names, filepath.Join(dir, name))
		}
	}
	for _, name := range names {
		if real, err := filepath.EvalSymlinks(name); err == nil {
			out = append(out, real)
		}
	}
	return out
}

// maxWorktrees limits the linked worktrees of a repository that are examined. With more,
// [WorktreeRoots] reports that its list is incomplete. Tests lower it.
var maxWorktrees = 1000

// gitDirs returns the git directories of all worktrees, the common one first. If there are too
// many linked worktrees, it returns one more than [maxWorktrees] of them.
func gitDirs(repository string) []string {
	dirs := []string{repository}
	name := filepath.Join(repository, "worktrees")
	if st, err := os.Stat(name); err != nil || !st.IsDir() { // opening a named pipe could block forever
		return dirs
	}
	d, err := os.Open(name)
	if err != nil {
		return dirs
	}
	defer d.Close()
	worktrees, _ := d.ReadDir(maxWorktrees + 1)
	for _, e := range worktrees {
		if !e.Type().IsRegular() {
			dirs = append(dirs, filepath.Join(repository, "worktrees", e.Name()))
		}
	}
	return dirs
}

// alternates returns the directories of objects that a repository borrows from
// (info/alternates), whether or not they exist.
func alternates(repository string) (out []string) {
	const limit = 32 // limit of the directories whose alternates are read
	for i, queue := 0, []string{filepath.Join(repository, "objects")}; i < len(queue) && i < limit; i++ {
		text, _ := readSmallFile(filepath.Join(queue[i], "info", "alternates"))
		for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
			line = paths.Absolute(line, queue[i])
			out, queue = append(out, line), append(queue, line)
		}
	}
	return out
}

// CommonDir returns the common git directory of a repository. name is a git directory, or a
// file .git that names one. repository is empty if there is none. top is the directory of the
// main worktree; empty: name does not show it.
func CommonDir(name string) (repository, top string) {
	if filepath.Base(name) == ".git" {
		top = filepath.Dir(name)
	}
	if st, err := os.Stat(name); err == nil && st.Mode().IsRegular() {
		to, found := strings.CutPrefix(firstLine(name), "gitdir: ")
		if !found || to == "" {
			return "", ""
		}
		name = paths.Absolute(to, filepath.Dir(name))
	}
	if to := firstLine(filepath.Join(name, "commondir")); to != "" {
		name, top = paths.Absolute(to, name), ""
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", ""
	}
	return real, top
}

// WorktreeRoots lists the top directories of all worktrees of a repository: those in main,
// the one that its location or its configuration names, and the linked ones. ok is false if
// the list may be incomplete, so that files of the repository can be anywhere. Included
// configurations are not read: with one, ok is false.
func WorktreeRoots(repository string, main ...string) (tops []string, ok bool) {
	add := func(top string) { tops = append(tops, filepath.Dir(ResolveParents(filepath.Join(top, ".git")))) }
	for _, top := range main {
		if top != "" {
			add(top)
		}
	}
	if filepath.Base(repository) == ".git" {
		add(filepath.Dir(repository))
	}
	dirs := gitDirs(repository)
	ok = len(dirs) <= 1+maxWorktrees
	for _, dir := range dirs {
		for _, name := range []string{"config", "config.worktree"} {
			text, err := readSmallFile(filepath.Join(dir, name))
			if lower := strings.ToLower(text); err == nil && !strings.Contains(lower, "worktree") && !strings.Contains(lower, "include") {
				continue // true for most; some of them could not be parsed
			}
			keys, bad := gitconfig.Parse(text)
			ok = ok && bad == nil && (err == nil || errors.Is(err, fs.ErrNotExist))
			for _, k := range keys {
				if ok = ok && !strings.HasPrefix(k.Name, "include"); k.Name == "core.worktree" {
					add(paths.Absolute(k.Value, dir))
				}
			}
		}
	}
	if _, err := os.Lstat(filepath.Join(repository, "index")); err == nil && len(tops) == 0 {
		ok = false // the repository is not bare, so it has an unknown worktree
	}
	for _, dir := range dirs[1:] {
		if to := firstLine(filepath.Join(dir, "gitdir")); to != "" {
			add(filepath.Dir(paths.Absolute(to, dir)))
		}
	}
	return tops, ok
}

// HiddenPaths lists the paths of hidden that lie in a worktree of a repository, relative to
// the top of this worktree. main and linked are the tops of two worktrees, or empty. ok is
// false if some worktrees are unknown.
func HiddenPaths(repository, main, linked string, hidden []string) (found []string, ok bool) {
	tops, ok := WorktreeRoots(repository, main)
	ok = ok && len(tops) > 0
	if linked != "" {
		tops = append(tops, linked)
	}
	for _, top := range tops {
		for _, h := range hidden {
			if rel, err := filepath.Rel(paths.Guest(top), paths.Guest(ResolveParents(h))); err == nil && filepath.IsLocal(rel) {
				found = append(found, filepath.ToSlash(rel))
			}
		}
	}
	return found, ok
}

// ResolveParents returns name with the symbolic links in its directory resolved; name's last
// part and missing directories stay as they are.
func ResolveParents(name string) string {
	dir := filepath.Dir(name)
	if dir == name {
		return name
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		real = ResolveParents(dir)
	}
	return filepath.Join(real, filepath.Base(name))
}

// firstLine returns the first line of a file; empty if the file cannot be read.
func firstLine(name string) string {
	text, _ := readSmallFile(name)
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimRight(line, "\r")
}

// readSmallFile reads a regular file of at most 1 MiB; for any other it returns an error.
func readSmallFile(name string) (string, error) {
	const limit = 1 << 20
	st, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	if !st.Mode().IsRegular() || st.Size() > limit {
		return "", errors.New("it is not a small regular file")
	}
	data, err := os.ReadFile(name)
	return string(data), err
}
