package main

import (
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/sdk/go/patch"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

func patchOf(sections ...string) patchArgs {
	return patchArgs{Patch: "*** Begin Patch\n" + strings.Join(sections, "\n") + "\n*** End Patch\n"}
}

// files are all files below the working directory with what they hold.
func files(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			all[name] = content(t, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const code = "package a\n\nfunc one() {\n\treturn 1\n}\n\nfunc two() {\n\treturn 1\n}\n\nclass A:\n  def f():\n    pass\n\nclass B:\n  def f():\n    pass\n"

func TestApplyPatchToAFile(t *testing.T) {
	tests := map[string]struct {
		content, hunks string
		from, to       string // what becomes of the content
	}{
		"context, removed and added":       {code, "@@\n func one() {\n-\treturn 1\n+\treturn 2\n+\t// two\n }", "one() {\n\treturn 1", "one() {\n\treturn 2\n\t// two"},
		"without @@":                       {code, " func one() {\n-\treturn 1\n+\treturn 2", "one() {\n\treturn 1", "one() {\n\treturn 2"},
		"behind an anchor":                 {code, "@@ func two() {\n-\treturn 1\n+\treturn 2", "two() {\n\treturn 1", "two() {\n\treturn 2"},
		"behind an anchor without indents": {code, "@@ class B:\n@@ def f():\n-    pass\n+    go", "B:\n  def f():\n    pass", "B:\n  def f():\n    go"},
		"the first behind an anchor":       {code, "@@ class A:\n   def f():\n-    pass\n+    go", "A:\n  def f():\n    pass", "A:\n  def f():\n    go"},
		"two hunks in order":               {code, "@@ func one() {\n-\treturn 1\n+\treturn 2\n@@\n-\treturn 1\n+\treturn 3", "\treturn 1\n}\n\nfunc two() {\n\treturn 1", "\treturn 2\n}\n\nfunc two() {\n\treturn 3"},
		"several changes in one hunk":      {"a\nb\nc\nd\n", "@@\n-a\n b\n+x\n c\n-d\n+e", "a\nb\nc\nd\n", "b\nx\nc\ne\n"},
		"at the end of the file":           {"a\nb\na\n", "@@\n-a\n+c\n*** End of File", "b\na", "b\nc"},
		"appended":                         {"a\n", "@@\n+b\n+c\n*** End of File", "a\n", "a\nb\nc\n"},
		"into an empty file":               {"", "@@\n+a", "", "a\n"},
		"all removed":                      {"a\n", "@@\n-a", "a\n", ""},
		"white space at ends of lines":     {"a \t\nb\nc\n", "@@\n a\n-b  \n+x", "b", "x"},
		"exactly before nearly":            {"a \nb\na\nc\n", "@@\n-a\n+x", "\na\n", "\nx\n"},
		"CRLF stays":                       {"a\r\nb\r\nc\r\n", "@@\n a\n-b\n+x\n+y", "b\r\n", "x\r\ny\r\n"},
		"no line feed at the end stays so": {"a\nb", "@@\n a\n-b\n+x\n+y", "b", "x\ny"},
		"appended where there is none":     {"a\nb", "@@\n b\n+x", "b", "b\nx"},
		"the last is removed":              {"a\nb", "@@\n-b", "b", ""},
		"a line feed at the end goes":      {"a\nb\n", "@@\n a\n-b\n+B\n\\ No newline at end of file", "b\n", "B"},
		"and it goes with CRLF":            {"a\r\nb\r\n", "@@\n a\n-b\n+B\n\\ No newline at end of file", "b\r\n", "B"},
		"it goes behind what is appended":  {"a\nb\n", "@@\n b\n+c\n\\ No newline at end of file", "b\n", "b\nc"},
		"a line feed at the end comes":     {"a\nb", "@@\n a\n-b\n\\ No newline at end of file\n+B\n+c", "b", "B\nc\n"},
		"it comes where there is one":      {"a\nb\n", "@@\n a\n-b\n\\ No newline at end of file\n+B", "b", "B"},
		"and it comes with CRLF":           {"a\r\nb", "@@\n-b\n\\ No newline at end of file\n+b", "b", "b\r\n"},
		"there is none on both sides":      {"a\nb", "@@\n a\n-b\n\\ No newline at end of file\n+B\n\\ No newline at end of file", "b", "B"},
		"there is none behind context":     {"a\nb", "@@\n-a\n+A\n b\n\\ No newline at end of file", "a", "A"},
		"an empty line of context":         {"a\n\nb\n", "@@\n a\n\n-b\n+x", "b", "x"},
		"numbers of a unified diff":        {code, "@@ -99,3 +1,3 @@ nonsense\n func one() {\n-\treturn 1\n+\treturn 2", "one() {\n\treturn 1", "one() {\n\treturn 2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tree(t, map[string]string{"f": tt.content})
			if err := os.Chmod("f", 0o750); err != nil {
				t.Fatal(err)
			}
			in := patchOf("*** Update File: f\n" + tt.hunks)
			in.ExpectedSHA256 = map[string]string{"f": hashOf([]byte(tt.content))}
			out := works(t, applyPatch, in)
			want := strings.Replace(tt.content, tt.from, tt.to, 1)
			if diff := cmp.Diff(want, content(t, "f")); diff != "" {
				t.Errorf("the file (-want +got):\n%s", diff)
			}
			if info, err := os.Stat("f"); err != nil || info.Mode() != 0o750 || out.SHA256["f"] != hashOf([]byte(want)) || !strings.HasPrefix(out.Diff, "--- a/f\n+++ b/f\n@@") {
				t.Errorf("got %+v, mode %v", out, info.Mode())
			}
			if noted := strings.Contains(out.Output, "was ignored"); noted != (name == "white space at ends of lines") {
				t.Errorf("the output is %q", out.Output)
			}
		})
	}
}

func TestApplyPatchToFiles(t *testing.T) {
	tree(t, map[string]string{"a": "1\n2\n3\n", "old": "x\n", "moves": "m\n", "renamed": "r\n", "link": "->a", "dangling": "->nowhere", "dir/f": "f\n"})
	for name, mode := range map[string]fs.FileMode{"moves": 0o750, "renamed": 0o640} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	out := works(t, applyPatch, patchOf("*** Update File: link\n@@\n-2\n+two", "*** Add File: new/dir/n.txt\n+one\n+", "*** Delete File: ./old", "*** Delete File: dangling",
		"*** Update File: moves\n*** Move to: dir/moved\n@@\n-m\n+M", "*** Update File: renamed\n*** Move to: r"))
	want := map[string]string{"a": "1\ntwo\n3\n", "new/dir/n.txt": "one\n\n", "dir/moved": "M\n", "r": "r\n", "dir/f": "f\n"}
	if diff := cmp.Diff(want, files(t)); diff != "" {
		t.Errorf("the files (-want +got):\n%s", diff)
	}
	const output = `Patched 6 files:
Updated link, which has 3 lines now:
1: 1
2: two
3: 3
Added new/dir/n.txt (2 lines)
Deleted old
Deleted dangling
Moved moves to dir/moved, which has 1 line now:
1: M
Moved renamed to r`
	hashes := map[string]string{"link": hashOf([]byte(want["a"])), "new/dir/n.txt": hashOf([]byte("one\n\n")), "dir/moved": hashOf([]byte("M\n")), "r": hashOf([]byte("r\n"))}
	if diff := cmp.Diff([]any{output, 6, hashes}, []any{out.Output, out.Files, out.SHA256}); diff != "" {
		t.Errorf("the result (-want +got):\n%s", diff)
	}
	if link, err := os.Readlink("link"); err != nil || link != "a" {
		t.Errorf("the link leads to %q, %v", link, err)
	}
	for name, mode := range map[string]fs.FileMode{"dir/moved": 0o750, "r": 0o640} {
		if info, err := os.Stat(name); err != nil || info.Mode() != mode {
			t.Errorf("%s has mode %v, %v", name, info.Mode(), err)
		}
	}
}

// TestAUnifiedDiffIsApplied at the line that it says, where its lines are at several.
func TestAUnifiedDiffIsApplied(t *testing.T) {
	tree(t, map[string]string{"f": code, "gone": "x\n"})
	out := works(t, applyPatch, patchArgs{
		Patch:          "--- a/f\n+++ b/f\n@@ -8 +8 @@ func two() {\n-\treturn 1\n+\treturn 2\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+new\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
		ExpectedSHA256: map[string]string{"f": hashOf([]byte(code)), "gone": hashOf([]byte("x\n"))},
	})
	want := map[string]string{"f": strings.Replace(code, "two() {\n\treturn 1", "two() {\n\treturn 2", 1), "new": "new\n"}
	if diff := cmp.Diff(want, files(t)); diff != "" || out.SHA256["f"] != hashOf([]byte(want["f"])) {
		t.Errorf("%+v; the files (-want +got):\n%s", out, diff)
	}
}

// TestDiffsOfGitAreApplied has git write what differs between random files, with and without
// newlines at their ends, with modes, renames and odd names, and applies that. Where git is
// not installed the tables alone have to do.
func TestDiffsOfGitAreApplied(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Log("git is not installed; nothing to compare with")
		return
	}
	rnd := rand.New(rand.NewPCG(33, 33))
	text := func(eol string) string {
		var lines []string
		for range rnd.IntN(9) {
			lines = append(lines, strconv.Itoa(rnd.IntN(4)))
		}
		return strings.Join(lines, eol) + []string{"", eol}[rnd.IntN(2)]
	}
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		out, err := cmd.CombinedOutput()
		if _, exit := errors.AsType[*exec.ExitError](err); err != nil && (!exit || args[0] != "diff") {
			t.Fatalf("git %q: %v %s", args, err, out)
		}
		return string(out)
	}
	executable := func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && info.Mode()&0o111 != 0
	}
	for range 60 {
		eol := []string{"\n", "\r\n"}[rnd.IntN(2)]
		names := []string{"f", "a b", "\xc3\xa4", "q\"\\\n", "caf\xe9"}
		from := names[rnd.IntN(len(names))]
		to := []string{from, "dir/to"}[rnd.IntN(2)]
		tree(t, map[string]string{from: text(eol)})
		git("init", "-q")
		snap := func() string { git("add", "-A"); return strings.TrimSpace(git("write-tree")) }
		before := snap()
		was := content(t, from)
		put(t, to, was+[]string{"", "\n"}[rnd.IntN(2)]) // similar enough to be a rename
		if to == from || was == "" {
			put(t, to, text(eol))
		}
		if to != from {
			_ = os.Remove(from)
		}
		_ = os.Chmod(to, []fs.FileMode{0o644, 0o755}[rnd.IntN(2)])
		diff := git("diff", "-M20%", "-U"+strconv.Itoa(1+rnd.IntN(4)), before, snap())
		want, mode := files(t), executable(to)
		_ = os.RemoveAll("dir")
		put(t, from, was)
		_ = os.Chmod(from, 0o644)
		if diff == "" {
			continue
		}
		if _, err := applyPatch(t.Context(), patchArgs{Patch: diff}); err != nil {
			if tool.CodeOf(err) != "NOT_UNIQUE" {
				t.Errorf("%v\n%q\n%s", err, was, diff)
			}
			continue
		}
		got := files(t)
		for _, all := range []map[string]string{got, want} {
			maps.DeleteFunc(all, func(name, _ string) bool { return strings.HasPrefix(name, ".git/") })
		}
		if eol == "\n" && !cmp.Equal(got, want) || executable(to) != mode {
			t.Errorf("%q: got %q %v, want %q %v\n%s", was, got, executable(to), want, mode, diff)
		}
	}
}

