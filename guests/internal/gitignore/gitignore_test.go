package gitignore

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/git/ignore"
)

// The examples of gitignore(5) and the corners around them: the file's text,
// and paths with what becomes of them. A path that ends in / is a directory.
var ignoreTests = []struct {
	name, text string
	ignored    []string
	kept       []string
}{
	{"a name at any depth", "hello\n", []string{"hello", "a/hello", "b/hello/"}, []string{"hello2", "a/xhello"}},
	{"comment and blank lines", "# x\n\n  \n", nil, []string{"# x", "x"}},
	{"quoted hash and bang", "\\#a\n\\!b\n", []string{"#a", "!b"}, []string{"a", "b"}},
	{"spaces at the end", "a  \nb\\ \n", []string{"a", "b "}, []string{"a  ", "b"}},
	{"carriage returns", "a\r\nb/\r\n", []string{"a", "b/"}, []string{"b"}},
	{"byte order mark", "\uFEFFa\n", []string{"a"}, nil},
	{"directory only", "foo/\n", []string{"foo/", "a/foo/"}, []string{"foo", "a/foo"}},
	{"anchored", "/foo\n", []string{"foo"}, []string{"a/foo"}},
	{"a slash in the middle anchors", "doc/frotz\n", []string{"doc/frotz", "doc/frotz/"}, []string{"a/doc/frotz"}},
	{"a slash in the middle and at the end", "doc/frotz/\n", []string{"doc/frotz/"}, []string{"doc/frotz", "a/doc/frotz/"}},
	{"star stays in a directory", "foo/*\n", []string{"foo/test.json", "foo/bar/"}, []string{"foo/"}},
	{"star in a path", "a/*.c\n", []string{"a/x.c"}, []string{"a/b/x.c", "x.c"}},
	{"question mark", "a?c\n", []string{"abc"}, []string{"ac", "abbc"}},
	{"ranges", "x[a-c]y[!0-9]\n", []string{"xby_"}, []string{"xdy_", "xby1"}},
	{"classes", "[[:upper:]][[:digit:]-]\n", []string{"A1", "B-"}, []string{"a1", "AA"}},
	{"bracket as a member", "[]-]x\n[^]]y\n", []string{"]x", "-x", "ay"}, []string{"ax", "]y"}},
	{"sets that are not closed", "[ab\na[!\n", nil, []string{"[ab", "a", "a[!"}},
	{"quoted star", "a\\*b\n", []string{"a*b"}, []string{"axb", "ab"}},
	{"backslash at the end", "a\\\n", nil, []string{"a", "a\\"}},
	{"leading double star", "**/foo\n**/a/b\n", []string{"foo", "x/foo", "x/y/foo", "a/b", "x/a/b"}, []string{"foox", "ab"}},
	{"trailing double star", "abc/**\n", []string{"abc/x", "abc/x/", "abc/x/y"}, []string{"abc/", "x/abc/y"}},
	{"double star in the middle", "a/**/b\n", []string{"a/b", "a/x/b", "a/x/y/b"}, []string{"ab", "x/a/b", "a/xb"}},
	{"two double stars", "a/**/b/**/c\n", []string{"a/b/c", "a/x/b/y/z/c", "a/b/b/c/c"}, []string{"a/c", "a/b/x"}},
	{"other double stars are stars", "a**b\nx/y**\n", []string{"ab", "axxb", "x/y", "x/yz"}, []string{"a/b", "x/z/y"}},
	{"double star alone", "**\n", []string{"a", "a/b", "d/"}, nil},
	{"negation", "*.log\n!keep.log\n", []string{"a.log", "d/a.log"}, []string{"keep.log", "d/keep.log"}},
	{"the last match decides", "!a\na\n", []string{"a"}, nil},
	{"negation of a directory", "/*\n!/foo/\n/foo/*\n!/foo/bar\n", []string{"x", "foo/x"}, []string{"foo/", "foo/bar"}},
	{"lone slashes and bangs", "/\n!\n!/\n", nil, []string{"a", "b/"}},
	{"upper and lower case", "Foo\n", []string{"Foo"}, []string{"foo"}},
	{"hidden files", "*\n!.gitignore\n", []string{".env", "a"}, []string{".gitignore"}},
}

