package patch

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	update := func(hunks ...Hunk) []File { return []File{{Op: Update, Path: "a", Line: 2, Hunks: hunks}} }
	one := Hunk{Line: 4, Lines: []string{" x", "-y", "+z"}}
	tests := map[string]struct {
		patch string
		want  []File
	}{
		"all that there is": {
			"*** Begin Patch\n*** Add File: dir/new.txt\n+one\n+\n*** Delete File: old.txt\n*** Update File: a\n*** Move to: b\n@@ func f() {\n@@   if x {\n x\n-y\n+z\n@@\n+end\n*** End of File\n*** End Patch",
			[]File{
				{Op: Add, Path: "dir/new.txt", Line: 2, Text: "one\n\n"}, {Op: Delete, Path: "old.txt", Line: 5},
				{Op: Update, Path: "a", MoveTo: "b", Line: 6, Hunks: []Hunk{
					{Line: 10, Anchors: []string{"func f() {", "if x {"}, Lines: []string{" x", "-y", "+z"}},
					{Line: 14, Lines: []string{"+end"}, End: true},
				}},
			},
		},
		"the first hunk without @@":        {"*** Begin Patch\n*** Update File: a\n\n x\n-y\n*** End Patch\n", update(Hunk{Line: 3, Lines: []string{" ", " x", "-y"}})},
		"an empty line of context":         {"*** Begin Patch\n*** Update File: a\n@@\n x\n\n-y\n*** End Patch\n", update(Hunk{Line: 4, Lines: []string{" x", " ", "-y"}})},
		"blank lines between the sections": {"\n*** Begin Patch\n*** Update File: a\n\n@@\n x\n-y\n+z\n\n\n*** End Patch\n\n", []File{{Op: Update, Path: "a", Line: 3, Hunks: []Hunk{{Line: 6, Lines: one.Lines}}}}},
		"a fence around it":                {"```diff\n*** Begin Patch\n*** Update File: a\n@@\n x\n-y\n+z\n*** End Patch\n```\n", []File{{Op: Update, Path: "a", Line: 3, Hunks: []Hunk{{Line: 5, Lines: one.Lines}}}}},
		"as a command of a shell":          {"apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a\n@@\n x\n-y\n+z\n*** End Patch\nEOF\n", []File{{Op: Update, Path: "a", Line: 3, Hunks: []Hunk{{Line: 5, Lines: one.Lines}}}}},
		"a unified diff": {
			"diff --git a/a b/a\nindex 1..2 100644\n--- a/a\t2026-01-01\n+++ b/a\n@@ -7,2 +7,2 @@ func f()\n x\n-y\n+z\n@@ -20 +20,0 @@\n--- q\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+one\n+\n--- a/o\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n",
			[]File{
				{Op: Update, Path: "a", Line: 3, Hunks: []Hunk{{Line: 6, Lines: one.Lines, At: 7}, {Line: 10, Lines: []string{"--- q"}, At: 20}}},
				{Op: Add, Path: "n", Line: 11, Text: "one\n\n"}, {Op: Delete, Path: "o", Line: 16},
			},
		},
		"a unified diff that counts badly":    {"--- a\n+++ a\n@@ -7,9 +7,9 @@\n x\n-y\n+z\n\n", []File{{Op: Update, Path: "a", Line: 1, Hunks: []Hunk{{Line: 4, Lines: one.Lines, At: 7}}}}},
		"a unified diff as a patch":           {"*** Begin Patch\n--- b/a\n+++ b/a\n@@ -7,2 +7,2 @@\n x\n-y\n+z\n*** End Patch", []File{{Op: Update, Path: "b/a", Line: 2, Hunks: []Hunk{{Line: 5, Lines: one.Lines, At: 7}}}}},
		"CRLF":                                {"*** Begin Patch\r\n*** Update File: a\r\n@@\r\n x\r\n-y\r\n+z\r\n*** End Patch\r\n", update(one)},
		"no beginning":                        {"*** Delete File: a\n*** End Patch", []File{{Op: Delete, Path: "a", Line: 1}}},
		"numbers of a unified diff":           {"*** Begin Patch\n*** Update File: a\n@@ -1,2 +1,2 @@ func f()\n x\n-y\n+z\n*** End Patch", update(one)},
		"no newline at the end, as diff says": {"*** Begin Patch\n*** Update File: a\n@@\n x\n-y\n+z\n\\ No newline at end of file\n*** End Patch", update(Hunk{Line: 4, Lines: one.Lines, NoNewEnd: true, End: true})},
		"no newline at the end, before only":  {"--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n x\n-y\n\\ No newline at end of file\n+z\n\n", []File{{Op: Update, Path: "a", Line: 1, Hunks: []Hunk{{Line: 4, Lines: one.Lines, NoOldEnd: true, End: true, At: 1}}}}},
		"no newline behind context":           {"--- a/a\n+++ b/a\n@@ -1,2 +1 @@\n-x\n y\n\\ No newline at end of file\n", []File{{Op: Update, Path: "a", Line: 1, Hunks: []Hunk{{Line: 4, Lines: []string{"-x", " y"}, NoOldEnd: true, NoNewEnd: true, End: true, At: 1}}}}},
		"a new file without a newline":        {"*** Begin Patch\n*** Add File: a\n+x\n\\ No newline at end of file\n*** End Patch", []File{{Op: Add, Path: "a", Line: 2, Text: "x"}}},
		"new files without a newline":         {"--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\ndiff --git a/b b/b\nnew file mode 100755\nindex 0..1\n--- /dev/null\n+++ b/b\n@@ -0,0 +1,2 @@\n+x\n+y\n", []File{{Op: Add, Path: "a", Line: 1, Text: "x"}, {Op: Add, Path: "b", Line: 9, Mode: Executable, Text: "x\ny\n"}}},
		"what git says without hunks": {
			"diff --git a/a b/a\nold mode 100644\nnew mode 100755\ndiff --git a/x y b/x y\nnew file mode 100644\nindex 0..1\ndiff --git \"a/\\303\\244 \\377\" \"b/\\303\\244 \\377\"\ndeleted file mode 120000\nindex 1..0\n" +
				"diff --git a/o b/n\nsimilarity index 100%\nrename from o\nrename to n\ndiff --git p p\nold mode 100755\nnew mode 100644\n",
			[]File{{Op: Update, Path: "a", Line: 1, Mode: Executable}, {Op: Add, Path: "x y", Line: 4, Mode: Plain}, {Op: Delete, Path: `"ä \xff"`, Line: 7}, {Op: Update, Path: "o", MoveTo: "n", Line: 10}, {Op: Update, Path: "p", Mode: Plain, Line: 14}},
		},
		"a rename with hunks and a mode": {
			"diff --git a/o b/d/n\nold mode 100644\nnew mode 100755\nsimilarity index 90%\nrename from o\nrename to d/n\nindex 1..2\n--- a/o\n+++ b/d/n\n@@ -7,2 +7,2 @@\n x\n-y\n+z\n",
			[]File{{Op: Update, Path: "o", MoveTo: "d/n", Mode: Executable, Line: 8, Hunks: []Hunk{{Line: 11, Lines: one.Lines, At: 7}}}},
		},
		"a quoted name":                        {"--- \"a/\\303\\244\\n\\\"\"\n+++ \"b/\\303\\244\\n\\\"\"\n@@ -7,2 +7,2 @@\n x\n-y\n+z\n", []File{{Op: Update, Path: `"ä\n\""`, Line: 1, Hunks: []Hunk{{Line: 4, Lines: one.Lines, At: 7}}}}},
		"an empty file":                        {"*** Begin Patch\n*** Add File: a\n*** End Patch", []File{{Op: Add, Path: "a", Line: 2}}},
		"a rename":                             {"*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch", []File{{Op: Update, Path: "a", MoveTo: "b", Line: 2}}},
		"lines that look like headers in text": {"*** Begin Patch\n*** Add File: a\n+*** Delete File: x\n+*** End Patch\n*** End Patch", []File{{Op: Add, Path: "a", Line: 2, Text: "*** Delete File: x\n*** End Patch\n"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(tt.patch)
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("error %v, (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestWhatIsNoPatchSaysWhy(t *testing.T) {
	in := func(body string) string { return "*** Begin Patch\n" + body + "\n*** End Patch\n" }
	tests := map[string]struct{ patch, want string }{
		"nothing":                     {" \n\n", "the patch is empty; a patch is"},
		"only a fence":                {"```\n```", "the patch is empty"},
		"a diff without names":        {"diff --git a/x b/x\n", "line 1 of the patch: no change for \"x\""},
		"a diff that renames":         {"--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", `"a/x" and "b/y" are not the same file: to move one, a patch is "*** Begin Patch"`},
		"a diff without hunks":        {"--- a/x\n+++ b/x\n", "line 1 of the patch: no change for \"x\""},
		"a diff of no file":           {"--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n", "cannot be the path of a file"},
		"a copy":                      {"diff --git a/x b/y\nsimilarity index 100%\ncopy from x\ncopy to y\n", `and this is "copy from x"`},
		"a binary":                    {"diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 1\n", "line 1 of the patch: no change for \"x\""},
		"files that differ":           {"diff --git a/x b/x\nindex 1..2 100644\nBinary files a/x and b/x differ\n", "line 1 of the patch: no change for \"x\""},
		"a new link":                  {"diff --git a/x b/x\nnew file mode 120000\nindex 0..1\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+y\n", `line 2 of the patch: a file has the mode 100644 or 100755, and not "120000": no tool makes links`},
		"names that say otherwise":    {"diff --git a/x b/x\nnew file mode 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-y\n+z\n", `line 6 of the patch: every line of a file that is added begins with +`},
		"half a rename":               {"diff --git a/x b/y\nrename from x\n", `the lines --- and +++ name each file`},
		"a mode of two names":         {"diff --git a/x b/y\nold mode 100644\nnew mode 100755\n", `the lines --- and +++ name each file`},
		"a line behind the last":      {"--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n+b\n\\ No newline at end of file\n+c\n", `line 7 of the patch: "+c" stands below`},
		"context behind the last":     {in("*** Update File: a\n@@\n-a\n\\ No newline at end of file\n b"), `line 6 of the patch: " b" stands below`},
		"a backslash in a hunk":       {in("*** Update File: a\n@@\n-a\n\\section{b}"), `line 5 of the patch: a line of a hunk begins with a blank`},
		"a backslash in a diff":       {"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\section{b}\n+b\n", `line 5 of the patch: a line of a hunk begins with a blank`},
		"a last line of nothing":      {in("*** Update File: a\n@@\n\\ No newline at end of file\n b"), `line 4 of the patch`},
		"a hunk without a file":       {"@@ -1 +1 @@\n-a\n+b\n", "no file is named above the hunk"},
		"a new file with context":     {"--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n a\n", "every line of a file that is added begins with +"},
		"a diff with two meanings":    {"--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-a\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n", "line 5 of the patch: this may begin another file"},
		"a diff with loose context":   {"--- a/x\n+++ b/x\n@@ -1 +1 @@\nfoo\n", "a line of a hunk begins with a blank"},
		"a hunk of nothing":           {"--- a/x\n+++ b/x\n@@ -1 +1 @@\n", "the hunk has no lines"},
		"words in front":              {"Here is the patch:\n*** Begin Patch\n*** Delete File: a\n*** End Patch", `line 1 of the patch: "Here is the patch:" is not the beginning`},
		"the end is missing":          {"*** Begin Patch\n*** Delete File: a\n", "line 2 of the patch: the patch does not end with"},
		"only a beginning":            {"*** Begin Patch", "does not end with"},
		"words behind":                {in("*** Delete File: a") + "done\n", "does not end with"},
		"no file":                     {in(""), "names no file"},
		"no path":                     {in("*** Delete File:  "), "line 2 of the patch: the path is missing"},
		"no path to move to":          {in("*** Update File: a\n*** Move to: \n@@\n-a"), "line 3 of the patch: the path is missing"},
		"no header":                   {in("@@\n-a\n+b"), `line 2 of the patch: a file must begin here`},
		"a header that there is not":  {in("*** Change File: a\n-a"), "a file must begin here"},
		"a new file without +":        {in("*** Add File: a\n+one\ntwo"), `line 4 of the patch: every line of a file that is added begins with +`},
		"a gap in a new file":         {in("*** Add File: a\n+one\n\n+two"), `line 5 of the patch: every line`},
		"a deletion with lines":       {in("*** Delete File: a\n-one"), "line 3 of the patch: a file must begin here"},
		"an update that says nothing": {in("*** Update File: a"), `line 2 of the patch: no change for "a"`},
		"context without its blank":   {in("*** Update File: a\n@@\nfoo\n-bar"), `line 4 of the patch: a line of a hunk begins with a blank`},
		"an anchor and no lines":      {in("*** Update File: a\n@@ foo"), "the hunk has no lines"},
		"lines behind the file's end": {in("*** Update File: a\n@@\n+x\n*** End of File\ny"), "a line of a hunk begins"},
		"too many files":              {in(strings.Repeat("*** Delete File: a\n", MaxFiles+1)), "more than 128 files"},
		"too many hunks":              {in("*** Update File: a\n" + strings.Repeat("@@\n-a\n", MaxHunks+1)), "or 1000 hunks"},
		"too long":                    {strings.Repeat("x", MaxBytes+1), "more than the limit of 1048576"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			files, err := Parse(tt.patch)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, %+v, want %q", err, files, tt.want)
			}
		})
	}
}

// The host parses patches, too, and has no fuel to limit it.
func TestPatchesOfManyLinesTakeLittleMemory(t *testing.T) {
	lines := strings.Repeat("+\n", 100_000)
	for name, text := range map[string]string{
		"a file that is added":        "*** Begin Patch\n*** Add File: a\n" + lines + "*** End Patch",
		"one of a unified diff":       "--- /dev/null\n+++ b/a\n@@ -0,0 +1,100000 @@\n" + lines,
		"a hunk":                      "*** Begin Patch\n*** Update File: a\n x\n" + lines + "*** End Patch",
		"a file of hunks":             "*** Begin Patch\n*** Update File: a\n" + strings.Repeat("@@\n+\n", 100_000) + "*** End Patch",
		"a hunk with as many anchors": "*** Begin Patch\n*** Update File: a\n" + strings.Repeat("@@ a\n", 100_000) + "+\n*** End Patch",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse(text)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 100<<20 {
			t.Errorf("%s takes %d MiB (%v)", name, got>>20, err)
		}
	}
}

// FuzzParse: every parsed patch has files with names and hunks with valid lines, within the
// limits.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"*** Begin Patch\n*** Add File: n\n+one\n*** Delete File: o\n*** Update File: a\n*** Move to: b\n@@ f\n x\n-y\n+z\n*** End of File\n*** End Patch",
		"```\n*** Update File: a\n\n\n@@\n\n-y\n\n*** End Patch\n```", "diff --git a/x b/y\nold mode 100644\nnew mode 100755\nrename from x\nrename to y\n--- \"a/x\"\n+++ b/y\n@@ -1 +1 @@\n-a\n\\ No newline\n+b\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+a\n", "*** Begin Patch\r\n*** Update File: a\r\n@@ -1 +1 @@\r\n+z\r\n*** End Patch", "```", "*** End Patch",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		files, err := Parse(text)
		if err != nil {
			if len(err.Error()) > 2000 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		hunks, bytes := 0, 0
		for _, file := range files {
			if file.Path == "" || strings.ContainsAny(file.Path+file.MoveTo, "\n") {
				t.Fatalf("the path is %q", file.Path)
			}
			bytes += len(file.Text)
			for _, h := range file.Hunks {
				hunks++
				if len(h.Lines) == 0 {
					t.Fatal("a hunk without lines")
				}
				for _, line := range h.Lines {
					if bytes += len(line); line == "" || !strings.Contains(" -+", line[:1]) || strings.Contains(line, "\n") {
						t.Fatalf("the line %q", line)
					}
				}
			}
		}
		if len(files) == 0 || len(files) > MaxFiles || hunks > MaxHunks || bytes > 2*len(text)+1 {
			t.Fatalf("%d files, %d hunks, %d bytes of %d", len(files), hunks, bytes, len(text))
		}
	})
}
