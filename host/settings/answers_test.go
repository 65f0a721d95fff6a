//go:build unix

package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/config/keys"
)

var added = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestAnswersComeBackAsTheyWereGiven(t *testing.T) {
	d := Dirs{Config: filepath.Join(t.TempDir(), "new")}
	path := d.AnswersFile()
	var want []Answer
	for _, rule := range []string{"file_write", "bash(command=make test)", "t with A,B", "t(a=b) with A", `a(b="'\)`, "a(b=x\ny\t\x1b\x00)", "a(b=é😀)", "a(b='''\"\"\")", "a(b=[[allow]]\nrule = \"bash\")"} {
		a := Answer{Rule: rule, Module: "builtin", Added: added}
		if err := d.add(a); err != nil {
			t.Fatalf("%q: %v", rule, err)
		}
		want = append(want, a)
		got, err := d.Answers()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("after %q: %s", rule, diff)
		}
	}
	for name, mode := range map[string]fs.FileMode{path: 0o600, path + ".lock": 0o600, filepath.Dir(path): fs.ModeDir | 0o700} {
		if st, err := os.Stat(name); err != nil || st.Mode() != mode {
			t.Errorf("%s: mode %v, %v; want %v", name, st.Mode(), err, mode)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 2 { // and its lock
		t.Errorf("something is left behind: %v, %v", entries, err)
	}
	if data, _ := os.ReadFile(path); !strings.HasPrefix(string(data), "# What was answered") {
		t.Errorf("it does not say what it is: %.100s", data)
	}
}

func TestThereAreNoAnswersAtFirst(t *testing.T) {
	got, err := Dirs{Config: filepath.Join(t.TempDir(), "no")}.Answers()
	if got != nil || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

// A file that cannot be read has no effect, and adding an answer does not overwrite it.
func TestAnswersThatAreNotUnderstoodAreRefusedAndKept(t *testing.T) {
	const entry = "[[allow]]\nrule = \"a\"\nmodule = \"builtin\"\nadded = 2026-01-02T03:04:05Z\n"
	for name, text := range map[string]string{
		"garbage":              "\x00\xff",
		"half an entry":        entry[:20],
		"an unknown key":       entry + "effect = \"deny\"\n",
		"an unknown table":     entry + "[[deny]]\nrule = \"a\"\n",
		"a rule in upper case": "[[allow]]\nRULE2 = \"a\"\nmodule = \"builtin\"\n",
		"no rule":              "[[allow]]\nmodule = \"builtin\"\n",
		"no module":            "[[allow]]\nrule = \"a\"\n",
		"an empty module":      "[[allow]]\nrule = \"a\"\nmodule = \"\"\n",
		"a number for a rule":  "[[allow]]\nrule = 1\nmodule = \"builtin\"\n",
		"a table for a list":   "[allow]\nrule = \"a\"\nmodule = \"builtin\"\n",
		"a key twice":          "[[allow]]\nrule = \"a\"\nrule = \"b\"\nmodule = \"builtin\"\n",
		"too much":             entry + strings.Repeat("#", keys.MaxFileBytes),
	} {
		t.Run(name, func(t *testing.T) {
			d := Dirs{Config: t.TempDir()}
			path := d.AnswersFile()
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := d.Answers()
			if err == nil || got != nil || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, %v", got, err)
			}
			if err := d.add(Answer{Rule: "a", Module: "builtin", Added: added}); err == nil {
				t.Error("an answer was added")
			}
			if after, _ := os.ReadFile(path); string(after) != text {
				t.Error("the file was changed")
			}
		})
	}
}

func TestAnswersAreReadFromARegularFile(t *testing.T) {
	for name, create := range map[string]func(string) error{
		"a pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		d := Dirs{Config: t.TempDir()}
		if err := create(d.AnswersFile()); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Answers(); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file that others can write has no effect, and is not written.
func TestAnswersThatOthersCanWriteAreRefused(t *testing.T) {
	d := Dirs{Config: t.TempDir()}
	if err := d.add(Answer{Rule: "a", Module: "builtin", Added: added}); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(d.AnswersFile(), 0o602); err != nil {
		t.Fatal(err)
	}
	_, readErr := d.Answers()
	_, revokeErr := d.Revoke("a")
	for _, err := range []error{readErr, revokeErr, d.add(Answer{Rule: "b", Module: "builtin", Added: added})} {
		if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.What, "others than its owner may write") || e.Hint == "" {
			t.Errorf("got %v", err)
		}
	}
}

// An answer that would make the file unreadable is not written: the program could not start
// any more.
func TestWhatCouldNotBeReadBackIsNotWritten(t *testing.T) {
	for name, a := range map[string]Answer{
		"no rule":                {Module: "builtin", Added: added},
		"no module":              {Rule: "a", Added: added},
		"more than a file":       {Rule: "a(b=" + strings.Repeat("x", keys.MaxFileBytes) + ")", Module: "builtin", Added: added},
		"a rule that is no text": {Rule: "a(b=\xff)", Module: "builtin", Added: added},
	} {
		t.Run(name, func(t *testing.T) {
			d := Dirs{Config: t.TempDir()}
			path := d.AnswersFile()
			if err := d.add(Answer{Rule: "first", Module: "builtin", Added: added}); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			if err := d.add(a); err == nil {
				t.Error("it was written")
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("the file was changed")
			}
			if got, err := d.Answers(); err != nil || len(got) != 1 {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// The file is replaced: a program that has the old file open sees all of it and nothing of
// the new one.
func TestAddingReplacesTheFile(t *testing.T) {
	d := Dirs{Config: t.TempDir()}
	path := d.AnswersFile()
	if err := d.add(Answer{Rule: "a", Module: "builtin", Added: added}); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(path)
	linked := path + ".old"
	if err := os.Link(path, linked); err != nil {
		t.Fatal(err)
	}
	if err := d.add(Answer{Rule: "b", Module: "builtin", Added: added}); err != nil {
		t.Fatal(err)
	}
	if old, _ := os.ReadFile(linked); string(old) != string(before) {
		t.Error("the old file was written to")
	}
}

func TestAFileThatCannotBeReplacedStays(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := Dirs{Config: blocked}.add(Answer{Rule: "a", Module: "builtin", Added: added})
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestAnswersAddedAtOnceAreAllKept(t *testing.T) {
	d := Dirs{Config: t.TempDir()}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if err := d.add(Answer{Rule: fmt.Sprintf("t%d", i), Module: "builtin", Added: added}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, err := d.Answers(); err != nil || len(got) != 8 {
		t.Errorf("%d answers, %v", len(got), err)
	}
}