func TestApplyPatchRefuses(t *testing.T) {
	update := func(hunks string) patchArgs { return patchOf("*** Add File: made\n+x", "*** Update File: f\n"+hunks) }
	expect := func(sha string) patchArgs {
		in := update("@@\n-class A:\n+class C:")
		in.ExpectedSHA256 = map[string]string{"f": sha}
		return in
	}
	lines := strings.Repeat("x\n", 20)
	tests := map[string]struct {
		in   patchArgs
		code string
		says string
	}{
		"a unified diff":                   {patchArgs{Patch: "--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n"}, "INVALID_PATCH", `a patch is "*** Begin Patch"`},
		"wrong indentation":                {update("@@\n func one() {\n-    return 1\n+    return 2"), "NO_MATCH", `hunk 1 of f (line 6 of the patch) does not fit: its lines are not in the file from line 1 on; line 4 of the file differs in white space: it is "\treturn 1", and the hunk has "    return 1"; nothing was changed`},
		"all lines with wrong indentation": {update("@@\n-    return 1\n+    return 2"), "NO_MATCH", `line 4 of the file differs in white space: it is "\treturn 1", and the hunk has "    return 1"`},
		"a line that has changed since":    {update("@@\n func one() {\n-\treturn 7\n+\treturn 2\n }"), "NO_MATCH", `the nearest is line 4 of the file: it is "\treturn 1", and the hunk has "\treturn 7"`},
		"the second hunk":                  {update("@@\n-package a\n+package b\n@@\n-nothing like it\n+x"), "NO_MATCH", "hunk 2 of f (line 9 of the patch) does not fit: its lines are not in the file from line 2 on; nothing in the file is like it: look at the file again, with file_read or grep; nothing was changed"},
		"hunks in another order":           {update("@@ func two() {\n-\treturn 1\n+\treturn 2\n@@\n-func one() {\n+func eins() {"), "NO_MATCH", "they are at line 3: hunks stand in the order of the file"},
		"already applied":                  {update("@@\n-func zero() {\n+func one() {\n \treturn 1"), "NO_MATCH", "at line 3 the file has the new lines already"},
		"line numbers":                     {update("@@\n-3: func one() {\n+func eins() {"), "NO_MATCH", "leave out the line numbers"},
		"not the end of the file":          {update("@@\n-func one() {\n+func eins() {\n*** End of File"), "NO_MATCH", "they are at line 3, and the patch says that the file ends with them"},
		"no newline, and more lines":       {update("@@\n-func one() {\n+func eins() {\n\\ No newline at end of file"), "NO_MATCH", "they are at line 3, and the patch says that the file ends with them"},
		"an anchor that is not there":      {update("@@ func three() {\n-\treturn 1\n+\treturn 2"), "NO_MATCH", `the line "func three() {" behind @@ is not in the file`},
		"several places":                   {update("@@\n-\treturn 1\n+\treturn 2"), "NOT_UNIQUE", "hunk 1 of f (line 6 of the patch) fits at several places, at lines 4, 8: add lines of context"},
		"several places of the anchor":     {update("@@ def f():\n-    pass\n+    go"), "NOT_UNIQUE", "at lines 13, 17"},
		"more places than are listed":      {patchOf("*** Update File: many\n@@\n-x\n+y"), "NOT_UNIQUE", "at lines 1, 2, 3, 4, 5, ...:"},
		"several places, nearly":           {patchOf("*** Update File: nearly\n@@\n-a\n+y"), "NOT_UNIQUE", "at lines 1, 2"},
		"several places, none as said":     {patchArgs{Patch: "--- a/f\n+++ b/f\n@@ -5 +5 @@\n-\treturn 1\n+\treturn 2\n"}, "NOT_UNIQUE", "at lines 4, 8"},
		"only added lines":                 {update("@@ class A:\n+x"), "INVALID_PATCH", "only adds lines and does not say where"},
		"nothing changes":                  {update("@@\n class A:"), "NO_CHANGE", "f already reads like that"},
		"a new file that exists":           {patchOf("*** Add File: f\n+x"), "FILE_EXISTS", `f exists already, and line 2 of the patch would make it`},
		"a new file at a link to nothing":  {patchOf("*** Add File: dangling\n+x"), "", "add dangling: no such file or directory"},
		"a move to what exists":            {patchOf("*** Update File: f\n*** Move to: many"), "FILE_EXISTS", "many exists already"},
		"a file that is not there":         {patchOf("*** Update File: g\n@@\n-x"), "", "edit g: no such file or directory; did you mean f?; \"*** Add File: \" makes a new one"},
		"deleted, and not there":           {patchOf("*** Delete File: gone"), "", "delete gone: no such file or directory"},
		"a directory deleted":              {patchOf("*** Delete File: dir"), "NOT_A_FILE", "is a directory"},
		"a directory updated":              {patchOf("*** Update File: dir\n@@\n-x"), "NOT_A_FILE", "is a directory; ls lists it"},
		"a file twice":                     {patchOf("*** Update File: f\n@@\n-class A:", "*** Delete File: ./dir/../f"), "INVALID_PATCH", "the patch names f twice, at its lines 2 and 5"},
		"a file twice, by a link":          {patchOf("*** Update File: f\n@@\n-class A:", "*** Update File: link\n@@\n-class B:"), "INVALID_PATCH", "twice"},
		"a new file twice":                 {patchOf("*** Add File: n\n+x", "*** Update File: f\n*** Move to: n"), "INVALID_PATCH", "twice, at its lines 2 and 4: put all that the patch does with a file below one header"},
		"deleted and added":                {patchOf("*** Delete File: f", "*** Add File: f\n+x"), "INVALID_PATCH", "twice, at its lines 2 and 3: to change a file leave out its deletion, and put hunks below *** Update File; file_write replaces all of it"},
		"added and deleted":                {patchOf("*** Add File: f\n+x", "*** Delete File: f"), "INVALID_PATCH", "to change a file leave out its deletion"},
		"added twice":                      {patchOf("*** Add File: n\n+x", "*** Add File: ./n\n+x"), "INVALID_PATCH", "put all that the patch does with a file below one header"},
		"updated in two sections":          {patchOf("*** Update File: f\n@@\n-class A:", "*** Update File: f\n@@\n-class B:"), "INVALID_PATCH", "put all that the patch does with a file below one header"},
		"other content than was seen":      {expect(hashOf(nil)), "CONTENT_CHANGED", "f has changed since it was read"},
		"deleted, with other content":      {patchArgs{Patch: patchOf("*** Delete File: f").Patch, ExpectedSHA256: map[string]string{"f": hashOf(nil)}}, "CONTENT_CHANGED", "f has changed"},
		"a hash that is none":              {expect("x"), "", "not a SHA-256"},
		"a binary file":                    {patchOf("*** Update File: bin\n@@\n-x\n+y"), "BINARY_FILE", "binary"},
		"a character that there is not":    {patchOf("*** Update File: latin\n@@\n-grüße\n+→"), "NOT_ENCODABLE", "no '→'"},
		"a large file":                     {patchOf("*** Update File: large\n@@\n-x\n+y"), "TOO_LARGE", "edits go up to"},
		"large files together":             {patchOf("*** Update File: half1\n@@\n-y\n+z", "*** Update File: half2\n@@\n-y\n+z"), "TOO_LARGE", "more than 12.0 MiB together"},
		"a path with a NUL":                {patchOf("*** Add File: a\x00b\n+x"), "", "holds a NUL byte"},
	}
	half := "y\n" + strings.Repeat("x", 7<<20)
	tree(t, map[string]string{"f": code, "many": lines, "nearly": "a \na\t\n", "dir/": "", "bin": "\x00", "latin": "gr\xfc\xdfe\n", "link": "->f", "dangling": "->nowhere",
		"large": strings.Repeat("x", maxEditBytes+1), "half1": half, "half2": half})
	was := files(t)
	for name, tt := range tests {
		_, err := applyPatch(t.Context(), tt.in)
		if err == nil || tool.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %q %v, want %q %q", name, tool.CodeOf(err), err, tt.code, tt.says)
		}
	}
	if !cmp.Equal(was, files(t)) {
		t.Error("a refused patch changed files")
	}
}

