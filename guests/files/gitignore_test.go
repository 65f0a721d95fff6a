package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNestedIgnoreFiles(t *testing.T) {
	tree(t, map[string]string{
		".gitignore": "*.tmp\nout/\n", "a.tmp": "", "a/.gitignore": "!keep.tmp\n/local\n", "a/keep.tmp": "", "a/x.tmp": "",
		"a/local": "", "a/b/local": "", "a/b/keep.tmp": "", "a/out/keep.tmp": "", "b/keep.tmp": "", "b/.gitignore": "->../a/.gitignore",
	})
	want := ".gitignore a/.gitignore a/b/keep.tmp a/b/local a/keep.tmp b/.gitignore"
	if out := works(t, glob, globArgs{Pattern: "**"}); strings.ReplaceAll(out.Output, "\n", " ") != want {
		t.Errorf("got %q", out.Output)
	}
	// The files above the start hold too.
	if out := works(t, glob, globArgs{Pattern: "**", Path: "a/b"}); out.Output != "a/b/keep.tmp\na/b/local" {
		t.Errorf("got %q", out.Output)
	}
	// In a work tree those above the working directory hold as well.
	put(t, ".git/", "")
	t.Chdir("b")
	if out := works(t, glob, globArgs{Pattern: "**"}); out.Output != ".gitignore" {
		t.Errorf("got %q", out.Output)
	}
}

// TestWhatAWorkTreeExcludes compares with git ls-files what is left out in work trees, linked
// and nested ones, from each of their directories. Without git the first comparison is all.
func TestWhatAWorkTreeExcludes(t *testing.T) {
	tree(t, map[string]string{
		"repo/.gitignore": "*.log\n/sub/gone\n!kept.log\nout/\n", "repo/sub/.gitignore": "*.tmp\n!local.tmp\n", "repo/sub/app/.gitignore": "!b.log\n",
		"repo/a.log": "", "repo/kept.log": "", "repo/local": "", "repo/sub/gone": "", "repo/sub/local": "", "repo/sub/local.tmp": "", "repo/sub/x.tmp": "", "repo/sub/app/b.log": "",
		"repo/sub/app/a.log": "", "repo/sub/app/local": "", "repo/sub/app/keep": "", "repo/sub/app/caf\xe9.log": "", "repo/out/x": "", "repo/sub/out/x": "",
		"repo/nested/.gitignore": "own\n", "repo/nested/own": "", "repo/nested/a.log": "", "repo/nested/local": "", "repo/nested/secret": "",
	})
	git := func(dir string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v %s", args, err, out)
		}
		return string(out)
	}
	top, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	listed := func(dir string) string {
		t.Chdir(filepath.Join(top, dir))
		return works(t, glob, globArgs{Pattern: "**"}).Output
	}
	_, err = exec.LookPath("git")
	if hasGit := err == nil; hasGit {
		git("repo", "init", "-q")
		git("repo/nested", "init", "-q")
		git("repo", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x")
		git("repo", "worktree", "add", "-q", "../linked")
		put(t, "linked/sub/local", "")
		put(t, "linked/sub/x", "")
	}
	put(t, "repo/.git/info/exclude", "local\n!x.tmp\n/sub/app/keep\n")
	put(t, "repo/nested/.git/info/exclude", "secret\n")
	if got, want := listed("repo/sub/app"), ".gitignore\nb.log"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := listed("repo"); !strings.Contains(got, "nested/a.log\nnested/local") || strings.Contains(got, "nested/own") || strings.Contains(got, "nested/secret") {
		t.Errorf("what is above a nested work tree holds in it: %q", got)
	}
	if err != nil {
		t.Log("git is not installed; nothing to compare with")
		return
	}
	for _, dir := range []string{"repo", "repo/sub", "repo/sub/app", "repo/nested", "linked", "linked/sub"} {
		path := filepath.Join(top, dir)
		want := strings.Split(strings.TrimSuffix(git(path, "ls-files", "-z", "-o", "--exclude-standard"), "\x00"), "\x00")
		got := strings.Split(listed(dir), "\n")
		nested := func(name string) bool { return dir == "repo" && strings.HasPrefix(name, "nested/") }
		if got, want = slices.DeleteFunc(got, nested), slices.DeleteFunc(want, nested); !slices.Equal(slices.Sorted(slices.Values(want)), got) {
			t.Errorf("in %s: got %q, git has %q", dir, got, want)
		}
	}
}
