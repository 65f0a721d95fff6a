package repo

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

// Tips lists the objects that a history can be found by: those of references, of HEAD
// and its like in all worktrees, and of their logs. more says that there are others.
// From then on no commit-graph is believed, which could say another tree of a commit.
func (r *Repo) Tips() (ids []ID, more bool, err error) {
	r.dropGraphs()
	r.graphed = true
	clear(r.links)
	seen := map[ID]bool{{}: true}
	add := func(digits string) {
		if id, ok := parseID(digits); ok && !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	if err := r.packedRefs(func(_, id string) bool {
		add(id)
		more = len(ids) >= MaxRefs
		return !more
	}); err != nil {
		return nil, false, err
	}
	left := MaxRefs // files that are read
	var walk func(dir string, named func(string) bool, depth int)
	walk = func(dir string, named func(string) bool, depth int) {
		entries, err := readDir(dir)
		more = more || err != nil && !errors.Is(err, fs.ErrNotExist) || depth == maxRefDepth
		for _, e := range entries {
			name := filepath.Join(dir, e.Name())
			switch {
			case e.IsDir() && depth < maxRefDepth && (depth > 0 || e.Name() == "logs" || e.Name() == "refs"):
				walk(name, func(string) bool { return true }, depth+1)
			case !e.Type().IsRegular() || !named(e.Name()):
			case left == 0:
				more = true
			default:
				left--
				text, err := readSmall(name, maxIndex)
				more = more || err != nil
				r.Spend(workLoose + len(text)/perTree)
				for line := range strings.Lines(string(text)) {
					fields := strings.Fields(line[:min(len(line), 82)]) // of a log: the object before, and now
					for _, f := range fields[:min(len(fields), 2)] {
						add(f)
					}
				}
			}
		}
	}
	dirs, err := r.gitDirs()
	for _, dir := range dirs {
		walk(dir, rootRef, 0)
	}
	return ids, more || err != nil, r.Check()
}

// gitDirs are the git directories of all worktrees, the shared one first.
func (r *Repo) gitDirs() ([]string, error) {
	dirs := []string{r.CommonDir}
	entries, err := readDir(filepath.Join(r.CommonDir, "worktrees"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for _, e := range entries {
		dirs = append(dirs, filepath.Join(r.CommonDir, "worktrees", e.Name()))
	}
	return dirs, err
}

// Indexes calls yield with the index of each worktree, as far as it can be read. The
// error is that of one which cannot.
func (r *Repo) Indexes(yield func(*Index)) error {
	dirs, bad := r.gitDirs()
	for _, dir := range dirs {
		x, err := (&Repo{GitDir: dir, most: r.most, cancelled: r.cancelled}).Index()
		if err == nil {
			r.Spend(len(x.Entries))
			yield(x)
		}
		bad = errors.Join(bad, err)
	}
	return bad
}

// Borrows reports whether objects can come from another repository.
func (r *Repo) Borrows() bool { return len(r.objects) > 1 }

// AllIndexes is Indexes, with those of the repositories that objects are borrowed from.
func (r *Repo) AllIndexes(yield func(*Index)) (err error) {
	for _, from := range r.lenders() {
		err = errors.Join(err, from.Indexes(yield))
	}
	return err
}

// lenders are this repository and those that objects are borrowed from, of which nothing
// else can be read.
func (r *Repo) lenders() []*Repo {
	all := []*Repo{r}
	for _, dir := range r.objects[1:] {
		all = append(all, &Repo{CommonDir: filepath.Dir(dir), most: r.most, cancelled: r.cancelled})
	}
	return all
}

// Worktrees are the tops of the files of all worktrees, as far as it is known where
// they are, and of those of the repositories that objects are borrowed from. all is false
// if there is one of which it is not. No configuration is read, which may say where others
// are: it can hold secrets.
func (r *Repo) Worktrees() (tops []string, all bool) {
	all = true
	for _, l := range r.lenders() {
		main := l.Worktree != "" && l.GitDir == l.CommonDir // where its files are, and not only those of the others
		if l.Worktree != "" {
			tops = append(tops, l.Worktree)
		}
		if dir, name := filepath.Split(l.CommonDir); name == ".git" {
			if main = true; filepath.Clean(dir) != l.Worktree {
				tops = append(tops, filepath.Clean(dir))
			}
		}
		dirs, err := l.gitDirs()
		for _, dir := range dirs[1:] {
			if text, err := readSmall(filepath.Join(dir, "gitdir"), maxLink); err == nil {
				tops = append(tops, filepath.Dir(strings.TrimRight(string(text), "\r\n")))
			}
		}
		all = all && main && err == nil
	}
	return tops, all
}
