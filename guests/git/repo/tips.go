package repo

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Tips lists the objects that a history can be found by: those of references, of HEAD
// and its like in all worktrees, and what their logs name. all is false if there are others.
// From then on no commit-graph is believed, which could say another tree of a commit.
func (r *Repo) Tips() (refs, logged []ID, all bool, err error) {
	r.dropGraphs()
	r.graphed = true
	clear(r.links)
	packed, more, err := r.Refs("refs/")
	if err != nil {
		return nil, nil, false, err
	}
	seen := map[ID]bool{{}: true}
	add := func(to *[]ID, id ID) {
		if !seen[id] {
			seen[id] = true
			*to = append(*to, id)
		}
	}
	for _, ref := range packed {
		add(&refs, ref.ID)
	}
	left := MaxRefs // files that are read
	var walk func(dir string, to *[]ID, depth int)
	walk = func(dir string, to *[]ID, depth int) {
		entries, err := readDir(dir)
		more = more || err != nil && !errors.Is(err, fs.ErrNotExist) || depth == maxRefDepth
		for _, e := range entries {
			name := filepath.Join(dir, e.Name())
			switch {
			case depth == maxRefDepth:
			case e.IsDir() && depth > 0:
				walk(name, to, depth+1)
			case !e.Type().IsRegular() || depth == 0 && !rootRef(e.Name()):
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
							add(to, id)
						}
					}
				}
			}
		}
	}
	dirs, err := gitDirs(r.CommonDir)
	for _, dir := range dirs {
		walk(dir, &refs, 0)
		walk(filepath.Join(dir, "refs"), &refs, 1)
	}
	for _, dir := range dirs {
		walk(filepath.Join(dir, "logs"), &logged, 1)
	}
	return refs, logged, !more && err == nil, r.Check()
}

// gitDirs are the git directories of all worktrees, the shared one first.
func gitDirs(common string) ([]string, error) {
	dirs := []string{common}
	entries, err := readDir(filepath.Join(common, "worktrees"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for _, e := range entries {
		dirs = append(dirs, filepath.Join(common, "worktrees", e.Name()))
	}
	return dirs, err
}

// Lenders are the git directories that objects come from, the own one first.
func (r *Repo) Lenders() []string {
	dirs := slices.Clone(r.objects)
	for i, objects := range dirs {
		dirs[i] = filepath.Dir(objects)
	}
	return dirs
}

// Indexes calls yield with the index of each worktree of all lenders, as far as it can be
// read. The error is that of one which cannot.
func (r *Repo) Indexes(yield func(*Index)) (bad error) {
	for _, common := range r.Lenders() {
		dirs, err := gitDirs(common)
		bad = errors.Join(bad, err)
		for _, dir := range dirs {
			x, err := (&Repo{GitDir: dir, most: r.most, cancelled: r.cancelled}).Index()
			if err == nil {
				r.Spend(len(x.Entries))
				yield(x)
			}
			bad = errors.Join(bad, err)
		}
	}
	return bad
}

// Borrows reports whether objects can come from another repository.
func (r *Repo) Borrows() bool { return len(r.objects) > 1 }
