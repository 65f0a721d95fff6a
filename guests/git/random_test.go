//go:build !wasip1

package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	repositories = flag.Uint64("repositories", 2, "how many random repositories are compared with what git says of them")
	firstSeed    = flag.Uint64("first-repository", 0, "the seed of the first")
)

// TestRandomRepositories makes random changes to repositories, as people do, and compares
// with git after each.
func TestRandomRepositories(t *testing.T) {
	for seed := *firstSeed; seed < *firstSeed+*repositories; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := newFixture(t)
			r := random{f, rand.New(rand.NewPCG(seed, 18))}
			for range 5 {
				f.put(fmt.Sprint("f", r.rnd.IntN(9)), r.text())
			}
			f.commit("first")
			for step := range 40 {
				r.step()
				if step%10 == 9 {
					r.compare()
				}
				if t.Failed() {
					t.Fatalf("seed %d, after step %d", seed, step)
				}
			}
		})
	}
}

type random struct {
	*fixture
	rnd *rand.Rand
}

func (r random) name() string {
	names := []string{"a.go", "b.go", "main.c", "with space.txt", "ünï.txt", "x.log", "README", "日本.md", "deep/er"}
	dirs := []string{"", "", "src/", "src/pkg/", "d 1/", "out/", "src/pkg/deep/down/"}
	return dirs[r.rnd.IntN(len(dirs))] + names[r.rnd.IntN(len(names))]
}

// file returns an existing file, or "".
func (r random) file() string {
	all := strings.Split(strings.Trim(r.run("ls-files", "-z"), "\x00"), "\x00")
	name := all[r.rnd.IntN(len(all))]
	if info, err := os.Lstat(name); name == "" || err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return name
}

func (r random) text() string {
	var b strings.Builder
	for range r.rnd.IntN(1 << r.rnd.IntN(9)) {
		fmt.Fprintf(&b, "%sx%d\n", strings.Repeat("\t", r.rnd.IntN(3)), r.rnd.IntN(40))
	}
	// Without a line ending at the end versions of git find other renames.
	return b.String()
}

func (r random) edit(name string) {
	data, err := os.ReadFile(name)
	if err != nil {
		return
	}
	lines := strings.SplitAfter(string(data), "\n")
	for range 1 + r.rnd.IntN(3) {
		at := r.rnd.IntN(len(lines))
		switch r.rnd.IntN(3) {
		case 0:
			lines[at] = ""
		case 1:
			lines[at] += fmt.Sprintf("added %d\n", r.rnd.IntN(30))
		default:
			lines[at] = fmt.Sprintf("changed %d\n", r.rnd.IntN(30))
		}
	}
	r.put(name, strings.Join(lines, ""))
}

func (r random) step() {
	file := r.file()
	if file == "" || r.rnd.IntN(6) == 0 {
		name := r.name()
		for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
			if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
				_ = os.Remove(dir)
			}
		}
		_ = os.RemoveAll(name)
		content := r.text()
		switch r.rnd.IntN(12) {
		case 0:
			content = "->" + r.name()
		case 1:
			content = "bin\x00" + content
		}
		r.put(name, content)
		return
	}
	switch r.rnd.IntN(18) {
	case 0, 1, 2, 3:
		r.edit(file)
	case 4:
		_ = os.Remove(file)
	case 5:
		r.try("mv", file, fmt.Sprintf("moved %d", r.rnd.IntN(9)))
	case 6:
		r.try("update-index", "--chmod="+[]string{"+x", "-x"}[r.rnd.IntN(2)], file)
	case 7, 8:
		r.try("add", "--", file)
	case 9:
		r.put(".gitignore", []string{"*.log\n", "out/\n!*.c\n", "/src/**/deep\n# x\n", ""}[r.rnd.IntN(4)])
	case 10, 11, 12, 13:
		r.run("add", "-A")
		r.try("commit", "-q", "-m", fmt.Sprintf("commit %d\n\nbody", r.rnd.IntN(1000)))
	case 14:
		r.try("gc", "-q")
	case 15:
		branch := fmt.Sprint("b", r.rnd.IntN(3))
		if _, ok := r.try("checkout", "-q", branch); !ok {
			r.try("checkout", "-q", "-b", branch, fmt.Sprintf("HEAD~%d", r.rnd.IntN(3)))
		}
	case 16:
		r.run("add", "-A")
		r.try("commit", "-q", "-m", "before a merge")
		if _, ok := r.try("merge", "-q", fmt.Sprint("b", r.rnd.IntN(3))); !ok && r.rnd.IntN(3) > 0 {
			r.try("merge", "--abort")
		}
	case 17:
		r.try("update-index", "--index-version", fmt.Sprint(2+r.rnd.IntN(3)))
	}
}

func (r random) compare() {
	r.Helper()
	r.sameEverywhere()
	file := r.file()
	if _, ok := r.try("rev-parse", "-q", "--verify", "HEAD"); !ok || file == "" {
		return
	}
	r.same(args{Operation: "log", Path: file, Limit: 200}, "log", "--oneline", "--", file)
	r.same(args{Operation: "log", Format: "numstat", Limit: 30}, "log", "--numstat", "--diff-merges=first-parent", "-30")
	if _, ok := r.try("cat-file", "-e", "HEAD:"+file); ok {
		if text := r.run("show", "HEAD:"+file); text != "" && !strings.Contains(text, "\x00") {
			r.same(args{Operation: "blame", Path: file, Revision: "HEAD"}, "blame", "--date=short", "HEAD", "--", file)
		}
	}
	r.applies()
}

// applies has git turn one tree into another by our diff.
func (r random) applies() {
	r.Helper()
	if _, ok := r.try("rev-parse", "-q", "--verify", "HEAD~2"); !ok {
		return
	}
	out := r.works(args{Operation: "diff", Revision: "HEAD~2..HEAD"})
	if out.NextOffset > 0 || strings.Contains(out.Output, "\nBinary files ") || strings.HasPrefix(out.Output, "[") {
		return
	}
	patch := filepath.Join(r.TempDir(), "patch")
	if err := os.WriteFile(patch, []byte(out.Output+"\n"), 0o666); err != nil {
		r.Fatal(err)
	}
	index := "GIT_INDEX_FILE=" + filepath.Join(r.TempDir(), "index")
	for _, a := range [][]string{{"read-tree", "HEAD~2"}, {"apply", "--cached", patch}, {"diff", "--cached", "--quiet", "HEAD"}} {
		cmd := r.command(a...)
		cmd.Env = append(cmd.Env, index)
		if said, err := cmd.CombinedOutput(); err != nil {
			r.Fatalf("git %q: %v: %s\n%s", a, err, said, out.Output)
		}
	}
}
