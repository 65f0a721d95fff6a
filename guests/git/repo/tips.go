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
	refs, more, err := r.Refs("refs/")
	if err != nil {
		return nil, false, err
	}
	seen := map[ID]bool{{}: true}
	add := func(id ID) {
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	for _, ref := range refs {
		add(ref.ID)
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
						if id, ok := parseID(f); ok {
							add(id)
						}
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
func (r *Repo) AllIndexes(yield func(*Index)) error {
	err := r.Indexes(yield)
	for _, dir := range r.objects[1:] {
		lender := &Repo{CommonDir: filepath.Dir(dir), most: r.most, cancelled: r.cancelled}
		err = errors.Join(err, lender.Indexes(yield))
	}
	return err
}

// Worktrees are the tops of the files of all worktrees, as far as it is known where
// they are, and of those of the repositories that objects are borrowed from. all is false
// if there is one of which it is not.
func (r *Repo) Worktrees() (tops []string, all bool) {
	tops, all = r.worktrees()
	for _, dir := range r.objects[1:] {
		more, ok := (&Repo{CommonDir: filepath.Dir(dir), most: r.most, cancelled: r.cancelled}).worktrees()
		tops, all = append(tops, more...), all && ok
	}
	return tops, all
}

// worktrees are the own ones. No configuration is read, which may say where others are: it
// can hold secrets.
func (r *Repo) worktrees() (tops []string, all bool) {
	main := r.Worktree != "" && r.GitDir == r.CommonDir // where its files are, and not only those of the others
	if r.Worktree != "" {
		tops = append(tops, r.Worktree)
	}
	if dir, name := filepath.Split(r.CommonDir); name == ".git" {
		if main = true; filepath.Clean(dir) != r.Worktree {
			tops = append(tops, filepath.Clean(dir))
		}
	}
	dirs, err := r.gitDirs()
	for _, dir := range dirs[1:] {
		if text, err := readSmall(filepath.Join(dir, "gitdir"), maxLink); err == nil {
			tops = append(tops, filepath.Dir(strings.TrimRight(string(text), "\r\n")))
		}
	}
	return tops, err == nil && main
}
