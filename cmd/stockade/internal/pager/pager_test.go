package pager

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fake is a program in the place of less, which does what the script says.
func fake(t *testing.T, script string) (p *Pager, screen string) {
	t.Helper()
	dir := t.TempDir()
	less, screen := filepath.Join(dir, "less"), filepath.Join(dir, "screen")
	if err := os.WriteFile(less, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(screen)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	lookup := func(name string) (string, bool) {
		return map[string]string{"TERM": "xterm", "LESSOPEN": "|evil %s", "LESS": "+!evil", "OPENAI_API_KEY": "secret"}[name], name != "LANG"
	}
	return &Pager{Less: less, Screen: out, Rows: 10, Columns: 20, Lookup: lookup}, screen
}

func shown(t *testing.T, screen string) string {
	t.Helper()
	text, err := os.ReadFile(screen)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestOnlyWhatIsLongIsPaged(t *testing.T) {
	for _, test := range []struct {
		name, text string
		paged      bool
	}{
		{"nothing", "", false},
		{"nine rows of ten", strings.Repeat("a\n", 9), false},
		{"ten rows", strings.Repeat("a\n", 10), true},
		{"one line that takes ten rows", strings.Repeat("a", 190) + "\n", true},
	} {
		p, screen := fake(t, "echo paged; /bin/cat")
		for rest := test.text; rest != ""; rest = rest[1:] {
			if _, err := p.Write([]byte(rest[:1])); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		want := test.text
		if test.paged {
			want = "paged\n" + want
		}
		if got := shown(t, screen); got != want {
			t.Errorf("%s: it showed %q", test.name, got)
		}
	}
}

func TestSomebodyWhoHasSeenEnoughIsNoError(t *testing.T) {
	p, screen := fake(t, "read -r line; echo \"$line\"")
	for i := range 200000 { // far more than a pipe holds
		if _, err := fmt.Fprintln(p, i); err != nil {
			t.Fatalf("row %d: %v", i, err)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if got := shown(t, screen); got != "0\n" {
		t.Errorf("it showed %q", got)
	}
}

func TestLessGetsLittleOfTheEnvironment(t *testing.T) {
	p, screen := fake(t, "/usr/bin/env")
	fmt.Fprint(p, strings.Repeat("a\n", 10))
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(shown(t, screen)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if names = append(names, name); name == "LESS" && value != "-FRXK" {
			t.Errorf("its options are %q", value)
		}
	}
	for _, name := range names {
		if !slices.Contains(append([]string{"LESS", "LESSSECURE", "LESSHISTFILE", "PWD", "_", "SHLVL", "OLDPWD"}, passedVars...), name) {
			t.Errorf("it got %s", name)
		}
	}
	for _, name := range []string{"LESSSECURE", "LESSHISTFILE", "TERM"} {
		if !slices.Contains(names, name) {
			t.Errorf("it did not get %s", name)
		}
	}
}

func TestThePersonSaysThatNothingIsPaged(t *testing.T) {
	for _, test := range []struct {
		name string
		env  map[string]string
	}{
		{"PAGER is cat", map[string]string{"TERM": "xterm", "PAGER": "cat"}},
		{"PAGER is empty", map[string]string{"TERM": "xterm", "PAGER": ""}},
		{"the terminal can do nothing", map[string]string{"TERM": "dumb"}},
		{"there is no terminal", nil},
	} {
		if path, ok := Find(func(name string) (string, bool) { value, ok := test.env[name]; return value, ok }); ok {
			t.Errorf("%s: it is %s", test.name, path)
		}
	}
	path, ok := Find(func(name string) (string, bool) {
		return map[string]string{"TERM": "xterm", "PAGER": "/workspace/evil", "PATH": "/workspace"}[name], true
	})
	if ok && !slices.Contains(lessPaths, path) {
		t.Errorf("it would run %s", path)
	}
}
