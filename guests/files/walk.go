package main

import (
	"context"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// versionControl holds the directories that are never searched: they are
// large, and nobody means them.
var versionControl = []string{".git", ".hg", ".svn", ".bzr"}

// walker visits the files below a directory in the order of their names,
// directory by directory. It does not follow links, so that it ends.
type walker struct {
	hidden     bool // visit what starts with a dot
	gitignored bool // visit what .gitignore excludes
	// visit is called for all that is not a directory. path is relative to
	// the start, with slashes. Its error ends the walk.
	visit func(l location, path string, entry fs.DirEntry) error
	// enter says whether to go into a directory; nil goes into all.
	enter func(path string) bool

	skipped int // directories that could not be read
	seen    int
}

// checkSearchable refuses what a walk would not visit however it started.
func checkSearchable(l location) error {
	for part := range strings.SplitSeq(l.abs, string(os.PathSeparator)) {
		if slices.Contains(versionControl, part) {
			return tool.InvalidInput("%s is inside a %s directory, which is never searched", l.shown(), part)
		}
	}
	return nil
}

// walk visits what is below start.
func (w *walker) walk(ctx context.Context, start location) error {
	if err := checkSearchable(start); err != nil {
		return err
	}
	var ignore *ignoreFile
	if !w.gitignored {
		cwd, err := os.Getwd()
		if err != nil {
			return tool.IO("working directory: %w", err)
		}
		ignore = loadIgnoreAbove(start.abs, cwd)
	}
	entries, err := os.ReadDir(start.abs)
	if err != nil {
		return start.fault("search", err)
	}
	return w.entries(ctx, start, "", entries, ignore)
}

func (w *walker) entries(ctx context.Context, dir location, prefix string, entries []fs.DirEntry, ignore *ignoreFile) error {
	for _, entry := range entries {
		if w.seen++; w.seen%256 == 0 {
			runtime.Gosched() // there is one thread: without this the deadline's timer does not fire
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		name := entry.Name()
		if slices.Contains(versionControl, name) || !w.hidden && strings.HasPrefix(name, ".") {
			continue
		}
		l, path := dir.child(name), prefix+name
		if ignore.ignores(l.abs, entry.IsDir()) {
			continue
		}
		if !entry.IsDir() {
			if err := w.visit(l, path, entry); err != nil {
				return err
			}
			continue
		}
		if w.enter != nil && !w.enter(path) {
			continue
		}
		below, err := os.ReadDir(l.abs)
		if err != nil {
			w.skipped++
			continue
		}
		inner := ignore
		if !w.gitignored {
			inner = loadIgnore(l.abs, ignore)
		}
		if err := w.entries(ctx, l, path+"/", below, inner); err != nil {
			return err
		}
	}
	return nil
}
