//go:build !wasip1

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/guests/internal/codetest"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// TestMain puts repositories into memory if the system has a place for that: most of the
// time goes to the file system.
func TestMain(m *testing.M) {
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err == nil && info.IsDir() {
		_ = os.Setenv("TMPDIR", memory)
	}
	os.Exit(m.Run())
}

// fixture is a repository that git itself has made, and the working directory of the test.
type fixture struct {
	*testing.T
	git   string
	clock int
}

// newFixture makes an empty repository, or ends the test where git is not installed.
func newFixture(t *testing.T, options ...string) *fixture {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal("the test needs git: ", err)
	}
	t.Chdir(t.TempDir())
	f := &fixture{T: t, git: git, clock: 1_700_000_000}
	f.run(append([]string{"init", "-q", "-b", "main", "--template="}, options...)...)
	return f
}

// settings are for git: the guest does not see executable bits, and precautions for
// repositories that stay would take half of the time.
var settings = []string{"-c", "core.quotePath=false", "-c", "protocol.file.allow=always", "-c", "core.fileMode=false", "-c", "core.fsync=none", "-c", "maintenance.auto=false", "-c", "gc.auto=0"}

// command returns a git command without the user's configuration.
func (f *fixture) command(args ...string) *exec.Cmd {
	f.clock += 60
	date := fmt.Sprintf("%d +0130", f.clock)
	cmd := exec.CommandContext(f.Context(), f.git, append(slices.Clip(settings), args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_AUTHOR_NAME=Ada Löv", "GIT_AUTHOR_EMAIL=ada@example.org",
		"GIT_COMMITTER_NAME=Bob", "GIT_COMMITTER_EMAIL=bob@example.org", "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date, "GIT_EDITOR=true", "GIT_MERGE_AUTOEDIT=no")
	return cmd
}

// try runs git and reports whether it succeeded.
func (f *fixture) try(args ...string) (string, bool) {
	f.Helper()
	out, err := f.command(args...).Output()
	return string(out), err == nil
}

func (f *fixture) run(args ...string) string {
	f.Helper()
	cmd := f.command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		f.Fatalf("git %q: %v: %s", args, err, stderr.String())
	}
	return string(out)
}

func (f *fixture) put(name, content string) {
	f.Helper()
	err := os.MkdirAll(filepath.Dir(name), 0o777)
	if err == nil {
		_ = os.Remove(name)
		if target, ok := strings.CutPrefix(content, "->"); ok {
			err = os.Symlink(target, name)
		} else {
			err = os.WriteFile(name, []byte(content), 0o666)
		}
	}
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) commit(message string) {
	f.Helper()
	f.run("add", "-A")
	f.run("commit", "-q", "--allow-empty", "-m", message)
}

func (f *fixture) works(in args) result {
	f.Helper()
	out, err := run(f.Context(), in)
	if err != nil {
		f.Fatalf("%+v: %v", in, err)
	}
	return out
}

// text returns the output of a call without the notes at its end.
func (f *fixture) text(in args) string {
	f.Helper()
	lines := strings.Split(f.works(in).Output, "\n")
	for len(lines) > 0 && strings.HasPrefix(lines[len(lines)-1], "[") {
		lines = lines[:len(lines)-1]
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "[a merge, compared with") })
	return strings.Join(lines, "\n")
}

// unmerged matches a conflict in a status.
var unmerged = regexp.MustCompile(`(?m)^(U.|.U|AA|DD) `)

// same compares a call with git's output, and returns the output.
func (f *fixture) same(in args, git ...string) string {
	f.Helper()
	want := strings.TrimSuffix(f.run(git...), "\n")
	got := f.text(in)
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		f.Errorf("%+v, and git %q (-git +ours):\n%s", in, git, diff)
	}
	return want
}

func (f *fixture) fails(in args, code string, words ...string) {
	f.Helper()
	out, err := run(f.Context(), in)
	if err == nil {
		f.Errorf("%+v: no error, but %q", in, out.Output)
		return
	}
	codetest.CheckDocumented(f.T, "git", err)
	got := tool.CodeOf(err)
	if got == "" {
		got = tool.AsError(err).Code.String()
	}
	if got != code {
		f.Errorf("%+v: the code is %s and not %s: %v", in, got, code, err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			f.Errorf("%+v: the error %q does not say %q", in, err, w)
		}
	}
}

