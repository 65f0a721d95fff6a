package diff

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/tool"
)

func version(data []byte) *tool.Version {
	return &tool.Version{Size: int64(len(data)), Mode: 0o644, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}

// What git writes to its index says what is staged, or nothing.
func TestWhatAnIndexSays(t *testing.T) {
	for _, format := range []string{"2", "4"} {
		dir := t.TempDir()
		git := func(args ...string) {
			t.Helper()
			cmd := exec.Command("git", args...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %q: %v: %s", args, err, out)
			}
		}
		write := func(name, text string) {
			t.Helper()
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		index := func() []byte {
			t.Helper()
			data, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
		git("init", "-q")
		for _, name := range []string{"a", "dir/b", "dir/bc", "long/" + strings.Repeat("x", 200)} {
			write(name, "1")
		}
		git("add", ".")
		git("update-index", "--index-version", format)
		git("commit", "-qm", "one")
		for _, c := range []struct {
			name, want string // empty: it was refreshed
			do         func()
		}{
			{"nothing is staged", "", func() { _ = os.Chtimes(filepath.Join(dir, "a"), time.Unix(1e9, 0), time.Unix(1e9, 0)); git("status") }},
			{"a change", "index of 1 file (dir/b)", func() { write("dir/b", "2"); git("add", "dir/b") }},
			{"files that come and go", "index of 2 files (a, new)", func() { git("mv", "a", "new") }},
			{"a mode", "index of 1 file (new)", func() { git("update-index", "--chmod=+x", "new") }},
			{"what git is not to look at", "index of 1 file (dir/bc)", func() { git("update-index", "--assume-unchanged", "dir/bc") }},
			{"what is not in the worktree", "index of 1 file (dir/b)", func() { git("update-index", "--skip-worktree", "dir/b") }},
			{"many", "index of 31 files (m00, m01, m02, m03, m04, m05, m06, m07, m08, m09, m10, m11, ...)", func() {
				for i := range 30 {
					write(fmt.Sprintf("m%02d", i), "")
				}
				git("add", ".")
			}},
		} {
			before := index()
			c.do()
			after := index()
			if bytes.Equal(before, after) {
				t.Fatalf("%s: git has not written", c.name)
			}
			change := tool.Change{Path: "/ws/.git/index", Kind: tool.Modified, Before: version(before), After: version(after)}
			if got := Negligible(change); got != (c.want == "") {
				t.Errorf("version %s, %s: refreshed %t", format, c.name, got)
			}
			if got := indexed(change); c.want != "" && got != c.want {
				t.Errorf("version %s, %s: %q", format, c.name, got)
			}
			// Whatever is cut off or changed, there is an answer.
			for i := 0; i < len(after); i += 7 {
				bad := append(bytes.Clone(after[:i]), 0xff)
				sum := sha1.Sum(bad)
				change.After = version(append(bad, sum[:]...))
				_, _ = indexed(change), Negligible(change)
			}
		}
	}
}
