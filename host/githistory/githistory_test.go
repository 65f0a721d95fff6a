package githistory

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestKept checks that a result outlives the process, until the repository changes or is
// gone, and that an invalid result does not count as clean.
func TestKept(t *testing.T) {
	dir, repository := t.TempDir(), filepath.Join(t.TempDir(), ".git")
	for _, name := range []string{"objects/info", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(repository, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	here := func(string) bool { return true }
	learn := func(found string) {
		t.Helper()
		now, _ := New(dir).Lookup(repository)
		if err := New(dir).Save(now, []byte(found)); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := New(dir).Lookup(repository); ok {
		t.Error("it is known before anybody has looked")
	}
	learn(`{"names":[],"whole":true,"commits":2,"tips":["a"]}`)
	if h, ok := New(dir).Lookup(repository); !ok || !h.Clean() || h.Commits != 2 {
		t.Errorf("kept is %+v, %t", h, ok)
	}
	if err := os.WriteFile(filepath.Join(repository, "refs/heads/x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := New(dir)
	if h, ok := s.Lookup(repository); ok || !slices.Equal(h.Tips, []string{"a"}) {
		t.Error("a new reference is known, or the search does not leave off at the old one")
	}
	for _, found := range []string{"", "nonsense", `{"names":[],"tips":["a"]}`} {
		learn(found)
		if h, ok := New(dir).Lookup(repository); !ok || h.Clean() || h.Tips != nil {
			t.Errorf("%q: %+v, %t", found, h, ok)
		}
	}
	learn(`{"names":[".env"],"whole":true,"tips":["a"]}`)
	if err := os.RemoveAll(filepath.Join(repository, "refs")); err != nil {
		t.Fatal(err)
	}
	if h, ok := New(dir).Lookup(repository); !ok || h.Clean() || len(New(dir).WithSecrets(here)) != 1 {
		t.Errorf("without references it is %+v, %t", h, ok)
	}
	if err := os.Rename(filepath.Join(repository, "objects"), filepath.Join(repository, "old")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(repository, "objects"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, ok := New(dir).Lookup(repository); ok || len(New(dir).WithSecrets(here)) != 0 {
		t.Error("other objects are taken for those that were looked through")
	}
	learn(`{"names":[".env"],"whole":true}`)
	was := objectsOf(repository)
	for range 100 { // until the number of the directory is used again
		for _, change := range []func(string) error{os.Remove, func(name string) error { return os.Mkdir(name, 0o755) }} {
			if err := change(filepath.Join(repository, "objects")); err != nil {
				t.Fatal(err)
			}
		}
		if objectsOf(repository) == was {
			t.Fatal("another directory of objects is taken for the old one")
		}
	}
	learn(`{"names":[],"whole":true}`)
	for _, change := range []func() error{
		func() error { return os.Mkdir(filepath.Join(repository, "objects/info"), 0o755) },
		func() error {
			return os.WriteFile(filepath.Join(repository, "objects/info/alternates"), []byte("../lent\n"), 0o600)
		},
		func() error { return os.Mkdir(filepath.Join(repository, "lent"), 0o755) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := New(dir).Lookup(repository); ok {
		t.Error("with other objects to borrow it is known")
	}
	learn(`{"names":[],"whole":true}`)
	if err := os.Remove(filepath.Join(repository, "lent")); err != nil {
		t.Fatal(err)
	}
	if _, ok := New(dir).Lookup(repository); ok {
		t.Error("with fewer objects to borrow it is known")
	}
	most := maxEntries
	t.Cleanup(func() { maxEntries = most })
	maxEntries = 0
	learn(`{"names":[],"whole":true}`)
	if h, ok := New(dir).Lookup(repository); !ok || h.Clean() {
		t.Errorf("with more than is looked at it is %+v, %t", h, ok)
	}
	if err := os.RemoveAll(repository); err != nil {
		t.Fatal(err)
	}
	New(dir).WithSecrets(here)
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("of a repository that is gone %d files are kept, %v", len(left), err)
	}
}

// TestCommon checks that links to a repository are followed, and that a stranger cannot
// make this endless.
func TestCommon(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"main/.git/HEAD": "x", "main/.git/worktrees/w/commondir": "../..\n", "w/.git": "gitdir: " + dir + "/main/.git/worktrees/w\n",
		"empty/.git": "gitdir: \n", "odd/.git": "nothing\n", "long/.git": string(make([]byte, 1<<16)), "gone/.git": "gitdir: ../nowhere\n", "loop/.git": "gitdir: .git\n",
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"main/.git": "main/.git", "main/.git/worktrees/w": "main/.git", "w/.git": "main/.git", "empty/.git": "", "odd/.git": "", "long/.git": "", "gone/.git": "", "loop/.git": "loop/.git"} {
		if want != "" {
			want = filepath.Join(dir, want)
		}
		if got, _ := CommonDir(filepath.Join(dir, name)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestTooManyWorktrees checks that files can be anywhere if not all worktrees are examined.
func TestTooManyWorktrees(t *testing.T) {
	defer func(n int) { maxWorktrees = n }(maxWorktrees)
	maxWorktrees = 2
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		if err := os.MkdirAll(filepath.Join(dir, ".git/worktrees", name), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, ok := WorktreeRoots(filepath.Join(dir, ".git")); ok != (name != "c") {
			t.Errorf("with the worktree %s it is known where all files are: %t", name, ok)
		}
	}
}
