package walk

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/stage"
)

const cloned = "[core]_\trepositoryformatversion = 0_\tfilemode = true_[remote \"origin\"]_\turl = https://example.org/x.git_\tfetch = +refs/heads/*:refs/remotes/origin/*_[branch \"main\"]_\tremote = origin_\tmerge = refs/heads/main_"

// The names that are there, with a slash behind those of empty directories.
func tree(t *testing.T, ws string) string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(ws, func(name string, d os.DirEntry, err error) error {
		if err != nil || name == ws {
			return err
		}
		if d.IsDir() {
			if entries, err := os.ReadDir(name); err != nil || len(entries) > 0 {
				return err
			}
			name += "/"
		}
		out = append(out, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return below(ws, out)
}

func TestWhatIsClosedAndNewIsRemoved(t *testing.T) {
	base := []string{".git/config", ".git/hooks/old", "payload/config=x", "payload/hooks/pre-commit"}
	for name, test := range map[string]struct {
		change        []string
		tree, removed string
	}{
		"hooks of an old repository": {
			change: []string{".git/hooks/pre-commit", ".git/hooks/d/e", ".git/config.worktree", ".git/info/attributes"},
			tree:   ".git/config .git/hooks/old .git/info/ payload/config payload/hooks/pre-commit", removed: ".git/config.worktree .git/hooks/d .git/hooks/d/e .git/hooks/pre-commit .git/info/attributes",
		},
		"our own configuration": {change: []string{"agent.toml", "a/.stockade/policy.toml", "Agent.TOML"}, tree: ".git/config .git/hooks/old a/ payload/config payload/hooks/pre-commit", removed: "Agent.TOML a/.stockade a/.stockade/policy.toml agent.toml"},
		"a new repository that is harmless": {
			change: []string{"-payload", "n/.git/config=" + cloned, "n/.git/HEAD", "n/.git/hooks/pre-commit.sample", "n/.git/objects/", "n/.git/refs/"},
			tree:   ".git/config .git/hooks/old n/.git/HEAD n/.git/config n/.git/hooks/pre-commit.sample n/.git/objects/ n/.git/refs/",
		},
		"a new repository with a hook and a program": {
			change:  []string{"-payload", "n/.git/config=[core]_fsmonitor = ./x", "n/.git/HEAD", "n/.git/hooks/pre-commit", "n/.git/hooks/pre-push.sample", "n/.git/objects/"},
			tree:    ".git/config .git/hooks/old n/.git/HEAD n/.git/hooks/pre-push.sample n/.git/objects/",
			removed: "n/.git/config n/.git/hooks/pre-commit",
		},
		"a bare one": {
			change:  []string{"-payload", "b/HEAD", "b/objects/", "b/refs/", "b/config=[core]_bare = true", "b/hooks/update", "c/HEAD", "c/objects/", "c/refs/", "c/config=[include]_path = x"},
			tree:    ".git/config .git/hooks/old b/HEAD b/config b/objects/ b/refs/ c/HEAD c/objects/ c/refs/",
			removed: "b/hooks b/hooks/update c/config",
		},
		"what was there becomes one": {
			change: []string{"payload => sub", "sub/HEAD", "sub/objects/", "sub/refs/"}, tree: ".git/config .git/hooks/old sub/HEAD sub/objects/ sub/refs/", removed: "sub/config sub/hooks sub/hooks/pre-commit",
		},
		"what was there gets the name":   {change: []string{"n/", "payload => n/.git"}, tree: ".git/config .git/hooks/old n/.git/", removed: "n/.git/config n/.git/hooks n/.git/hooks/pre-commit"},
		"links to what was there":        {change: []string{"n/.git->../payload", "m/.git/hooks->../../payload/hooks"}, tree: ".git/config .git/hooks/old m/.git/ n/ payload/config payload/hooks/pre-commit", removed: "m/.git/hooks n/.git"},
		"a file that leads elsewhere":    {change: []string{"n/.git=gitdir: ../payload"}, tree: ".git/config .git/hooks/old n/ payload/config payload/hooks/pre-commit", removed: "n/.git"},
		"a directory in place of a file": {change: []string{"agent.toml/x", ".gitmodules/"}, tree: ".git/config .git/hooks/old agent.toml/x payload/config payload/hooks/pre-commit", removed: ".gitmodules"},
		"a repository that was moved":    {change: []string{"m/", ".git => m/.git"}, tree: "m/.git/config m/.git/hooks/old payload/config payload/hooks/pre-commit"},
		"a repository that was moved and changed": {
			change: []string{"m/", ".git => m/.git", "m/.git/config=evil", "m/.git/hooks/new"}, tree: "m/.git/hooks/old payload/config payload/hooks/pre-commit", removed: "m/.git/config m/.git/hooks/new",
		},
		"another in the place of one":  {change: []string{".git => m", "payload => .git"}, tree: ".git/ m/config m/hooks/old", removed: ".git/config .git/hooks .git/hooks/pre-commit"},
		"a sample of a hook elsewhere": {change: []string{".stockade/hooks/x.sample", ".git/hooks/y.sample/z", ".git/sequencer/x.sample"}, tree: ".git/config .git/hooks/old payload/config payload/hooks/pre-commit", removed: ".git/hooks/y.sample .git/hooks/y.sample/z .git/sequencer .git/sequencer/x.sample .stockade .stockade/hooks .stockade/hooks/x.sample"},
	} {
		t.Run(name, func(t *testing.T) {
			ws := workspace(t, base...)
			s := look(t, ws)
			r := s.Restore(changes(t, s, func() { change(t, ws, test.change...) }))
			if got := tree(t, ws); got != test.tree {
				t.Errorf("there is %q, want %q", got, test.tree)
			}
			if got := noted(ws, r.Removed); got != test.removed {
				t.Errorf("removed %q, want %q", got, test.removed)
			}
			if wantFailed := strings.Contains(test.tree, "agent.toml"); r.PutBack.Count != 0 || (r.Failed.Count != 0) != wantFailed {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A configuration with a second name could be changed by that afterwards.
func TestAConfigurationHasOneName(t *testing.T) {
	ws := workspace(t, "x=[core]_bare = false")
	s := look(t, ws)
	r := s.Restore(changes(t, s, func() {
		change(t, ws, "n/.git/")
		if err := os.Link(ws+"/x", ws+"/n/.git/config"); err != nil {
			t.Fatal(err)
		}
	}))
	if got := tree(t, ws); got != "n/.git/ x" {
		t.Errorf("%s, %+v", got, r)
	}
}

// Something that takes the place of a directory leads nowhere else.
func TestRestoreStaysInside(t *testing.T) {
	outside := workspace(t, "hooks/pre-commit=theirs", "config=theirs", "agent.toml=theirs")
	ws := workspace(t, "sub/.git/config=ours", "other/agent.toml=ours")
	s := look(t, ws)
	if err := s.SaveContent(0); err != nil {
		t.Fatal(err)
	}
	c := changes(t, s, func() { change(t, ws, "sub/.git/hooks/pre-commit", "new/agent.toml") })
	change(t, ws, "sub/.git => moved", "sub/.git->"+outside, "-new", "new->"+outside, "-other", "other->"+outside)
	r := s.Restore(c)
	for _, name := range []string{"hooks/pre-commit", "config", "agent.toml"} {
		if data, err := os.ReadFile(filepath.Join(outside, name)); err != nil || string(data) != "theirs" {
			t.Errorf("outside, %s is %q (%v)", name, data, err)
		}
	}
	if r.Removed.Count != 0 || r.PutBack.Count != 0 || r.Failed.Count == 0 {
		t.Errorf("%+v", r)
	}
	// Nor does another directory in the place of the mount.
	change(t, filepath.Dir(ws), filepath.Base(ws)+" => "+"away", filepath.Base(ws)+"/sub/.git/hooks/pre-commit")
	if r := s.Restore(c); r.Removed.Count != 0 {
		t.Errorf("%+v", r)
	}
	if _, err := s.Changes(t.Context(), stage.FileClockNow(), Budget{}); err == nil {
		t.Error("another directory was compared")
	}
}

func TestWhatWasKeptIsPutBack(t *testing.T) {
	base := []string{".git/config=one", ".git/hooks/a=two", ".git/hooks/d/b=three", ".git/info/attributes->../x", "w/.git=gitdir", "w/x"}
	for name, test := range map[string]struct {
		change  []string
		putBack string
	}{
		"nothing":                       {},
		"content":                       {change: []string{".git/config=x", "w/.git="}, putBack: ".git/config w/.git"},
		"a longer one":                  {change: []string{".git/config=one and more"}, putBack: ".git/config"},
		"removed":                       {change: []string{"-.git/hooks", "-.git/config"}, putBack: ".git/config .git/hooks/a .git/hooks/d/b"},
		"a link in its place":           {change: []string{"-.git/config", ".git/config->../w/x", "-.git/hooks", ".git/hooks->../w"}, putBack: ".git/config .git/hooks/a .git/hooks/d/b"},
		"a link that leads elsewhere":   {change: []string{".git/info/attributes->../y"}, putBack: ".git/info/attributes"},
		"another file with its name":    {change: []string{"t=evil", "t => .git/hooks/a"}, putBack: ".git/hooks/a"},
		"an empty directory":            {change: []string{"-.git/config", ".git/config/"}, putBack: ".git/config"},
		"another repository":            {change: []string{".git => gone", ".git/config=evil", ".git/hooks/a=two", "-gone", ".git/info/"}, putBack: ".git/config .git/hooks/a .git/hooks/d/b .git/info/attributes"},
		"its directory is gone with it": {change: []string{"-w"}},
	} {
		t.Run(name, func(t *testing.T) {
			ws := workspace(t, base...)
			if err := os.Chmod(ws+"/.git/hooks/a", 0o755); err != nil {
				t.Fatal(err)
			}
			s := look(t, ws)
			if err := s.SaveContent(0); err != nil {
				t.Fatal(err)
			}
			r := s.Restore(changes(t, s, func() { change(t, ws, test.change...) }))
			if got := noted(ws, r.PutBack); got != test.putBack || r.Failed.Count != 0 {
				t.Errorf("put back %q, want %q; %+v", got, test.putBack, r)
			}
			for name, want := range map[string]string{".git/config": "one", ".git/hooks/a": "two", ".git/hooks/d/b": "three", "w/.git": "gitdir"} {
				if data, err := os.ReadFile(filepath.Join(ws, name)); string(data) != want && !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s is %q (%v)", name, data, err)
				}
			}
			if fi, err := os.Lstat(ws + "/.git/hooks/a"); err != nil || fi.Mode() != 0o755 {
				t.Errorf("%v %v", fi, err)
			}
			if at, err := os.Readlink(ws + "/.git/info/attributes"); err != nil || at != "../x" {
				t.Errorf("%q %v", at, err)
			}
		})
	}
	ws := workspace(t, "agent.toml="+strings.Repeat("x", 100), ".gitmodules="+strings.Repeat("x", 100))
	if err := look(t, ws).SaveContent(199); err == nil || !strings.Contains(err.Error(), "more than 199 bytes") {
		t.Error(err)
	}
	if err := look(t, ws).SaveContent(200); err != nil {
		t.Error(err)
	}
}

// What git itself makes works afterwards, and what it would run does not.
func TestGitOnANewRepository(t *testing.T) {
	ws := workspace(t, "src/x")
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", ws, "-c", "user.name=a", "-c", "user.email=b"}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + ws, "GIT_CONFIG_NOSYSTEM=1"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	s := look(t, ws)
	c := changes(t, s, func() {
		git("init", "-q", "-b", "main", "src")
		git("-C", "src", "add", "x")
		git("-C", "src", "commit", "-q", "-m", "one")
		git("clone", "-q", "--no-local", "src", "clone")
		git("init", "-q", "--bare", "bare")
	})
	r := s.Restore(c)
	if got := noted(ws, r.NewRepositories); got != "clone/.git src/.git" || r.Removed.Count+r.Failed.Count != 0 {
		t.Errorf("%+v", r)
	}
	git("-C", "clone", "fetch", "-q")
	ran := filepath.Join(ws, "ran")
	s = look(t, ws)
	c = changes(t, s, func() {
		git("clone", "-q", "--no-local", "src", "evil")
		change(t, ws, "evil/.git/hooks/post-checkout=#!/bin/sh_touch "+ran)
		if err := os.Chmod(ws+"/evil/.git/hooks/post-checkout", 0o755); err != nil {
			t.Fatal(err)
		}
		git("-C", "evil", "config", "core.fsmonitor", "touch "+ran+"; false")
	})
	r = s.Restore(c)
	git("-C", "evil", "checkout", "-q", "-b", "next")
	git("-C", "evil", "status")
	if _, err := os.Lstat(ran); err == nil {
		t.Errorf("git has run something; %+v", r)
	}
	if got := noted(ws, r.Removed); got != "evil/.git/config evil/.git/hooks/post-checkout" {
		t.Errorf("%+v", r)
	}
}
