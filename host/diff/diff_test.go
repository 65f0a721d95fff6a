package diff

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/tool"
)

func file(content string) *tool.Version {
	return &tool.Version{Size: int64(len(content)), Mode: 0o644, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(content)), nil
	}}
}

func modified(before, after string) tool.Change {
	return tool.Change{Path: "/ws/a", Kind: tool.Modified, Before: file(before), After: file(after)}
}

func told(encoding, before, after string) tool.Change {
	c := modified(before, after)
	c.Before.Encoding, c.After.Encoding = encoding, encoding
	return c
}

func TestUnified(t *testing.T) {
	gone := errors.New("the file is another one by now")
	dir, link := &tool.Version{Mode: fs.ModeDir | 0o755}, &tool.Version{Mode: fs.ModeSymlink | 0o777}
	for _, test := range []struct {
		name   string
		change tool.Change
		want   string
	}{
		{"created", tool.Change{Path: "/ws/a.txt", Kind: tool.Created, After: file("one\n")},
			"created a.txt (4 bytes)\n--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+one\n"},
		{"created empty", tool.Change{Path: "/ws/a.txt", Kind: tool.Created, After: file("")}, "created a.txt (0 bytes)\n"},
		{"modified", tool.Change{Path: "/ws/d/a.txt", Kind: tool.Modified, Before: file("one\ntwo\n"), After: file("one\n2\n")},
			"modified d/a.txt (6 bytes, before 8)\n--- a/d/a.txt\n+++ b/d/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"},
		{"no newline at the end", tool.Change{Path: "/ws/a", Kind: tool.Modified, Before: file("x"), After: file("y")},
			"modified a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n"},
		{"removed", tool.Change{Path: "/ws/a", Kind: tool.Removed, Before: file("x\n")},
			"removed a (2 bytes)\n--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"},
		{"renamed", tool.Change{Path: "/ws/b", From: "/ws/a", Kind: tool.Renamed, Before: file("x\n"), After: file("x\n")}, "renamed b from a\n"},
		{"directory", tool.Change{Path: "/ws/d", Kind: tool.DirectoryCreated, After: dir}, "directory created d\n"},
		{"mode", tool.Change{Path: "/ws/a", Kind: tool.Modified, Before: file("x"), After: &tool.Version{Size: 1, Mode: 0o600, Open: file("x").Open}},
			"modified a (mode -rw-------, before -rw-r--r--)\n"},
		{"binary", tool.Change{Path: "/ws/a", Kind: tool.Modified, Before: file("x\x00"), After: file("\xff\xfe\xfd")},
			"a: it is no text (3 bytes)\nmodified a (3 bytes, before 2)\n"},
		{"lines that end in CRLF", modified("one\r\ntwo\r\n", "one\r\n2\r\n"), "modified a (8 bytes, before 10)\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"},
		{"a new file whose lines end in CRLF", tool.Change{Path: "/ws/a", Kind: tool.Created, After: file("one\r\n")},
			"created a (5 bytes)\n--- /dev/null\n+++ b/a\n\\ its lines end in CRLF\n@@ -0,0 +1 @@\n+one\n"},
		{"line ends that change", modified("one\r\ntwo\r\n", "one\n2\n"),
			"modified a (6 bytes, before 10)\n--- a/a\n+++ b/a\n\\ line endings change from CRLF to LF\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"},
		{"nothing but line ends that change", modified("one\r\n", "one\n"), "modified a (4 bytes, before 5)\na: line endings change from CRLF to LF, and nothing else\n"},
		{"lines of which some come to end in CRLF", modified("one\ntwo\n", "one\ntwo\r\n"),
			"modified a (9 bytes, before 8)\n--- a/a\n+++ b/a\n\\ line endings change from LF to a mix of both\n@@ -1,2 +1,2 @@\n one\n-two\n+two\r\n"},
		{"a CR within a line", modified("one\r\n", "one\r\r\n"), "modified a (6 bytes, before 5)\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+one\r\n"},
		{"UTF-16 with a mark", modified("\xff\xfea\x00\xe9\x00", "\xff\xfeb\x00\xe9\x00"),
			"modified a\n--- a/a\n+++ b/a\n\\ it is in UTF-16, little-endian with a byte order mark\n@@ -1 +1 @@\n-aé\n\\ No newline at end of file\n+bé\n\\ No newline at end of file\n"},
		{"a mark before ASCII", tool.Change{Path: "/ws/a", Kind: tool.Created, After: file("\xff\xfe\nTOUCH EVIL\n\n\x00")}, "a: it is no text (16 bytes)\ncreated a (16 bytes)\n"},
		{"a mark before ASCII with no end", tool.Change{Path: "/ws/a", Kind: tool.Created, After: file("\xfe\xffTOUCH EVIL")}, "a: it is no text (12 bytes)\ncreated a (12 bytes)\n"},
		{"a mark before ASCII with another letter in its line", tool.Change{Path: "/ws/a", Kind: tool.Created, After: file("\xff\xfe\n\x00N=1;sh x #\xc3\xa9\n\n")}, "a: it is no text (18 bytes)\ncreated a (18 bytes)\n"},
		{"UTF-16 of Chinese", modified("\xff\xfe\x2d\x4e\x0a\x4e\x87\x65\n\x00", "\xff\xfe\x2d\x4e\x0a\x4e\x2d\x4e\n\x00"),
			"modified a\n--- a/a\n+++ b/a\n\\ it is in UTF-16, little-endian with a byte order mark\n@@ -1 +1 @@\n-中上文\n+中上中\n"},
		{"UTF-16 without one", modified("\x00o\x00n\x00e\x00\n", "\x00t\x00w\x00o\x00\n"),
			"modified a\n--- a/a\n+++ b/a\n\\ it is in UTF-16, big-endian\n@@ -1 +1 @@\n-one\n+two\n"},
		{"half of a character of UTF-16", modified("\xff\xfea\x00", "\xff\xfe\x00\xd8"), "a: it is no text (4 bytes)\nmodified a\n"},
		{"Windows-1252", modified("caf\xe9 \x80\n", "cafe\n"), "modified a (5 bytes, before 7)\n--- a/a\n+++ b/a\n\\ it is in Windows-1252\n@@ -1 +1 @@\n-café €\n+cafe\n"},
		{"an encoding that the call names", told("gbk", "\xc4\xe3\n", "\xba\xc3\n"), "modified a\n--- a/a\n+++ b/a\n\\ it is in gbk\n@@ -1 +1 @@\n-你\n+好\n"},
		{"one with ASCII inside of characters", told("sjis", "a\n", "echo \x95\x5c\x8f\x7c|\n"),
			"modified a (11 bytes, before 2)\n--- a/a\n+++ b/a\n\\ it is in shift_jis\n\\ programs that do not know the encoding see \"|\\\\\" inside of characters\n@@ -1 +1 @@\n-a\n+echo 表楯|\n"},
		{"one that the file is not in", told("gbk", "\xff\n", "\xfe\n"), "modified a\n--- a/a\n+++ b/a\n\\ it is in Windows-1252\n@@ -1 +1 @@\n-ÿ\n+þ\n"},
		{"one of what is UTF-8", told("gbk", "ü\n", "ß\n"), "modified a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-ü\n+ß\n"},
		{"an encoding that changes", modified("caf\xe9\n", "caf\u00e9\n"), "modified a (6 bytes, before 5)\na: the encoding changes from Windows-1252 to UTF-8, and nothing else\n"},
		{"UTF-8 in which a byte is damaged", modified("\u00e9\u00e9\xe9\n", "\u00e9\n"), "a: it is no text (3 bytes)\nmodified a (3 bytes, before 6)\n"},
		{"a mark that is lost", modified("\uFEFFone\n", "one\n"), "modified a (4 bytes, before 7)\na: the encoding changes from UTF-8 with a byte order mark to UTF-8, and nothing else\n"},
		{"unreadable", tool.Change{Path: "/ws/a", Kind: tool.Removed, Before: &tool.Version{Size: 1, Open: func() (io.ReadCloser, error) { return nil, gone }}},
			"removed a (1 byte)\na: it cannot be read: \"the file is another one by now\" (1 byte)\n"},
		{"executable", tool.Change{Path: "/ws/a", Kind: tool.Created, After: &tool.Version{Mode: 0o755, Open: file("").Open}}, "created a (0 bytes) (mode -rwxr-xr-x)\n"},
		{"for all to write to", tool.Change{Path: "/ws/a", Kind: tool.Created, After: &tool.Version{Mode: 0o666, Open: file("").Open}}, "created a (0 bytes) (mode -rw-rw-rw-)\n"},
		{"directory for all to write to", tool.Change{Path: "/ws/d", Kind: tool.DirectoryCreated, After: &tool.Version{Mode: fs.ModeDir | 0o777}}, "directory created d (mode drwxrwxrwx)\n"},
		{"directory for one", tool.Change{Path: "/ws/d", Kind: tool.DirectoryCreated, After: &tool.Version{Mode: fs.ModeDir | 0o700}}, "directory created d (mode drwx------)\n"},
		{"link", tool.Change{Path: "/ws/b", From: "/ws/a", Kind: tool.Renamed, Before: link, After: link}, "renamed b from a (symbolic link)\n"},
		{"renamed binary", tool.Change{Path: "/ws/b", From: "/ws/a", Kind: tool.Renamed, Before: file("\x00"), After: file("\x00")},
			"b: it is no text, and the content stays (1 byte)\nrenamed b from a\n"},
		{"renamed binary with other content", tool.Change{Path: "/ws/b", From: "/ws/a", Kind: tool.Renamed, Before: file("\x00"), After: file("\xff")},
			"b: it is no text (1 byte)\nrenamed b from a\n"},
		{"a name that could look like more", tool.Change{Path: "/ws/x (3 bytes) from y", Kind: tool.Created, After: file("")},
			`created "x (3 bytes) from y" (0 bytes)` + "\n"},
		{"one of several names", tool.Change{Path: "/ws/a", Kind: tool.Modified, Before: &tool.Version{Mode: 0o644, LinkCount: 2, Open: file("").Open}, After: file("")}, "modified a (one of 2 names of a file: the other names keep the old content)\n"},
		{"outside of the directory", tool.Change{Path: "/elsewhere/a", Kind: tool.TimesChanged, Before: file(""), After: file("")}, "times /elsewhere/a\n"},
		{"a name that could look like a line", tool.Change{Path: "/ws/a\n+++ b/safe\x1b[2K", Kind: tool.Created, After: file("")},
			`created "a\n+++ b/safe\x1b[2K" (0 bytes)` + "\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if d := cmp.Diff(test.want, New(t.Context(), []tool.Change{test.change}, "/ws", nil).String()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestUnifiedIsBounded(t *testing.T) {
	var changes []tool.Change
	for i := range 3000 {
		changes = append(changes, tool.Change{Path: fmt.Sprintf("/ws/%04d", i), Kind: tool.Created, After: file(strings.Repeat("a line of text\n", 8_000))})
	}
	changes[0].After = file(strings.Repeat("x", maxText+1))
	out := New(t.Context(), changes, "/ws", nil).String()
	if len(out) > 100*maxNamed+maxTotal+2*maxChange {
		t.Errorf("the diff has %d bytes", len(out))
	}
	for _, want := range []string{"is not shown, for there is too much of them: in . (", "bytes of this diff are not shown", "created 3000 files in . (", "changes is not shown"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q", want)
		}
	}
}

// The last change is listed, however long the changes before are.
func TestUnifiedNamesAll(t *testing.T) {
	var changes []tool.Change
	for i := range 6 {
		changes = append(changes, tool.Change{Path: fmt.Sprintf("/ws/generated%d", i), Kind: tool.Created, After: file(strings.Repeat("a line\n", 15_000))})
	}
	changes = append(changes, tool.Change{Path: "/ws/z/.git/hooks/pre-commit", Kind: tool.Created, After: file("rm -rf ~\n")})
	if out := New(t.Context(), changes, "/ws", nil).String(); !strings.Contains(out, "created z/.git/hooks/pre-commit (9 bytes)\n") {
		t.Errorf("it does not name the last of %d changes", len(changes))
	}
}

// A thousand changes are described in some lines: removed files are named, and come first.
func TestASummaryOfMany(t *testing.T) {
	var changes []tool.Change
	add := func(kind tool.ChangeKind, name string, mode fs.FileMode) {
		v := file("12345")
		if kind == tool.Removed {
			v = file("abcde")
		}
		v.Mode = mode
		c := tool.Change{Path: "/ws/" + name, Kind: kind, Before: v, After: v}
		switch kind {
		case tool.Created, tool.DirectoryCreated:
			c.Before = nil
		case tool.Removed, tool.DirectoryRemoved:
			c.After = nil
		}
		changes = append(changes, c)
	}
	add(tool.DirectoryCreated, "node_modules", fs.ModeDir|0o755)
	for i := range 500 {
		add(tool.Created, fmt.Sprintf("node_modules/%03d", i), 0o644)
		add(tool.Created, fmt.Sprintf("obj/%03d.o", i), 0o644)
		add(tool.Modified, fmt.Sprintf("src/%03d.c", i), 0o644)
	}
	add(tool.Removed, "obj/notes", 0o644)
	add(tool.Removed, "z", 0o644)
	add(tool.Created, "go.sum", 0o644)
	want := []string{
		"removed obj/notes (5 bytes)", "removed z (5 bytes)", "created go.sum (5 bytes)",
		"directory created node_modules with 500 files (2.5 kB)", "created 500 files in obj (2.5 kB)", "modified 500 files in src (2.5 kB)",
	}
	if d := cmp.Diff(want, Summary(t.Context(), changes, "/ws", 6)); d != "" {
		t.Error(d)
	}
	if got := Summary(t.Context(), changes, "/ws", 3); len(got) != 3 || got[1] != want[1] || got[2] != "1502 other changes: 501 in node_modules, 500 in obj, 500 in src, 1 in . (7.5 kB)" {
		t.Errorf("%q", got)
	}
	text := New(t.Context(), changes, "/ws", nil).String()
	if !strings.HasPrefix(text, strings.Join(want, "\n")+"\n--- ") {
		t.Errorf("%.600s", text)
	}
}

// A file that is removed and created again under another name was moved.
func TestWhatWasMoved(t *testing.T) {
	one, times := file("package one\n"), file("")
	changes := []tool.Change{
		{Path: "/ws/a.go", Kind: tool.Removed, Before: one},
		{Path: "/ws/b.go", Kind: tool.Removed, Before: file("package two\n")},
		{Path: "/ws/c.go", Kind: tool.Removed, Before: one},
		{Path: "/ws/d/a.go", Kind: tool.Created, After: one},
		{Path: "/ws/d/empty", Kind: tool.Created, After: file("")},
		{Path: "/ws/e1", Kind: tool.TimesChanged, Before: times, After: times}, {Path: "/ws/e2", Kind: tool.TimesChanged, Before: times, After: times}, {Path: "/ws/e3", Kind: tool.TimesChanged, Before: times, After: times},
	}
	want := []string{"removed b.go (12 bytes)", "removed c.go (12 bytes)", "renamed d/a.go from a.go", "created d/empty (0 bytes)", "times of 3 files in ."}
	if d := cmp.Diff(want, Summary(t.Context(), changes, "/ws", 9)); d != "" {
		t.Error(d)
	}
	if text := New(t.Context(), changes, "/ws", nil).String(); strings.Contains(text, "package one\n-") || strings.Count(text, "package one") != 1 {
		t.Error(text)
	}
}

// A file that is created under another name with some other lines was moved, too; of two
// candidates the more similar one counts.
func TestWhatWasMovedAndChanged(t *testing.T) {
	changes := []tool.Change{
		{Path: "/ws/a", Kind: tool.Removed, Before: file("one\ntwo\nthree\nfour\n")},
		{Path: "/ws/b", Kind: tool.Removed, Before: file("one\ntwo\nthree\nfour\nfive\n")},
		{Path: "/ws/c", Kind: tool.Created, After: file("zero\none\ntwo\nthree\nfour\nfive\n")},
		{Path: "/ws/d", Kind: tool.Created, After: file("one\nsome others\n")},
		{Path: "/ws/e", Kind: tool.Created, After: file("\x00")},
	}
	want := []string{"removed a (19 bytes)", "renamed c from b (29 bytes, before 24)", "created d (16 bytes)", "created e (1 byte)"}
	if d := cmp.Diff(want, Summary(t.Context(), changes, "/ws", 9)); d != "" {
		t.Error(d)
	}
	if _, added, removed := Unified(DetectRenames(t.Context(), changes)[1], "/ws", func([]byte) bool { return false }); added != 1 || removed != 0 {
		t.Errorf("+%d -%d", added, removed)
	}
}

// counted is a file that counts its reads.
func counted(size int64, content string, read *int64) *tool.Version {
	v := file(content)
	v.Size = size
	open := v.Open
	v.Open = func() (io.ReadCloser, error) {
		*read += size
		return open()
	}
	return v
}

// However many files have the same size, few are read, and each once.
func TestWhatWasMovedIsBounded(t *testing.T) {
	for _, test := range []struct {
		name string
		size int64
		same bool
		most int64 // bytes
	}{
		{"small ones", 5, false, 2 * maxMovers * 5},
		{"small ones that were moved", 5, true, 2 * maxMovers * 5},
		{"large ones", maxMoved, false, 64 << 20},
	} {
		read := int64(0)
		var changes []tool.Change
		for i := range 3000 {
			a, b := fmt.Sprint("a", i), fmt.Sprint("b", i)
			if test.same {
				b = a
			}
			changes = append(changes,
				tool.Change{Path: fmt.Sprintf("/ws/%04d", i), Kind: tool.Removed, Before: counted(test.size, a, &read)},
				tool.Change{Path: fmt.Sprintf("/ws/d/%04d", i), Kind: tool.Created, After: counted(test.size, b, &read)})
		}
		got := DetectRenames(t.Context(), changes)
		if read > test.most || read == 0 || test.same != (len(got) == len(changes)-maxMovers) || !test.same && len(got) != len(changes) {
			t.Errorf("%s: %d bytes were read, and there are %d changes", test.name, read, len(got))
		}
	}
}

// There is a limit on reading large files to find out whether their content stays.
func TestContentsThatStay(t *testing.T) {
	read := int64(0)
	var changes []tool.Change
	for i := range 100 {
		v := counted(maxEqual/4, "x", &read)
		changes = append(changes, tool.Change{Path: fmt.Sprint("/ws/", i), Kind: tool.Modified, Before: v, After: v})
	}
	if text := New(t.Context(), changes, "/ws", nil).String(); read > 256<<20 || !strings.Contains(text, "the content of 2 files is not shown, for there is too much of them: in . (134.2 MB), and nothing in it is new") || !strings.Contains(text, "the content of 98 files is not shown, for there is too much of them: in . (6.6 GB)") {
		t.Errorf("%d bytes were read", read)
	}
}

// A file to which anybody may write has an entry of its own.
func TestModesInASummary(t *testing.T) {
	open := file("x")
	open.Mode = 0o666
	changes := []tool.Change{{Path: "/ws/d", Kind: tool.DirectoryCreated, After: &tool.Version{Mode: fs.ModeDir | 0o777}}, {Path: "/ws/d/o", Kind: tool.Created, After: open}, {Path: "/ws/e/o", Kind: tool.Created, After: open}}
	for i := range 20 {
		for _, dir := range []string{"d", "e"} {
			changes = append(changes, tool.Change{Path: fmt.Sprintf("/ws/%s/%02d", dir, i), Kind: tool.Created, After: file("x")})
		}
	}
	want := []string{"directory created d with 20 files (20 bytes) (mode drwxrwxrwx)", "created d/o (1 byte) (mode -rw-rw-rw-)", "created e/o (1 byte) (mode -rw-rw-rw-)", "created 20 files in e (20 bytes)"}
	if d := cmp.Diff(want, Summary(t.Context(), changes, "/ws", 9)); d != "" {
		t.Error(d)
	}
}