// sameEverywhere compares all operations with git's.
func (f *fixture) sameEverywhere() {
	f.Helper()
	status := f.same(args{Operation: "status"}, "status", "--short", "--branch")
	if unmerged.MatchString(status) {
		return // a diff of a conflict has three sides
	}
	f.same(args{Operation: "diff"}, "diff")
	f.same(args{Operation: "diff", Staged: true}, "diff", "--staged")
	if strings.HasPrefix(status, "## No commits yet") {
		return
	}
	f.same(args{Operation: "diff", Revision: "HEAD"}, "diff", "HEAD")
	f.same(args{Operation: "log", Limit: 200}, "log", "--oneline", "-200")
	f.same(args{Operation: "show", Revision: "HEAD", Format: "patch"}, "show", "--first-parent", "HEAD")
}

func TestLikeGitInEverySituation(t *testing.T) {
	for name, tt := range map[string]func(f *fixture){
		"an empty repository":         func(f *fixture) {},
		"only files that are added":   func(f *fixture) { f.put("a", "x\n"); f.run("add", "a"); f.put("a", "y\n") },
		"a file that is to be added":  func(f *fixture) { f.commit("c"); f.put("n", "x\n"); f.run("add", "-N", "n") },
		"a detached HEAD":             func(f *fixture) { f.commit("a"); f.commit("b"); f.run("checkout", "-q", "HEAD~1") },
		"a renamed file":              func(f *fixture) { f.put("a", "x\n"); f.commit("a"); f.run("mv", "a", "b") },
		"a file that became a link":   func(f *fixture) { f.put("a", "x\n"); f.commit("a"); f.put("a", "->b") },
		"a file that became a folder": func(f *fixture) { f.put("a", "x\n"); f.commit("a"); os.Remove("a"); f.put("a/b", "x\n") },
		"a folder that became a file": func(f *fixture) { f.put("a/b", "x\n"); f.commit("a"); os.RemoveAll("a"); f.put("a", "x\n") },
		"a folder that became a link": func(f *fixture) {
			f.put("a/b", "x\n")
			f.put("c/b", "x\n")
			f.commit("a")
			os.RemoveAll("a")
			f.put("a", "->c")
		},
		"a mode that is staged": func(f *fixture) { f.put("a", "x\n"); f.commit("a"); f.run("update-index", "--chmod=+x", "a") },
		"a binary file":         func(f *fixture) { f.put("a", "x\x00\n"); f.commit("a"); f.put("a", "y\x00\n") },
		"no newline at the end": func(f *fixture) { f.put("a", "x\ny"); f.commit("a"); f.put("a", "x\nz") },
		"an empty file":         func(f *fixture) { f.put("a", ""); f.commit("a"); f.put("b", ""); f.run("add", "b"); os.Remove("a") },
		"odd names": func(f *fixture) {
			f.put("ü \"q\".txt", "x\n")
			f.put("t\tab", "x\n")
			f.put("back\\slash", "x\n")
			f.put("日 本", "x\n")
			f.commit("n")
			f.put("ü \"q\".txt", "y\n")
			f.put("t\tab", "y\n")
			f.put("new file", "z\n")
		},
		"ignored files": func(f *fixture) {
			f.put(".gitignore", "*.log\n/out/\n!keep.log\n")
			f.put("a.log", "")
			f.put("keep.log", "")
			f.put("out/x", "")
			f.put("d/b.log", "")
			f.put("e/f/g", "")
		},
		"what info/exclude says": func(f *fixture) {
			f.put(".git/info/exclude", "secret*\n")
			f.put("secrets", "")
			f.put("x/secret", "")
			f.put("y", "")
		},
		"a repository in another":  func(f *fixture) { f.put("sub/a", "x\n"); f.run("init", "-q", "sub"); f.put("z", "") },
		"a submodule":              submodule,
		"a submodule that went on": func(f *fixture) { submodule(f); f.run("-C", "sub", "commit", "-q", "--allow-empty", "-m", "on") },
		"an index of version 4":    func(f *fixture) { many(f); f.run("update-index", "--index-version", "4"); f.put("d3/f7", "y\n") },
		"an index of version 3": func(f *fixture) {
			many(f)
			f.run("update-index", "--skip-worktree", "d3/f7")
			f.put("d3/f7", "y\n")
			os.Remove("d1/f1")
		},
		"what is assumed unchanged": func(f *fixture) { many(f); f.run("update-index", "--assume-unchanged", "d3/f7"); f.put("d3/f7", "y\n") },
		"packs and a detached HEAD": func(f *fixture) {
			many(f)
			f.commit("b")
			f.run("gc", "-q")
			f.put("d1/f2", "y\n")
			f.run("checkout", "-q", "--detach")
		},
		"a merge":                    merged,
		"conflicts":                  conflicting,
		"a commit without a message": func(f *fixture) { f.run("commit", "-q", "--allow-empty", "--allow-empty-message", "-m", "") },
		"a message of several lines": func(f *fixture) { f.run("commit", "-q", "--allow-empty", "-m", "one\ntwo\n\nthree\n\n  four") },
		"touched and unchanged":      func(f *fixture) { f.put("a", "x\n"); f.commit("a"); f.put("a", "x\n"); os.Chtimes("a", epoch, epoch) },
		"the same size at once":      func(f *fixture) { f.put("a", "x\n"); f.commit("a"); f.put("a", "y\n") },
		"line endings of an attribute": func(f *fixture) {
			f.put(".gitattributes", "* text=auto\n")
			f.put("a", "x\r\ny\r\n")
			f.commit("a")
			f.put("a", "x\r\nz\r\n")
			f.put("b", "q\r\n")
		},
		"line endings by autocrlf":  autocrlf,
		"line endings that changed": func(f *fixture) { f.put("a", "x\ny\n"); f.commit("a"); f.put("a", "x\r\ny\r\n") },
		"binary by an attribute": func(f *fixture) {
			f.put(".gitattributes", "*.dat binary\n")
			f.put("a.dat", "x\n")
			f.commit("a")
			f.put("a.dat", "y\n")
		},
		"a branch at origin": upstream,
		"two changed renames": func(f *fixture) {
			f.put("a", textLines(1, 60))
			f.put("b", textLines(100, 160))
			f.commit("a")
			f.run("mv", "a", "x")
			f.run("mv", "b", "y")
			f.put("x", textLines(1, 55))
			f.put("y", textLines(110, 165))
			f.run("add", "-A")
		},
		"a rename into a folder": func(f *fixture) {
			f.put("p/q/a.go", textLines(1, 60))
			f.commit("a")
			os.MkdirAll("p/r", 0o777)
			f.run("mv", "p/q/a.go", "p/r/a.go")
			f.put("p/r/a.go", textLines(1, 58))
			f.run("add", "-A")
			f.commit("moved")
		},
		"an encoding": func(f *fixture) {
			f.run("-c", "i18n.commitEncoding=ISO-8859-1", "commit", "-q", "--allow-empty", "--author=Ada <a>", "-m", "gr\xfcn")
		},
		"a rebase that has stopped": func(f *fixture) {
			f.put("a", "x\n")
			f.commit("a")
			f.run("branch", "b")
			f.put("a", "y\n")
			f.commit("y")
			f.run("checkout", "-q", "b")
			f.put("a", "z\n")
			f.commit("z")
			f.try("rebase", "-q", "main")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			tt(f)
			f.sameEverywhere()
		})
	}
}

