package diff

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
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
			if got := Negligible([]tool.Change{change}); got != (c.want == "") {
				t.Errorf("version %s, %s: refreshed %t", format, c.name, got)
			}
			if got := (&repository{left: newBudget()}).indexed(change).words(); c.want != "" && got != c.want {
				t.Errorf("version %s, %s: %q", format, c.name, got)
			}
			// Whatever is cut off or changed, there is an answer.
			for i := 0; i < len(after); i += 7 {
				bad := append(bytes.Clone(after[:i]), 0xff)
				sum := sha1.Sum(bad)
				change.After = version(append(bad, sum[:]...))
				_, _ = (&repository{left: newBudget()}).indexed(change), Negligible([]tool.Change{change})
			}
		}
	}
}

// indexOf is one of version 4, of a file of each name: how much it keeps of the one
// before, and what follows.
func indexOf(names ...[2]any) []byte {
	out := binary.BigEndian.AppendUint32([]byte("DIRC\x00\x00\x00\x04"), uint32(len(names)))
	last := 0
	for _, name := range names {
		keep, more := name[0].(int), name[1].(string)
		entry := make([]byte, 62)
		entry[26], entry[27] = 0x81, 0xa4
		out = append(out, entry...)
		cut := []byte{byte((last - keep) & 0x7f)}
		for n := (last - keep) >> 7; n > 0; n >>= 7 {
			n--
			cut = append([]byte{byte(n&0x7f) | 0x80}, cut...)
		}
		out = append(append(append(out, cut...), more...), 0)
		last = keep + len(more)
	}
	sum := sha1.Sum(out)
	return append(out, sum[:]...)
}

// What is small on the disk may be large once it is read, and there may be many.
func TestIndexesAreBounded(t *testing.T) {
	says := func(data []byte) string {
		return (&repository{left: newBudget()}).indexed(tool.Change{Path: "/ws/.git/index", Kind: tool.Created, After: version(data)}).words()
	}
	long := strings.Repeat("x", maxName)
	many := [][2]any{{0, strings.Repeat("x", 4000)}}
	for i := range 20_000 { // 80 MB
		many = append(many, [2]any{4000, fmt.Sprint(i)})
	}
	for _, test := range []struct {
		name, want string
		data       []byte
	}{
		{"few", "index of 2 files (ab, ac)", indexOf([2]any{0, "ab"}, [2]any{1, "c"})},
		{"the longest name", "index of 1 file (" + strings.Repeat("x", maxWord) + "...)", indexOf([2]any{0, long})},
		{"a longer one", "index", indexOf([2]any{0, long + "x"})},
		{"one that grows", "index", indexOf([2]any{0, long}, [2]any{maxName, "x"})},
		{"many long ones", "index", indexOf(many...)},
		{"a large one", "index", append(make([]byte, maxIndex), 0)},
	} {
		if got := says(test.data); got != test.want {
			t.Errorf("%s: %.300q", test.name, got)
		}
	}

	var changes []tool.Change
	read := 0
	for i := range 300 {
		v := &tool.Version{Size: maxIndex, Mode: 0o644, Open: func() (io.ReadCloser, error) {
			read++
			return io.NopCloser(strings.NewReader("")), nil
		}}
		changes = append(changes, tool.Change{Path: fmt.Sprintf("/ws/%d/.git/index", i), Kind: tool.Modified, Before: v, After: v})
	}
	if lines := Summary(t.Context(), changes, "/ws", 999); len(lines) != 300 || lines[299] != "git in 299: index" || read > 4 {
		t.Errorf("%d lines, and %d indexes are read", len(lines), read)
	}
	index := indexOf([2]any{0, "a"})
	for i := range changes {
		changes[i].Before, changes[i].After = version(index), version(index)
	}
	if !Negligible(changes) {
		t.Error("small indexes that stay are not negligible")
	}
	for i := range changes {
		changes[i].Before.Size, changes[i].After.Size = maxIndex, maxIndex
	}
	if Negligible(changes) {
		t.Error("indexes that cannot be read are negligible")
	}
}

// What came from elsewhere is lost if it is not kept.
func TestNegligible(t *testing.T) {
	v := file("x")
	for _, test := range []struct {
		changes []tool.Change
		want    bool
	}{
		{nil, true},
		{[]tool.Change{{Path: "/ws/.git/FETCH_HEAD", Kind: tool.Created, After: v}, {Path: "/ws/.git/COMMIT_EDITMSG", Kind: tool.Modified, Before: v, After: v}}, true},
		{[]tool.Change{{Path: "/ws/.git/FETCH_HEAD", Kind: tool.Created, After: v}, {Path: "/ws/a", Kind: tool.Created, After: v}}, false},
		{[]tool.Change{{Path: "/ws/.git/FETCH_HEAD", Kind: tool.Renamed, From: "/ws/a", Before: v, After: v}}, false},
		{[]tool.Change{{Path: "/ws/.git/FETCH_HEAD", Kind: tool.Removed, Before: v}}, false},
	} {
		if got := Negligible(test.changes); got != test.want {
			t.Errorf("%v: %t", test.changes, got)
		}
	}
}
