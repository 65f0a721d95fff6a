package pathname

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	cwd := t.TempDir()
	for _, name := range []string{"~/notes.txt", "$X/a", `back\slash`, " blank ", "\"quoted\"", "file:/x", "caf\xe9"} {
		path := filepath.Join(cwd, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// What is there, or cannot be meant in another way, is taken as it is.
	for arg, want := range map[string]string{
		"": "", "a.txt": "a.txt", "./a/../b": "b", "~/notes.txt": "~/notes.txt", "~/new": "~/new", "./$HOME/x": "$HOME/x", "$X/new": "$X/new", `back\slash`: `back\slash`, " blank ": " blank ",
		`"quoted"`: `"quoted"`, "file:/x": "file:/x", `"caf\xe9"`: "caf\xe9", `sub/"new\n"`: "sub/new\n", "~tmp": "~tmp", "notes~": "notes~", "routes/$id.tsx": "routes/$id.tsx", "$id/x": "$id/x",
		"100%": "100%", "a$B/c": "a$B/c", "it's": "it's", "C:": "C:", "a b": "a b",
	} {
		if got, err := Resolve(arg, cwd); err != nil || got != filepath.Join(cwd, want) {
			t.Errorf("%q is %q, %v", arg, got, err)
		}
	}
	for arg, says := range map[string]string{
		"~":                  `path "~" begins with ~, which no tool expands (./ in front means a directory of that name): write .; relative paths begin in`,
		"$HOME/x":            "write x; relative paths begin in " + cwd,
		"${HOME}/a/b":        "write a/b;",
		`%USERPROFILE%\a\b`:  "write a/b;",
		"~ann/x":             "begins with ~ann, which no tool expands",
		`sub\dir\x.txt`:      `has backslashes or white space around it: write sub/dir/x.txt;`,
		`C:\Users\ann\x.txt`: "is one of Windows, and there are no drives: write x.txt;",
		"D:/x":               "there are no drives",
		" a.txt":             "white space around it: write a.txt;",
		`/a\b`:               "write /a/b;",
		"a.txt\n":            "write a.txt;",
		`"a b.txt"`:          "is in quotation marks: write a b.txt;",
		"'a'":                "write a;",
		"`a`":                "write a;",
		`"caf\351"`:          `write "caf\xe9";`,
		"file:///etc/a%20b":  "is a URL: write /etc/a b;",
		"file://localhost/x": "write /x;",
		"file:/a%zz":         "write /a%zz;",
		`" ~/x"`:             "write x;",
		"a\x00b":             "holds a NUL byte",
	} {
		dir := cwd
		if strings.Contains(arg, "~") { // there the directory ~ is
			dir = filepath.Join(cwd, "~")
		}
		if _, err := Resolve(arg, dir); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", arg, err, says)
		}
	}
	if _, err := Resolve("~/x", "/home/ann/work"); err == nil || !strings.Contains(err.Error(), "write /home/ann/x;") {
		t.Error(err)
	}
}
