// Package gitignore finds the files that .gitignore files exclude, for the guests that
// walk the files of a project.
//
// It is our own matcher because the libraries for it are unmaintained, match by translation to
// regular expressions, which gets the corner cases wrong, or are part of a whole git
// implementation, which every module would carry. The rules are those of gitignore(5). The
// user's own file (core.excludesFile) is not read, as it is about the person and not about the
// project. Files outside of the grant of a call cannot be read, and exclude nothing.
package gitignore

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/git/ignore"
	"github.com/stockade-dev/stockade/sdk/go/search"
)

// maxBytes limits the bytes of a pattern file that are read; the rest is ignored.
const maxBytes = 1 << 20

// File holds the patterns of one .gitignore file, and of the files in the directories above.
type File struct {
	dir      string // the absolute path of its directory
	patterns []ignore.Pattern
	parent   *File // file of a directory above; nil: there is none
}

const fileName = ".gitignore"

// load reads the .gitignore file of the directory dir. It returns parent if there is none.
func load(dir string, parent *File) *File {
	name := filepath.Join(dir, fileName)
	// Git does not follow a link here, and neither do we: it may lead anywhere.
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return parent
	}
	return read(name, dir, parent)
}

// LoadListed reads the .gitignore file of the directory dir, whose entries are given. It
// returns parent if there is none. If dir is a repository itself, the files above it do not
// apply.
func LoadListed(entries search.Listing, dir string, parent *File) *File {
	if slices.ContainsFunc(entries, func(e search.Entry) bool { return e.Name == ".git" }) {
		parent = loadExclude(dir)
	}
	if slices.ContainsFunc(entries, func(e search.Entry) bool { return e.Name == fileName && e.Type.IsRegular() }) {
		return read(filepath.Join(dir, fileName), dir, parent)
	}
	return parent
}

// loadExclude reads info/exclude of the repository whose work tree is dir.
func loadExclude(dir string) *File {
	git := filepath.Join(dir, ".git")
	git = readPathFile(git, git) // in a linked work tree, .git is a file
	git = readPathFile(filepath.Join(git, "commondir"), git)
	return read(filepath.Join(git, "info", "exclude"), dir, nil)
}

// readPathFile returns the path in a file of git, such as commondir. If the file does not
// exist, it returns otherwise.
func readPathFile(name, otherwise string) string {
	f, err := os.Open(name)
	if err != nil {
		return otherwise
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, 4096))
	to := strings.TrimSpace(strings.TrimPrefix(string(text), "gitdir:"))
	switch {
	case to == "":
		return otherwise
	case filepath.IsAbs(to):
		return to
	}
	return filepath.Join(filepath.Dir(name), to)
}

// read reads a file of patterns that apply to dir, at most 1 MiB of it. It returns parent if
// there are no patterns.
func read(name, dir string, parent *File) *File {
	f, err := os.Open(name)
	if err != nil {
		return parent
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxBytes))
	patterns := ignore.Parse(text)
	if err != nil || len(patterns) == 0 {
		return parent
	}
	return &File{dir, patterns, parent}
}

// LoadAbove reads the pattern files that apply to dir, from the outermost to the innermost:
// info/exclude and the .gitignore files of the work tree around dir. Outside of a work tree
// they are the .gitignore files from cwd down to dir.
func LoadAbove(dir, cwd string) *File {
	var dirs []string // from dir up
	top := 0
	var ignore *File
	for d := dir; ; d = filepath.Dir(d) {
		dirs = append(dirs, d)
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			top, ignore = len(dirs)-1, loadExclude(d)
			break
		}
		if d == cwd {
			top = len(dirs) - 1
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	for i := top; i >= 0; i-- {
		ignore = load(dirs[i], ignore)
	}
	return ignore
}

// Dir holds the patterns that apply to the entries of one directory. The patterns of the
// nearest .gitignore file come first.
type Dir []level

type level struct {
	patterns []ignore.Pattern
	segments []string // names from the .gitignore file's directory down to the entry, whose name is filled in last
}

// In returns the patterns for a directory, which must be the one of f or below it.
func (f *File) In(dir string) Dir {
	var out Dir
	for ; f != nil; f = f.parent {
		var segments []string
		if rel := strings.TrimPrefix(dir[len(f.dir):], "/"); rel != "" { // a walk only goes down
			segments = strings.Split(rel, "/")
		}
		out = append(out, level{f.patterns, append(segments, "")})
	}
	return out
}

// Ignores reports whether an entry is excluded. It does not check the directories above:
// a walk does not enter excluded directories.
func (d Dir) Ignores(name string, isDir bool) bool {
	for _, level := range d {
		level.segments[len(level.segments)-1] = name
		for i := len(level.patterns) - 1; i >= 0; i-- { // the last match decides
			if p := &level.patterns[i]; p.Match(level.segments, isDir) {
				return !p.Negated()
			}
		}
	}
	return false
}
