//go:build !wasip1

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/guests/git/repo"
)

// limit changes a limit for the duration of a test.
func limit(t *testing.T, of *int, to int) {
	t.Helper()
	was := *of
	*of = to
	t.Cleanup(func() { *of = was })
}

// history makes commits. Each changes one of ten files in a folder, and every tenth a
// line of long.txt. The last ones are on two branches that are merged.
func (f *fixture) history(commits int) {
	f.Helper()
	var in strings.Builder
	text := strings.SplitAfter(strings.TrimSuffix(textLines(0, 50), "\n"), "\n")
	text[len(text)-1] += "\n"
	commit := func(branch string, n int, from string) {
		fmt.Fprintf(&in, "commit refs/heads/%s\nmark :%d\ncommitter A <a@b> %d +0000\ndata <<E\nchange %d\nE\n%s", branch, n+1, 1_700_000_000+n*60, n, from)
		fmt.Fprintf(&in, "M 100644 inline dir/f%d\ndata <<E\n%d\nE\n", n%10, n)
		if n%10 == 0 {
			text[n/10%len(text)] = fmt.Sprintf("line of commit %d\n", n)
			fmt.Fprintf(&in, "M 100644 inline long.txt\ndata <<E\n%sE\n", strings.Join(text, ""))
		}
	}
	for n := range commits {
		commit("main", n, "")
	}
	commit("side", commits, fmt.Sprintf("from :%d\n", commits-commits/10))
	commit("side", commits+1, "")
	commit("main", commits+2, fmt.Sprintf("merge :%d\n", commits+2))
	commit("main", commits+3, "")
	cmd := f.command("fast-import", "--quiet")
	cmd.Stdin = strings.NewReader(in.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		f.Fatalf("git fast-import: %v: %s", err, out)
	}
	f.run("reset", "-q", "--hard")
	f.run("repack", "-q", "-a", "-d")
}

// spent returns the units of work of a call.
func (f *fixture) spent(in args) int {
	f.Helper()
	c, err := open(in, f.Context().Err)
	if err != nil {
		f.Fatal(err)
	}
	defer c.Close()
	if in.Operation == "blame" {
		err = c.blame()
	} else {
		err = c.log()
	}
	if err != nil && err != errFull {
		f.Fatal(err)
	}
	return c.Spent()
}

func TestCommitGraphSaysTheSame(t *testing.T) {
	f := newFixture(t)
	f.history(300)
	compare := func(name string) {
		t.Run(name, func(t *testing.T) {
			f := *f
			f.T = t
			f.same(args{Operation: "log", Path: "dir/f3", Limit: 200}, "log", "--oneline", "--", "dir/f3")
			f.same(args{Operation: "log", Path: "dir", Limit: 200, Revision: "main~20"}, "log", "--oneline", "-200", "main~20", "--", "dir")
			f.same(args{Operation: "log", Path: "nowhere"}, "log", "--oneline", "--", "nowhere")
			f.same(args{Operation: "log", Revision: "main~100..main", Limit: 200}, "log", "--oneline", "main~100..main")
			f.same(args{Operation: "log", Revision: "side ^main~35", Limit: 200}, "log", "--oneline", "side", "^main~35")
			f.same(args{Operation: "blame", Path: "long.txt", Revision: "HEAD"}, "blame", "--date=short", "HEAD", "--", "long.txt")
			f.same(args{Operation: "diff", Revision: "side...main"}, "diff", "side...main")
		})
	}
	rare := args{Operation: "log", Path: "nowhere"}
	compare("none")
	without := f.spent(rare)
	f.run("commit-graph", "write", "--reachable", "--changed-paths")
	compare("one")
	if with := f.spent(rare); with*5 > without {
		t.Errorf("with a commit-graph a log takes %d units of work, and %d without", with, without)
	}
	f.commit("newer than that")
	compare("an older one")
	f.run("commit-graph", "write", "--reachable", "--changed-paths", "--split=no-merge")
	f.commit("another")
	f.run("commit-graph", "write", "--reachable", "--changed-paths", "--split=no-merge")
	if _, err := os.Stat(".git/objects/info/commit-graphs/commit-graph-chain"); err != nil {
		t.Fatal(err)
	}
	compare("a chain")
}