func many(f *fixture) {
	for i := range 10 {
		for j := range 10 {
			f.put(fmt.Sprintf("d%d/f%d", i, j), textLines(i*j, i*j+20))
		}
	}
	f.commit("many")
}

func textLines(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "line %d of a text\n", i)
	}
	return b.String()
}

func merged(f *fixture) {
	f.put("a", textLines(0, 30))
	f.commit("a")
	f.run("checkout", "-q", "-b", "side")
	f.put("a", textLines(0, 30)+"side\n")
	f.commit("side")
	f.run("checkout", "-q", "main")
	f.put("a", "main\n"+textLines(0, 30))
	f.commit("main")
	f.run("merge", "-q", "side")
}

func conflicting(f *fixture) {
	f.put("both", "x\n")
	f.put("gone here", "x\n")
	f.put("gone", "x\n")
	f.commit("a")
	f.run("checkout", "-q", "-b", "side")
	f.put("both", "side\n")
	f.put("gone here", "side\n")
	f.put("new", "side\n")
	os.Remove("gone")
	f.commit("side")
	f.run("checkout", "-q", "main")
	f.put("both", "main\n")
	os.Remove("gone here")
	f.put("gone", "main\n")
	f.put("new", "main\n")
	f.commit("main")
	f.try("merge", "-q", "side")
}

func submodule(f *fixture) {
	other := f.TempDir()
	f.run("init", "-q", other)
	f.run("-C", other, "commit", "-q", "--allow-empty", "-m", "sub")
	f.run("submodule", "--quiet", "add", other, "sub")
	f.commit("with a submodule")
}

