package editor

import (
	"cmp"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/git/ignore"
)

// Limits of a walk: directory entries, after which it ends; bytes and
// patterns of a .gitignore file, of which the rest is ignored.
const (
	maxWalked      = 20_000
	maxIgnoreBytes = 64 << 10
	maxIgnoreRules = 500
)

// Files returns paths below dir that begin with the directory part of prefix, for completing
// prefix. Paths near that directory come first, have slashes, and end with a slash if they are
// directories. Files looks at no more than 20,000 entries and does not follow links. It leaves
// out .git, files that .gitignore files in dir exclude, and entries that cannot be read. It
// also leaves out hidden files, unless the last part of prefix begins with a dot.
func Files(dir, prefix string) []string {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	start, base := path.Split(prefix)
	w := walk{fsys: root.FS(), hidden: strings.HasPrefix(base, "."), maxEntries: maxWalked}
	var out []string
	for _, name := range w.files(path.Clean(start)) {
		out = append(out, start+name)
	}
	return out
}

type walk struct {
	fsys       fs.FS // a root, which refuses paths that lead outside, even through links
	hidden     bool  // hidden files are included
	maxEntries int   // number of entries after which the walk ends
}

// pendingDir is a directory that has not been listed yet.
type pendingDir struct {
	dir     string
	ignored []ignoreFile // the .gitignore files above dir
}

// files walks directories, the nearest first. It returns names relative to start.
func (w walk) files(start string) (out []string) {
	if st, err := fs.Stat(w.fsys, start); err != nil || !st.IsDir() {
		return nil // opening a pipe would block
	}
	first := pendingDir{dir: start}
	for i := range start { // rules of the directories above
		if start != "." && (i == 0 || start[i] == '/') {
			first.ignored = append(first.ignored, w.readIgnoreFile(cmp.Or(start[:i], ".")))
		}
	}
	queue, seen := []pendingDir{first}, 0
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		entries := w.list(p.dir, w.maxEntries-seen+1)
		if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".gitignore" }) {
			p.ignored = append(slices.Clip(p.ignored), w.readIgnoreFile(p.dir))
		}
		for _, entry := range entries {
			if seen++; seen > w.maxEntries {
				return out
			}
			name := path.Join(p.dir, entry.Name())
			if entry.Name() == ".git" || !w.hidden && strings.HasPrefix(entry.Name(), ".") || isIgnored(p.ignored, name, entry.IsDir()) {
				continue
			}
			if entry.IsDir() {
				queue = append(queue, pendingDir{name, p.ignored})
			}
			name = strings.TrimPrefix(name, start+"/")
			if entry.IsDir() {
				name += "/"
			}
			out = append(out, name)
		}
	}
	return out
}

// list returns the first entries of a directory, at most limit, sorted by name.
func (w walk) list(dir string, limit int) []fs.DirEntry {
	f, err := w.fsys.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	d, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil
	}
	entries, _ := d.ReadDir(limit)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries
}

// ignoreFile holds the patterns of a .gitignore file.
type ignoreFile struct {
	dir      string // the directory of the file
	patterns []ignore.Pattern
}

func (w walk) readIgnoreFile(dir string) ignoreFile {
	name := path.Join(dir, ".gitignore")
	if st, err := fs.Lstat(w.fsys, name); err != nil || !st.Mode().IsRegular() {
		return ignoreFile{}
	}
	f, err := w.fsys.Open(name)
	if err != nil {
		return ignoreFile{}
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxIgnoreBytes))
	patterns := ignore.Parse(text)
	return ignoreFile{dir, patterns[:min(len(patterns), maxIgnoreRules)]}
}

// isIgnored reports whether the last pattern that matches a name excludes it. dir: it is a
// directory.
func isIgnored(files []ignoreFile, name string, dir bool) bool {
	for _, f := range slices.Backward(files) {
		below := strings.Split(strings.TrimPrefix(name, f.dir+"/"), "/")
		for _, p := range slices.Backward(f.patterns) {
			if p.Match(below, dir) {
				return !p.Negated()
			}
		}
	}
	return false
}
