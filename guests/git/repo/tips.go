package repo

import (
	"bytes"
	"errors"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"
)

// Tips lists the objects that lead to the whole history: refs are those of references and of
// HEAD and similar files in all worktrees, logged those in reflogs. all is false if there may
// be others. After Tips, r uses no commit-graph, which could claim another tree for a commit.
func (r *Repo) Tips() (refs, logged []ID, all bool, err error) {
	r.dropGraphs()
	r.graphsOpened = true
	clear(r.nodes)
	add := func(to *[]ID, text string) {
		if id, ok := parseID(text); ok && !id.IsZero() {
			*to = append(*to, id)
		}
	}
	if err = r.packedRefs(func(_, id string) bool {
		add(&refs, id)
		return len(refs) <= MaxRefs
	}); err != nil {
		return nil, nil, false, err
	}
	dirs, err := gitDirs(r.CommonDir)
	all = err == nil && len(refs) <= MaxRefs
	left := MaxRefs // files and directories that may still be visited
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
			if err != nil || name == dir {
				return err
			}
			rel, _ := filepath.Rel(dir, name)
			to := &refs
			switch top, _, _ := strings.Cut(rel, "/"); {
			case top == "logs":
				to = &logged
			case top == "refs", !e.IsDir() && isRootRef(top):
			case e.IsDir():
				return fs.SkipDir
			default:
				return nil
			}
			if left--; left < 0 {
				return errTooLong
			}
			if !e.Type().IsRegular() {
				return r.Check()
			}
			text, err := readSmall(name, maxIndex)
			r.Spend(workLoose + len(text)/treeBytesPerUnit)
			for line := range strings.Lines(string(text)) {
				fields := strings.Fields(line[:min(len(line), 82)]) // in a reflog: the ids before and after
				for _, f := range fields[:min(len(fields), 2)] {
					add(to, f)
				}
			}
			return err
		})
		all = all && err == nil
	}
	for _, ids := range []*[]ID{&refs, &logged} {
		slices.SortFunc(*ids, func(a, b ID) int { return bytes.Compare(a[:], b[:]) })
		*ids = slices.Compact(*ids)
	}
	return refs, logged, all, r.Check()
}

// gitDirs returns the git directories of all worktrees, the common one first.
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

// ObjectGitDirs returns the git directories whose objects the repository uses: CommonDir
// first, then those of alternates.
func (r *Repo) ObjectGitDirs() []string {
	dirs := slices.Clone(r.objects)
	for i, objects := range dirs {
		dirs[i] = filepath.Dir(objects)
	}
	return dirs
}

// Indexes yields the indexes of all worktrees of the repositories in [Repo.ObjectGitDirs]. An
// index that cannot be read is empty, and comes with an error, as do worktrees that cannot be
// listed. own is the index of this worktree if it was read before; nil: it is read.
func (r *Repo) Indexes(own *Index) iter.Seq2[*Index, error] {
	return func(yield func(*Index, error) bool) {
		for _, common := range r.ObjectGitDirs() {
			dirs, err := gitDirs(common)
			if err != nil && !yield(&Index{}, err) {
				return
			}
			for _, dir := range dirs {
				x, err := own, error(nil)
				if own == nil || dir != r.GitDir {
					x, err = (&Repo{GitDir: dir, workLimit: r.workLimit, cancelled: r.cancelled}).Index()
				}
				if err != nil {
					x = &Index{}
				}
				if r.Spend(len(x.Entries)); !yield(x, err) {
					return
				}
			}
		}
	}
}
