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

// The limits of a walk.
const (
	maxWalked      = 20_000
	maxIgnoreBytes = 64 << 10
	maxIgnoreRules = 500
)

// Files returns the paths in a directory that may be meant by the beginning of
// one: what is below the directory that it begins with, what is nearer first,
// with slashes, and directories with one at their end. It goes through at most
// 20,000 entries, follows no link and leaves out .git, what .gitignore files
// there exclude, and what is hidden, unless the last part of prefix begins with a
// dot. What cannot be read is left out.
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
	fsys       fs.FS // refuses what is outside, whatever links say
	hidden     bool
	maxEntries int // entries
}

// pendingDir is a directory that is still to be listed.
type pendingDir struct {
	dir     string
	ignored []rule
}

// files goes through directories, the nearest first. The names that it returns
// are those below start.
func (w walk) files(start string) (out []string) {
	if st, err := fs.Stat(w.fsys, start); err != nil || !st.IsDir() {
		return nil // a pipe would wait
	}
	first := pendingDir{dir: start}
	for i := range start { // what the directories above say
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

// list returns at most so many entries of a directory, by their names.
func (w walk) list(dir string, most int) []fs.DirEntry {
	f, err := w.fsys.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	d, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil
	}
	entries, _ := d.ReadDir(most)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries
}

// rule is a line of a .gitignore.
type rule struct {
	dir      string // the directory of the file
	pattern  string // of doublestar
	literal  bool   // it is the last part of a name
	dirsOnly bool   // for directories only
	negated  bool
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

// isIgnored says what the last rule says that fits.
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