func autocrlf(f *fixture) {
	f.run("config", "core.autocrlf", "true")
	f.put("a", "x\r\ny\r\n")
	f.put("b", "x\r\ny\r\n")
	f.commit("a")
	os.Chtimes("a", epoch, epoch)
	f.put("b", "x\r\nyy\r\n")
}

func upstream(f *fixture) {
	f.commit("a")
	f.commit("b")
	f.run("clone", "-q", ".", "clone")
	f.Chdir("clone")
	f.run("reset", "-q", "--hard", "HEAD~1")
	f.run("commit", "-q", "--allow-empty", "-m", "own")
	f.run("commit", "-q", "--allow-empty", "-m", "own too")
}

func TestOtherPlaces(t *testing.T) {
	f := newFixture(t)
	f.put("dir/a", "x\n")
	f.commit("a")
	f.put("dir/a", textLines(0, 9))
	f.put("b", "b\n")
	f.commit("b")
	f.put("dir/a", textLines(1, 9))
	f.put("dir/new", "")
	top, _ := os.Getwd()

	t.Run("a path", func(t *testing.T) {
		f.same(args{Operation: "status", Path: "dir"}, "status", "--short", "--branch", "--", "dir")
		f.same(args{Operation: "status", Path: "b"}, "status", "--short", "--branch", "--", "b")
		f.same(args{Operation: "diff", Path: top + "/dir/a"}, "diff", "--", "dir/a")
		f.same(args{Operation: "log", Path: "b"}, "log", "--oneline", "--", "b")
		f.same(args{Operation: "show", Path: "b"}, "show", "HEAD", "--", "b")
		f.same(args{Operation: "show", Revision: "HEAD~1:dir/a"}, "show", "HEAD~1:dir/a")
		f.same(args{Operation: "show", Revision: ":dir/a"}, "show", ":dir/a")
		f.same(args{Operation: "show", Revision: "HEAD:dir"}, "show", "HEAD:dir")
		f.same(args{Operation: "diff", Revision: "HEAD~1..HEAD", Format: "numstat"}, "diff", "--numstat", "HEAD~1..HEAD")
		f.same(args{Operation: "diff", Revision: "HEAD~1 HEAD"}, "diff", "HEAD~1", "HEAD")
		f.same(args{Operation: "log", Revision: "HEAD~1..HEAD", Format: "patch"}, "log", "-p", "HEAD~1..HEAD")
		f.same(args{Operation: "log", Format: "full"}, "log")
		f.same(args{Operation: "blame", Path: "dir/a", Revision: "HEAD"}, "blame", "--date=short", "HEAD", "--", "dir/a")
	})
	t.Run("a directory of the worktree", func(t *testing.T) {
		f := *f
		f.T = t
		t.Chdir(top + "/dir")
		f.same(args{Operation: "status"}, "status", "--short", "--branch")
		f.same(args{Operation: "diff", Path: "a"}, "diff", "--", "a")
	})
	t.Run("a worktree", func(t *testing.T) {
		f := *f
		f.T = t
		f.run("worktree", "add", "-q", top+"/../other", "-b", "other")
		t.Chdir(top + "/../other")
		f.put("b", "changed\n")
		f.sameEverywhere()
	})
	t.Run("a bare repository", func(t *testing.T) {
		f := *f
		f.T = t
		f.run("clone", "-q", "--bare", top, top+"/../bare")
		t.Chdir(top + "/../bare")
		f.same(args{Operation: "log"}, "log", "--oneline")
		f.same(args{Operation: "show", Revision: "HEAD~1"}, "show", "HEAD~1")
		f.fails(args{Operation: "status"}, "UNSUPPORTED", "bare")
	})
	t.Run("a shallow clone", func(t *testing.T) {
		f := *f
		f.T = t
		f.run("clone", "-q", "--depth", "1", "file://"+top, top+"/../shallow")
		t.Chdir(top + "/../shallow")
		f.same(args{Operation: "log"}, "log", "--oneline")
		f.same(args{Operation: "show"}, "show", "HEAD")
		f.fails(args{Operation: "show", Revision: "HEAD~1"}, "UNKNOWN_REVISION", "shallow")
		if out := f.works(args{Operation: "log"}); !strings.Contains(out.Output, "[the clone is shallow") {
			t.Errorf("log says %q", out.Output)
		}
	})
	t.Run("objects that are borrowed", func(t *testing.T) {
		f := *f
		f.T = t
		f.run("clone", "-q", "--shared", top, top+"/../shared")
		t.Chdir(top + "/../shared")
		f.sameEverywhere()
	})
	t.Run("branches and tags", func(t *testing.T) {
		f := *f
		f.T = t
		t.Chdir(top)
		f.run("tag", "-a", "-m", "first", "v1", "HEAD~1")
		f.run("pack-refs", "--all")
		f.run("branch", "topic/x")
		out := f.text(args{Operation: "branches"})
		head := strings.TrimSpace(f.run("rev-parse", "--short", "HEAD"))
		for _, want := range []string{"* main " + head, "  topic/x " + head, "  tags/v1 "} {
			if !strings.Contains(out+"\n", want) {
				t.Errorf("branches do not have %q:\n%s", want, out)
			}
		}
		f.same(args{Operation: "show", Revision: "v1", Format: "full"}, "show", "-s", "v1")
		f.same(args{Operation: "log", Revision: "v1"}, "log", "--oneline", "v1")
		f.same(args{Operation: "log", Revision: "topic/x~1"}, "log", "--oneline", "topic/x~1")
		f.same(args{Operation: "diff", Revision: "v1...main"}, "diff", "v1...main")
	})
}