// A malformed commit-graph is not used. A wrong one causes no crash, and takes no more
// memory and time than a call may.
func TestHostileCommitGraphs(t *testing.T) {
	f := newFixture(t)
	f.history(60)
	f.run("commit-graph", "write", "--reachable", "--changed-paths")
	const name = ".git/objects/info/commit-graph"
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	limit(t, &repo.MaxWork, 200_000) // of commits in a circle there is no end
	calls := []args{{Operation: "log", Path: "nowhere"}, {Operation: "log", Revision: "main~20..main"}, {Operation: "blame", Path: "long.txt", Revision: "HEAD"}}
	rnd := rand.New(rand.NewPCG(3, 18))
	for n := range 150 {
		data := append([]byte(nil), whole...)
		switch n % 3 {
		case 0:
			data = data[:rnd.IntN(len(data))]
		case 1:
			for range 1 + rnd.IntN(20) {
				data[rnd.IntN(len(data))] = byte(rnd.IntN(256))
			}
		case 2: // the header, and where the chunks are
			data[rnd.IntN(100)] ^= 1 << rnd.IntN(8)
		}
		_ = os.Remove(name)
		f.put(name, string(data))
		for _, in := range calls {
			if _, err := f.bounded(in, 64<<20); err != nil && len(err.Error()) > 1000 {
				t.Errorf("the error is %.2000q", err)
			}
		}
	}
	// All parents are the last commit: a circle.
	data := append([]byte(nil), whole...)
	for i := range int(data[6]) {
		row := data[8+12*i:]
		if string(row[:4]) != "CDAT" {
			continue
		}
		for at := int(row[10])<<8 | int(row[11]); at < int(row[22])<<8|int(row[23]); at += 36 {
			copy(data[at+20:], "\x00\x00\x00\x00\x70\x00\x00\x00")
		}
	}
	_ = os.Remove(name)
	f.put(name, string(data))
	for _, in := range append(calls, args{Operation: "show", Revision: "HEAD~90000"}) {
		_, _ = f.bounded(in, 64<<20)
	}
}