func ignored(f *File, path string) bool {
	name, isDir := strings.CutSuffix(path, "/")
	abs := filepath.Join(f.dir, name)
	return f.In(filepath.Dir(abs)).Ignores(filepath.Base(abs), isDir)
}

func TestGitignore(t *testing.T) {
	for _, tt := range ignoreTests {
		t.Run(tt.name, func(t *testing.T) {
			f := &File{dir: "/repo", patterns: ignore.Parse([]byte(tt.text))}
			for _, path := range tt.ignored {
				if !ignored(f, path) {
					t.Errorf("%q does not ignore %q", tt.text, path)
				}
			}
			for _, path := range tt.kept {
				if ignored(f, path) {
					t.Errorf("%q ignores %q", tt.text, path)
				}
			}
		})
	}
}

// TestGitignoreLikeGit asks git about every path of the table. Where git is
// not installed the table alone has to do.
func TestGitignoreLikeGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Log("git is not installed; nothing to compare with")
		return
	}
	for _, tt := range ignoreTests {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			put(t, ".gitignore", tt.text)
			run(t, git, "", "init", "-q")
			// One path after another: git tells files from directories by looking.
			for i, path := range slices.Concat(tt.ignored, tt.kept) {
				name, isDir := strings.CutSuffix(path, "/")
				if name == ".gitignore" {
					continue
				}
				put(t, path, "")
				out := run(t, git, name+"\x00", "check-ignore", "-z", "-v", "-n", "--no-index", "--stdin")
				// The fields are source, line, pattern and path; the pattern that
				// decided may be a negation, or belong to a directory above, which
				// a walk does not enter.
				fields := strings.Split(out, "\x00")
				byGit := len(fields) >= 3 && fields[2] != "" && !strings.HasPrefix(fields[2], "!")
				if above := aboveIgnored(tt.text, name); byGit != (i < len(tt.ignored)) && !above {
					t.Errorf("git says %v about %q (directory: %v) in %q: %q", byGit, path, isDir, tt.text, out)
				}
				if err := os.RemoveAll(strings.Split(name, "/")[0]); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func aboveIgnored(text, name string) bool {
	f := &File{dir: "/repo", patterns: ignore.Parse([]byte(text))}
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		if ignored(f, dir+"/") {
			return true
		}
	}
	return false
}

func run(t *testing.T, program, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	// check-ignore exits with 1 when no path is ignored.
	if err != nil && (cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1) {
		t.Fatalf("%s %q: %v: %s", program, args, err, stderr.String())
	}
	return string(out)
}

func TestGitignoreIsNotExponential(t *testing.T) {
	f := &File{dir: "/", patterns: ignore.Parse([]byte(strings.Repeat("a*", 200) + "b\n" + strings.Repeat("**/a/", 200) + "b\n"))}
	if ignored(f, strings.Repeat("a", 2000)) || ignored(f, strings.Repeat("a/", 1000)+"c") {
		t.Error("matched")
	}
}

func FuzzGitignore(f *testing.F) {
	for _, tt := range ignoreTests {
		for _, path := range tt.ignored {
			f.Add(tt.text, path)
		}
	}
	f.Add("*", "../0")
	f.Fuzz(func(t *testing.T, text, path string) {
		if name, _ := strings.CutSuffix(path, "/"); !strings.HasPrefix(filepath.Join("/repo", name), "/repo/") {
			return // a walk only goes down
		}
		file := &File{dir: "/repo", patterns: ignore.Parse([]byte(text))}
		was := ignored(file, path)
		// A negation after all else keeps everything.
		file.patterns = append(file.patterns, ignore.Parse([]byte("!*\n"))...)
		if ignored(file, path) {
			t.Errorf("%s is ignored although all is allowed", fmt.Sprintf("%q (was %v) by %q", path, was, text))
		}
	})
}

// put makes a file, or a directory if the name ends in a slash.
func put(t *testing.T, name, content string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(name), 0o777)
	if err == nil && !strings.HasSuffix(name, "/") {
		err = os.WriteFile(name, []byte(content), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}
