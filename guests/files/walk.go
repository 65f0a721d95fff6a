package main

import (
	"context"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/guests/internal/gitignore"
	"github.com/stockade-dev/stockade/sdk/go/search"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// versionControl lists names that are never searched: the directories are large, and nobody
// wants to search them. All names begin with a dot.
var versionControl = []string{".git", ".hg", ".svn", ".bzr"}

// walker visits the files below a directory in the order of their names, and goes through each
// directory at its place in that order. It follows no links, so that it always ends.
type walker struct {
	hidden     bool // visit entries that start with a dot
	gitignored bool // visit entries that .gitignore excludes
	// visit is called for every entry that is not a directory and not left out. prefix is the
	// path of its directory relative to the start, such as "a/b/" or "". An error ends the walk.
	visit func(dir location, prefix string, entry search.Entry) error
	enter func(path string) bool // reports whether to enter a directory, by its path from the start; nil: all

	skipped int // number of directories that could not be read
	seen    int // number of entries that the walk has met
}

// checkSearchable returns an error for a directory of version control and everything inside.
func checkSearchable(l location) error {
	for part := range strings.SplitSeq(l.abs, string(os.PathSeparator)) {
		if slices.Contains(versionControl, part) {
			return tool.InvalidInput("%s is inside a %s directory, which is never searched", l.display(), part)
		}
	}
	return nil
}

func (w *walker) walk(ctx context.Context, start location) error {
	if err := checkSearchable(start); err != nil {
		return err
	}
	var ignore *gitignore.File
	if !w.gitignored {
		cwd, err := os.Getwd()
		if err != nil {
			return tool.IO("working directory: %w", err)
		}
		ignore = gitignore.LoadAbove(start.abs, cwd)
	}
	entries, err := readDir(start.abs)
	if err != nil {
		return start.toolError("search", err)
	}
	return w.entries(ctx, start, "", entries, ignore)
}

// maxAhead limits the directories that one request lists before the walk enters them.
const maxAhead = 64

func (w *walker) entries(ctx context.Context, dir location, prefix string, entries search.Listing, ignore *gitignore.File) error {
	var ahead []search.Listing // listings of the directories that come next
	ignored := ignore.In(dir.abs)
	if err := ctx.Err(); err != nil {
		return err
	}
	for i, entry := range entries {
		if w.seen++; w.seen%64 == 0 {
			runtime.Gosched() // there is one thread: without this the deadline's timer does not fire
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if !w.wants(prefix, entry, ignored) {
			continue
		}
		if !entry.Type.IsDir() {
			if err := w.visit(dir, prefix, entry); err != nil {
				return err
			}
			continue
		}
		l := dir.child(entry.Name)
		if len(ahead) == 0 {
			ahead = w.list(dir, prefix, entries[i:], ignored)
		}
		below := ahead[0]
		ahead = ahead[1:]
		if below == nil {
			var err error
			if below, err = readDir(l.abs); err != nil {
				w.skipped++
				continue
			}
		}
		inner := ignore
		if !w.gitignored {
			inner = gitignore.LoadListed(below, l.abs, ignore)
		}
		if err := w.entries(ctx, l, prefix+entry.Name+"/", below, inner); err != nil {
			return err
		}
	}
	return nil
}

// wants reports whether the options of the walk permit to visit or enter an entry.
func (w *walker) wants(prefix string, entry search.Entry, ignored gitignore.Dir) bool {
	dir := entry.Type.IsDir()
	switch {
	case entry.Name[0] == '.' && (!w.hidden || slices.Contains(versionControl, entry.Name)), ignored.Ignores(entry.Name, dir):
		return false
	}
	return !dir || w.enter == nil || w.enter(prefix+entry.Name)
}

// list lists the next directories among entries that the walk will enter, in their order: at
// least one, at most maxAhead. The first of entries is such a directory. A nil listing: the
// caller has to list that directory itself.
func (w *walker) list(dir location, prefix string, entries search.Listing, ignored gitignore.Dir) []search.Listing {
	var names []string
	for _, entry := range entries {
		if len(names) == maxAhead {
			break
		}
		if entry.Type.IsDir() && w.wants(prefix, entry, ignored) {
			names = append(names, dir.childPath(entry.Name))
		}
	}
	listings, err := search.List(names...)
	if err != nil {
		return make([]search.Listing, 1)
	}
	return listings
}

// readDir lists a directory through the host, which knows the types of irregular files better,
// or else without the host.
func readDir(name string) (search.Listing, error) {
	if listings, err := search.List(name); err == nil && listings[0] != nil {
		return listings[0], nil
	}
	entries, err := os.ReadDir(name)
	out := make(search.Listing, len(entries))
	for i, e := range entries {
		out[i] = search.Entry{Name: e.Name(), Type: e.Type()}
	}
	return out, err
}