func TestEndsWithWhatWasFound(t *testing.T) {
	f := newFixture(t)
	f.history(300)
	t.Run("a log goes on where it ended", func(t *testing.T) {
		f := *f
		f.T = t
		for name, of := range map[string]*int{"commits": &maxWalk, "work": &repo.MaxWork} {
			limit(t, of, map[string]int{"commits": 50, "work": 20_000}[name])
			want := strings.TrimSuffix(f.run("log", "--oneline", "--", "long.txt"), "\n")
			var got []string
			calls := 0
			for in := (args{Operation: "log", Path: "long.txt", Limit: 200}); ; calls++ {
				out := f.works(in).Output
				for line := range strings.Lines(out) {
					if !strings.HasPrefix(line, "[") {
						got = append(got, strings.TrimSuffix(line, "\n"))
					}
				}
				_, rest, more := strings.Cut(out, `call git again with revision="`)
				if !more {
					break
				}
				if !strings.Contains(out, "commits were looked at, back to 2023-11-1") || !strings.Contains(out, "git log --oneline") {
					t.Fatalf("the end says %q", out)
				}
				in.Revision, _, _ = strings.Cut(rest, `"`)
			}
			if calls < 2 || strings.Join(got, "\n") != want {
				t.Errorf("%s: %d calls list\n%s\nand git\n%s", name, calls, strings.Join(got, "\n"), want)
			}
			limit(t, of, 10_000_000)
		}
	})
	t.Run("a range has what is known not to be in the other", func(t *testing.T) {
		f := *f
		f.T = t
		limit(t, &maxMarked, 40)
		out := f.works(args{Operation: "log", Revision: "main~200..main", Limit: 200}).Output
		want := f.run("log", "--oneline", "-10", "main~200..main")
		if !strings.HasPrefix(out, want) || !strings.Contains(out, `call git again with revision="^main~200 `) {
			t.Errorf("a range that is cut is %s", out)
		}
		out = f.works(args{Operation: "log", Revision: "main..main~250"}).Output
		if !strings.HasPrefix(out, "[") || !strings.Contains(out, "whether there are others is not known") {
			t.Errorf("the other way it is %s", out)
		}
		f.fails(args{Operation: "diff", Revision: "main~250...main"}, "TOO_LARGE", "git merge-base")
	})
	t.Run("blame has the lines that were found", func(t *testing.T) {
		f := *f
		f.T = t
		want := strings.Split(f.run("blame", "--date=short", "HEAD", "--", "long.txt"), "\n")
		for name, of := range map[string]*int{"commits": &maxBlamed, "work": &repo.MaxWork} {
			limit(t, of, map[string]int{"commits": 60, "work": 20_000}[name])
			out := f.works(args{Operation: "blame", Path: "long.txt", Revision: "HEAD"}).Output
			found, older := 0, 0
			for i, line := range strings.Split(out, "\n") {
				switch {
				case strings.HasPrefix(line, "["):
					if !strings.Contains(line, fmt.Sprintf("%d of the 50 lines are marked", older)) || !strings.Contains(line, "git blame -L FROM,TO HEAD -- long.txt") {
						t.Errorf("the end says %s", line)
					}
				case strings.Contains(line, "(or older 2023-11-1"):
					older++
				case strings.Fields(line)[0] != strings.Fields(want[i])[0]:
					t.Errorf("line %d is %q, and for git %q", i, line, want[i])
				default:
					found++
				}
			}
			if found == 0 || older == 0 {
				t.Errorf("%s: %d lines were found and %d not:\n%s", name, found, older, out)
			}
			limit(t, of, 10_000_000)
		}
	})
	t.Run("what has no part to show is too large", func(t *testing.T) {
		f := *f
		f.T = t
		limit(t, &maxChanges, 5)
		f.fails(args{Operation: "diff", Revision: "main~20..main"}, "TOO_LARGE", "name a path")
		limit(t, &repo.MaxWork, 50)
		f.fails(args{Operation: "diff", Revision: "main~20..main"}, "TOO_LARGE", "name a path")
	})
	t.Run("files that have to be read again", func(t *testing.T) {
		f := *f
		f.T = t
		limit(t, &maxReread, 3*workReread+100)
		for _, name := range strings.Fields(f.run("ls-files")) {
			if err := os.Chtimes(name, epoch, epoch); err != nil {
				t.Fatal(err)
			}
		}
		for _, op := range []string{"status", "diff"} {
			if out := f.works(args{Operation: op}).Output; !strings.Contains(out, "8 files may have changed and were not compared") || !strings.Contains(out, "nothing of what was compared") {
				t.Errorf("%s says %s", op, out)
			}
		}
	})
}

