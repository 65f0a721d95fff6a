package git

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/git/format"
	"github.com/stockade-dev/stockade/host/tool"
)

func version(data []byte) *tool.Version {
	return &tool.Version{Size: int64(len(data)), Mode: 0o644, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}

// An index that git writes yields the staged files, or nothing.
func TestWhatAnIndexSays(t *testing.T) {
	for _, format := range []string{"2", "4"} {
		dir := t.TempDir()
		index := func() []byte {
			t.Helper()
			data, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
		sh(t, dir, "git init -q; mkdir dir long; for f in a dir/b dir/bc long/"+strings.Repeat("x", 200)+"; do echo 1 > $f; done; git add .; git update-index --index-version "+format+"; git commit -qm one")
		for _, c := range []struct{ name, command, want string }{
			{"nothing is staged", "touch -d @1000000000 a; git status", ""},
			{"a change", "echo 2 > dir/b; git add dir/b", "dir/b"},
			{"files that come and go", "git mv a new", "a new"},
			{"a mode", "git update-index --chmod=+x new", "new"},
			{"what git is not to look at", "git update-index --assume-unchanged dir/bc", "dir/bc"},
			{"what is not in the worktree", "git update-index --skip-worktree dir/b", "dir/b"},
		} {
			before := index()
			sh(t, dir, c.command)
			after := index()
			change := tool.Change{Path: "/ws/.git/index", Kind: tool.Modified, Before: version(before), After: version(after)}
			if got := Negligible([]tool.Change{change}); bytes.Equal(before, after) || got != (c.want == "") {
				t.Errorf("version %s, %s: refreshed %t", format, c.name, got)
			}
			was, err := parseIndex(before, 20, newBudget())
			is, err2 := parseIndex(after, 20, newBudget())
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			var names []string
			was.changes(is, func(was, is *indexEntry) {
				if is == nil {
					is = was
				}
				names = append(names, is.name)
			})
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("version %s, %s: %q", format, c.name, got)
			}
			// No cut or changed byte makes the parser panic.
			for i := 0; i < len(after); i += 7 {
				bad := append(bytes.Clone(after[:i]), 0xff)
				sum := sha1.Sum(bad)
				change.After = version(append(bad, sum[:]...))
				_ = Negligible([]tool.Change{change})
			}
		}
	}
}

// indexOf returns an index of version 4 with a file of each name. A name is given as the
// length of its common part with the preceding name, and the rest.
func indexOf(names ...[2]any) []byte {
	out := binary.BigEndian.AppendUint32([]byte("DIRC\x00\x00\x00\x04"), uint32(len(names)))
	last := 0
	for _, name := range names {
		keep, more := name[0].(int), name[1].(string)
		entry := make([]byte, 62)
		entry[26], entry[27] = 0x81, 0xa4
		binary.BigEndian.PutUint16(entry[60:], uint16(min(keep+len(more), format.NameLengthMask)))
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

// A small index can become large in memory, and there may be many.
func TestIndexesAreBounded(t *testing.T) {
	long := strings.Repeat("x", format.MaxName)
	many := [][2]any{{0, strings.Repeat("x", 4000)}}
	for i := range 40_000 { // 160 MB
		many = append(many, [2]any{4000, fmt.Sprintf("%05d", i)})
	}
	for _, test := range []struct {
		name string
		want int
		data []byte
	}{
		{"few", 2, indexOf([2]any{0, "ab"}, [2]any{1, "c"})},
		{"a name of another length", -1, bytes.Replace(indexOf([2]any{0, "ab"}), []byte("\x00\x02\x00ab"), []byte("\x00\x01\x00ab"), 1)},
		{"the longest name", 1, indexOf([2]any{0, long})},
		{"a longer one", -1, indexOf([2]any{0, long + "x"})},
		{"one that grows", -1, indexOf([2]any{0, long}, [2]any{format.MaxName, "x"})},
		{"not in order", -1, indexOf([2]any{0, "b"}, [2]any{0, "a"})},
		{"many long ones", -1, indexOf(many...)},
		{"a large one", -1, append(make([]byte, maxIndex), 0)},
	} {
		x, err := readIndex(version(test.data), 20, newBudget())
		if got := len(x.entries); err == nil && got != test.want || err != nil && test.want >= 0 {
			t.Errorf("%s: %d, %v", test.name, got, err)
		}
	}
}

// Files from elsewhere are not negligible.
func TestNegligible(t *testing.T) {
	v, index := version([]byte("x")), version(indexOf([2]any{0, "a"}))
	for _, test := range []struct {
		changes []tool.Change
		want    bool
	}{
		{nil, true},
		{[]tool.Change{{Path: "/ws/.git/index", Kind: tool.Modified, Before: index, After: index}}, true},
		{[]tool.Change{{Path: "/ws/.git/index", Kind: tool.Modified, Before: v, After: v}}, false},
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

// Cached trees may have long nested names, and there may be many.
func TestNotedDirectoriesAreBounded(t *testing.T) {
	data := []byte("\x00-1 1\n")
	for range 200 {
		data = append(data, strings.Repeat("x", 4000)+"\x00-1 1\n"...)
	}
	data = append(data[:len(data)-2], "1000000\n"...)
	for range 1_000_000 { // the name of each has 800 KB in all
		data = append(data, "x\x00-1 0\n"...)
	}
	if err := (index{trees: [][]byte{data}}).verify(20, newBudget()); err == nil {
		t.Error("it is believed")
	}
}