// A patch changes nothing but what it says: of the lines that are not in its changes
// all stay, in their order, and those of its changes are what it removes and adds.
func FuzzApplyPatch(f *testing.F) {
	for _, seed := range [][2]string{
		{code, "@@ func one() {\n-\treturn 1\n+\treturn 2\n@@\n \treturn 1\n+x"}, {"a\r\nb", "@@\n-b\n+c"}, {"", "@@\n+x"}, {"a\n\nb", " a\n\n-b\n*** End of File"}, {"a \nb", "-a\n b\n+c"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, content, hunks string) {
		parsed, err := patch.Parse(patchOf("*** Update File: f\n" + hunks).Patch)
		if err != nil || len(parsed) > 1 {
			return
		}
		tx := &textFile{loc: location{"/f", "f"}, content: []byte(content)}
		changes, _, err := tx.placeHunks(parsed[0].Hunks)
		if err != nil {
			if len(err.Error()) > 8000 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		trim := func(line string) string { return strings.TrimRight(line, " \t\r\n") }
		var removed, added, wantRemoved, wantAdded []string
		end := 0
		for _, c := range changes {
			if c.start < end || c.end < c.start || c.end > len(content) || c.start > 0 && c.start < len(content) && content[c.start-1] != '\n' {
				t.Fatalf("changes overlap, lie outside or in a line: %+v", changes)
			}
			end = c.end
			for line := range strings.Lines(content[c.start:c.end]) {
				removed = append(removed, trim(line))
			}
			for line := range strings.Lines(c.text) {
				added = append(added, trim(line))
			}
		}
		for _, h := range parsed[0].Hunks {
			for _, line := range h.Lines {
				if line[0] == '-' {
					wantRemoved = append(wantRemoved, trim(line[1:]))
				} else if line[0] == '+' {
					wantAdded = append(wantAdded, trim(line[1:]))
				}
			}
		}
		blank := func(lines []string) []string { return slices.DeleteFunc(lines, func(l string) bool { return l == "" }) }
		if !slices.Equal(removed, wantRemoved) || !slices.Equal(blank(added), blank(wantAdded)) {
			t.Fatalf("%q: removed %q, added %q; want %q, %q", content, removed, added, wantRemoved, wantAdded)
		}
		unifiedDiff("f", tx.content, changes)
		preview(tx.content, applyChanges(tx.content, changes), changes)
	})
}