func TestWhatIsNotThereIsSaid(t *testing.T) {
	f := newFixture(t)
	f.put("dir/a", "x\n")
	f.put("gone", "x\n")
	f.commit("a")
	f.commit("b")
	for _, in := range []args{{Operation: "status"}, {Operation: "diff"}, {Operation: "diff", Staged: true}, {Operation: "diff", Revision: "HEAD"}, {Operation: "diff", Revision: "HEAD~1..HEAD"}} {
		in.Path = "dir/nowhere"
		f.fails(in, "not-found", "did not match any file", "log with this path")
		for _, there := range []string{"dir", "dir/a", "gone", "new"} {
			if there == "new" && in.Revision == "HEAD~1..HEAD" {
				continue
			}
			f.put("new", "")
			_ = os.Remove("gone")
			in.Path = there
			f.works(in)
		}
	}
	t.Run("the files of the worktree", func(t *testing.T) {
		f := *f
		f.T = t
		top, _ := os.Getwd()
		if err := os.Rename(".git", filepath.Join(t.TempDir(), ".git")); err != nil {
			t.Fatal(err)
		}
		moved := t.TempDir()
		entries, _ := filepath.Glob(filepath.Join(filepath.Dir(moved), "*", ".git"))
		if len(entries) != 1 {
			t.Fatal(entries)
		}
		dir := filepath.Dir(entries[0])
		// A directory looks like this if only .git in it is granted.
		hide := func() {
			if err := os.Chtimes(dir, epoch, time.Unix(0, 0)); err != nil {
				t.Fatal(err)
			}
		}
		hide()
		f.fails(args{Operation: "status", Path: dir}, "UNSUPPORTED", "not visible here", "--mount")
		f.fails(args{Operation: "diff", Path: dir}, "UNSUPPORTED", "not visible here")
		f.works(args{Operation: "log", Path: dir})
		if err := os.Chtimes(dir, epoch, epoch); err != nil {
			t.Fatal(err)
		}
		if out := f.works(args{Operation: "status", Path: dir}).Output; strings.Count(out, " D ") != 2 {
			t.Errorf("where all files were removed, status says %s", out)
		}
		if err := os.Rename(filepath.Join(dir, ".git"), top+"/.git"); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("an index that is split or sparse", func(t *testing.T) {
		f := *f
		f.T = t
		f.run("update-index", "--split-index")
		f.put("dir/a", "changed\n")
		f.run("add", "dir/a")
		f.fails(args{Operation: "status"}, "UNSUPPORTED", "split", "git status, run by bash")
		f.run("update-index", "--no-split-index")
		f.run("reset", "-q", "--hard")
		f.put("other/deep/b", "x\n")
		f.commit("c")
		f.run("sparse-checkout", "init", "--cone", "--sparse-index")
		f.run("sparse-checkout", "set", "dir")
		f.fails(args{Operation: "diff"}, "UNSUPPORTED", "sparse", "git status, run by bash")
	})
}

func TestLargeThingsAreToldInShort(t *testing.T) {
	f := newFixture(t)
	line := strings.Repeat("all work and no play ", 100)
	var b strings.Builder
	for i := range 4500 {
		fmt.Fprintf(&b, "%s%d\n", line, i)
	}
	f.put("large", b.String())
	f.commit("large")
	size := b.Len()
	f.put("large", b.String()+"more\n")
	f.commit("larger")
	want := fmt.Sprintf("[large: %d and %d bytes, too large to compare]", size, size+5)
	for _, how := range []string{"loose", "packed"} {
		if out := f.works(args{Operation: "show"}).Output; !strings.Contains(out, want) {
			t.Errorf("%s, show does not say %q but %.500s", how, want, out)
		}
		f.fails(args{Operation: "show", Revision: "HEAD:large"}, "TOO_LARGE", fmt.Sprintf("has %d bytes", size+5), "git cat-file")
		f.run("gc", "-q")
	}
	f.run("checkout", "-q", "-b", "side")
	f.put("c", textLines(0, 400))
	f.put("d", textLines(0, 400))
	f.commit("side")
	f.run("checkout", "-q", "main")
	f.commit("main")
	f.run("merge", "-q", "side")
	out := f.works(args{Operation: "show"}).Output
	if !strings.Contains(out, "\nA\tc\nA\td") || strings.Contains(out, "+line") || !strings.Contains(out, "format=patch") {
		t.Errorf("show of a merge is %.500s", out)
	}
	if out := f.works(args{Operation: "show", Path: "c"}).Output; !strings.Contains(out, "+line 399") || strings.Contains(out, "b/d") {
		t.Errorf("show of a file of a merge is %.500s", out)
	}
	if out := f.works(args{Operation: "log", Format: "patch", Limit: 1}).Output; !strings.Contains(out, "changes 2 files of its first parent") {
		t.Errorf("log of a merge is %.500s", out)
	}
	if out := f.works(args{Operation: "branches", Limit: 1}).Output; !strings.Contains(out, "[in all there are 2 branches, 0 branches of remotes, 0 tags]") {
		t.Errorf("branches says %s", out)
	}
}

func TestOneFileWithConflicts(t *testing.T) {
	f := newFixture(t)
	f.put("a", "x\n")
	f.commit("a")
	f.run("branch", "side")
	f.put("a", "main\n")
	f.commit("main")
	f.run("checkout", "-q", "side")
	f.put("a", "side\n")
	f.commit("side")
	f.try("merge", "-q", "main")
	if out := f.works(args{Operation: "diff"}).Output; !strings.Contains(out, "[1 file with conflicts was not compared") {
		t.Errorf("diff says %s", out)
	}
}
