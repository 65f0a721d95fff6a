package editor

import (
	"bufio"
	"cmp"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Limits of a walk: directory entries, after which it ends; bytes of a .gitignore file and
// rules, of which the rest is ignored.
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
	ignored []rule // rules of the .gitignore files above dir
}

// files walks directories, the nearest first. It returns names relative to start.
func (w walk) files(start string) (out []string) {
	if st, err := fs.Stat(w.fsys, start); err != nil || !st.IsDir() {
		return nil // opening a pipe would block
	}
	first := pendingDir{dir: start}
	for i := range start { // rules of the directories above
		if start != "." && (i == 0 || start[i] == '/') {
			first.ignored = append(first.ignored, w.rules(cmp.Or(start[:i], "."))...)
		}
	}
	queue, seen := []pendingDir{first}, 0
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		entries := w.list(p.dir, w.maxEntries-seen+1)
		if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".gitignore" }) {
			p.ignored = append(slices.Clip(p.ignored), w.rules(p.dir)...)
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

// rule is a line of a .gitignore file.
type rule struct {
	dir      string // directory of the .gitignore file
	pattern  string // pattern as doublestar takes it
	literal  bool   // the pattern has no wildcard and is compared with the last part of a name
	dirsOnly bool   // the rule applies to directories only
	negated  bool   // the line begins with !: the rule includes again
}

func (w walk) rules(dir string) (out []rule) {
	name := path.Join(dir, ".gitignore")
	if st, err := fs.Lstat(w.fsys, name); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	f, err := w.fsys.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, maxIgnoreBytes))
	for lines.Scan() && len(out) < maxIgnoreRules {
		line := strings.TrimRight(lines.Text(), " \t\r")
		r := rule{dir: dir}
		if line == "" || line[0] == '#' {
			continue
		}
		line, r.negated = strings.CutPrefix(line, "!")
		line, r.dirsOnly = strings.CutSuffix(line, "/")
		switch anchored, rooted := strings.CutPrefix(line, "/"); {
		case strings.Contains(anchored, "/") || rooted:
			r.pattern = anchored
		default:
			r.literal = !strings.ContainsAny(line, `*?[\`)
			r.pattern = line
			if !r.literal {
				r.pattern = "**/" + line
			}
		}
		if r.literal || doublestar.ValidatePattern(r.pattern) {
			out = append(out, r)
		}
	}
	return out
}

// isIgnored reports whether the last rule that matches a name excludes it. dir: it is a
// directory.
func isIgnored(rules []rule, name string, dir bool) bool {
	for _, r := range slices.Backward(rules) {
		if r.dirsOnly && !dir {
			continue
		}
		below := name
		if r.dir != "." {
			below = strings.TrimPrefix(name, r.dir+"/")
		}
		if r.literal && path.Base(name) == r.pattern || !r.literal && doublestar.MatchUnvalidated(r.pattern, below) {
			return !r.negated
		}
	}
	return false
}