func TestRevisionsLikeGit(t *testing.T) {
	f := newFixture(t)
	merged(f)
	f.run("tag", "-a", "-m", "t", "v1")
	f.run("gc", "-q")
	f.commit("loose")
	for _, rev := range []string{"HEAD", "@", "main", "heads/main", "refs/heads/main", "side", "v1", "v1^{}", "v1^{commit}", "HEAD^{tree}", "HEAD~1", "HEAD~", "HEAD^", "HEAD~1^2",
		"HEAD^^2~1", "v1~1", "HEAD^0", "ORIG_HEAD", "main:a", "v1:", strings.TrimSpace(f.run("rev-parse", "--short", "HEAD~1"))} {
		c, err := open(args{}, f.Context().Err)
		if err != nil {
			t.Fatal(err)
		}
		want, valid := f.try("rev-parse", "-q", "--verify", rev)
		id, err := c.Rev(rev)
		if valid != (err == nil) || valid && id.String() != strings.TrimSpace(want) {
			t.Errorf("%s is %s, %v; for git %q", rev, id, err, want)
		}
		c.Close()
	}
	for rev, code := range map[string]string{
		"mian": "UNKNOWN_REVISION", "HEAD~99": "UNKNOWN_REVISION", "HEAD^3": "UNKNOWN_REVISION", "HEAD~x": "UNKNOWN_REVISION", "0000": "UNKNOWN_REVISION",
		"HEAD@{1}": "UNSUPPORTED", "/etc/passwd": "UNKNOWN_REVISION", "refs/../../x": "invalid-input", "config": "UNKNOWN_REVISION", "HEAD:nowhere": "not-found", "--output=x": "UNKNOWN_REVISION",
		"0123456789012345678901234567890123456789": "CORRUPT_REPOSITORY",
	} {
		f.fails(args{Operation: "show", Revision: rev}, code)
	}
	f.fails(args{Operation: "show", Revision: "mian"}, "UNKNOWN_REVISION", "did you mean main?")
	f.fails(args{Operation: "show", Revision: "xyzzy"}, "UNKNOWN_REVISION", "operation branches")
}

func TestWrongArguments(t *testing.T) {
	f := newFixture(t)
	f.put("a", "x\n")
	f.put("bin", "\x00")
	f.put("d/x", "")
	f.put("shrunk", strings.Repeat("a line\n", maxText/len("a line\n")+1))
	f.commit("a")
	f.put("shrunk", "a line\n")
	f.fails(args{Operation: "blame"}, "invalid-input", "path")
	f.fails(args{Operation: "blame", Path: "d"}, "invalid-input", "directory")
	f.fails(args{Operation: "blame", Path: "bin"}, "parse", "binary")
	f.fails(args{Operation: "blame", Path: "nowhere"}, "not-found", "log with path")
	f.fails(args{Operation: "blame", Path: "a", Offset: 2}, "invalid-input", "has 1 line")
	f.fails(args{Operation: "blame", Path: "shrunk"}, "TOO_LARGE", "git blame, run by bash")
	f.fails(args{Operation: "status", Revision: "HEAD"}, "invalid-input", "revision is for")
	f.fails(args{Operation: "log", Staged: true}, "invalid-input", "staged is for diff")
	f.fails(args{Operation: "blame", Path: "a", Format: "full"}, "invalid-input", "format is for")
	f.fails(args{Operation: "push"}, "invalid-input", "status, log")
	f.fails(args{Operation: "log", Path: ".git/config"}, "invalid-input", "git directory")
	f.fails(args{Operation: "log", Revision: "HEAD...HEAD"}, "invalid-input", "A..B")
	f.fails(args{Operation: "show", Revision: "HEAD..HEAD"}, "invalid-input", "one revision")
	t.Chdir(t.TempDir())
	f.fails(args{Operation: "status"}, "NOT_A_REPOSITORY", "--mount")
}

func TestPages(t *testing.T) {
	f := newFixture(t)
	f.put("a", "x\n")
	f.commit("a")
	f.put("a", textLines(0, 9000))
	f.put("z", "new\n")
	f.commit("long")
	want := strings.TrimSuffix(f.run("show"), "\n")
	var got []string
	pages := 0
	for next := 0; pages == 0 || next > 0; pages++ {
		out := f.works(args{Operation: "show", Offset: next})
		lines := strings.Split(out.Output, "\n")
		if out.NextOffset > 0 {
			if !strings.Contains(lines[len(lines)-1], fmt.Sprintf("offset=%d", out.NextOffset)) {
				t.Fatalf("the end says %q", lines[len(lines)-1])
			}
			lines = lines[:len(lines)-1]
		}
		if len(out.Output) > maxOutput+1000 {
			t.Errorf("a page has %d bytes", len(out.Output))
		}
		got = append(got, lines...)
		next = out.NextOffset
	}
	if strings.Join(got, "\n") != want || pages < 4 {
		t.Errorf("%d pages do not make what git shows", pages)
	}
	for i := range 30 {
		f.commit(fmt.Sprint("empty ", i))
	}
	first := f.works(args{Operation: "log"})
	second := f.works(args{Operation: "log", Offset: first.NextOffset, Limit: 200})
	all := strings.TrimSuffix(f.run("log", "--oneline"), "\n")
	if first.NextOffset != 20 || second.NextOffset != 0 || strings.Join(strings.Split(first.Output, "\n")[:20], "\n")+"\n"+second.Output != all {
		t.Errorf("log pages to %d and %d", first.NextOffset, second.NextOffset)
	}
	// A log with patches goes on with whole commits.
	patches := f.works(args{Operation: "log", Format: "patch", Limit: 200})
	if patches.NextOffset != 30 {
		t.Errorf("log with patches ends before the commit %d", patches.NextOffset)
	}
	blame := f.works(args{Operation: "blame", Path: "a", Limit: 10})
	if next := f.works(args{Operation: "blame", Path: "a", Offset: blame.NextOffset, Limit: 10}); blame.NextOffset != 11 || !strings.Contains(next.Output, " 11) line 10 of") {
		t.Errorf("blame goes on at %d with %q", blame.NextOffset, next.Output)
	}
}

func TestEndsWithTheCall(t *testing.T) {
	f := newFixture(t)
	many(f)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, op := range []string{"status", "log", "diff", "show", "blame", "branches"} {
		if _, err := run(ctx, args{Operation: op, Path: "d1/f1"}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// epoch is a time that no file of a test has by itself.
var epoch = time.Unix(1_600_000_000, 0)

// A file whose times have changed is recognized by its hash, in memory or, if it is
// large, in pieces. For a file of git-lfs the index has the pointer.
func TestWhatWasOnlyTouched(t *testing.T) {
	f := newFixture(t)
	large := strings.Repeat("all work and no play\n", maxCompare/20)
	files := map[string]string{"small": "a\n", "large": large, "small.lfs": "b\n", "large.lfs": large}
	for name, content := range files {
		if strings.HasSuffix(name, ".lfs") {
			sum := sha256.Sum256([]byte(content))
			content = string(lfsPointer(sum[:], int64(len(content))))
		}
		f.put(name, content)
	}
	f.put(".gitattributes", "*.lfs filter=lfs\n")
	f.commit("m")
	for _, tt := range []struct{ more, want string }{{"", ""}, {"x", " M large\n M large.lfs\n M small\n M small.lfs"}} {
		for name, content := range files {
			f.put(name, content+tt.more)
			if err := os.Chtimes(name, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
		}
		if got := f.text(args{Operation: "status"}); strings.TrimPrefix(strings.TrimPrefix(got, "## main"), "\n") != tt.want {
			t.Errorf("with %q more, status says\n%s", tt.more, got)
		}
	}
}
