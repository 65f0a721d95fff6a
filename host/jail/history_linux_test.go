package jail

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
)

// canary is the content of a file that no worktree has any more.
const canary = "TOKEN=swordfish-in-an-old-commit"

// historyOf makes a repository with a file that was committed, changed and removed. It has
// loose objects, a pack, a stash, a linked worktree, a bare clone, a clone that borrows, a
// submodule, and files of git extensions.
func historyOf(t *testing.T, dir, secret string) {
	t.Helper()
	script := `set -e
export HOME=/nonexistent GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b main . && mkdir -p "$(dirname "$SECRET")"
echo "$CANARY" > "$SECRET"; echo hi > a.txt; git add . ; git commit -qm one
git repack -qad
echo "again $CANARY" > "$SECRET"; git commit -qam two
echo "stashed $CANARY" > "$SECRET"; git stash -q
git worktree add -q linked
git clone -q --bare . bare.git
git clone -q --shared . borrows
git clone -q . inner && mv inner/.git .git/modules-x && mkdir .git/modules && mv .git/modules-x .git/modules/inner && rm -r inner
for d in lfs/objects rr-cache/1 rebase-apply rebase-merge lost-found/other annex; do mkdir -p .git/$d; done
for f in lfs/objects/x rr-cache/1/preimage rebase-apply/patch rebase-merge/patch lost-found/other/x annex/x; do echo "$CANARY" > .git/$f; done
git rm -q "$SECRET"; git commit -qm three
echo "$CANARY" > .git/COMMIT_EDITMSG
for d in linked borrows; do (cd $d && rm "$SECRET"); done
`
	c := exec.Command("bash", "-c", script)
	c.Dir, c.Env = dir, append(os.Environ(), "SECRET="+secret, "CANARY="+canary)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// readsHistory lists commands that could read the removed file.
var readsHistory = []string{
	"git show HEAD~1:$SECRET", "git log -p --all", "git diff HEAD~2 HEAD", "git cat-file -p $(git rev-parse HEAD~1:$SECRET)", "git blame HEAD~1 -- $SECRET",
	"git grep TOKEN HEAD~1", "git archive HEAD~1 | tar xO", "git checkout HEAD~1 -- $SECRET; cat $SECRET", "git restore -s HEAD~2 $SECRET; cat $SECRET",
	"git stash show -p", "git reflog show -p", "git show main@{1}:$SECRET", "git fsck --lost-found; cat .git/lost-found/other/*",
	"git cat-file --batch-all-objects --batch", "git fast-export --all", "git bundle create /tmp/b --all; git clone -q /tmp/b /tmp/c; git -C /tmp/c log -p",
	"git -C linked log -p", "git -C bare.git log -p", "git -C borrows log -p", "git --git-dir .git/modules/inner log -p", "GIT_DIR=.git git show HEAD~1:$SECRET",
	"cp -r .git /tmp/g; git --git-dir /tmp/g log -p --all", "git clone -q file://$PWD /tmp/d; git -C /tmp/d log -p",
	"git init -q /tmp/e; echo $PWD/.git/objects > /tmp/e/.git/objects/info/alternates; git -C /tmp/e cat-file -p $(cat .git/refs/heads/main)",
	"mv .git/objects /tmp/o; mv .git moved; git --git-dir moved log -p", "umount .git/objects; git log -p",
	`python3 -c 'import zlib,glob
for f in glob.glob("**/.git/**/objects/??/*",recursive=True)+glob.glob("**/objects/??/*",recursive=True)+glob.glob(".git/objects/??/*"): print(zlib.decompress(open(f,"rb").read()))'`,
	`python3 -c 'import zlib,glob
for f in glob.glob(".git/**/*.pack",recursive=True):
    b=open(f,"rb").read()
    for i in range(len(b)):
        try: print(zlib.decompressobj().decompress(b[i:]))
        except zlib.error: pass'`,
	"cat .git/lfs/objects/x .git/rr-cache/1/preimage .git/rebase-apply/patch .git/rebase-merge/patch .git/lost-found/other/x .git/annex/x", "cat .git/COMMIT_EDITMSG",
}

// TestClosedHistories: no command reads a file that looks like a secret, or is hidden, from
// the objects of a repository. With a rule that opens the history, each does.
func TestClosedHistories(t *testing.T) {
	s := newStager(t, Options{})
	if !s.layered() {
		return // nothing is staged there
	}
	for name, c := range map[string]struct {
		secret string
		opts   policy.Options
	}{
		"what looks like a secret": {secret: ".env"},
		"a hidden path":            {secret: "pay/roll.csv", opts: policy.Options{Layers: []policy.Layer{{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			historyOf(t, dir, c.secret)
			opts := c.opts
			opts.Rules = []policy.Rule{{Effect: policy.Allow, Tool: "bash", HistoryDir: "/elsewhere", Source: policy.SourceFlag}}
			for i := range opts.Layers {
				opts.Layers[i].Ceiling.Hidden = []policy.Setting{{Value: filepath.Join(dir, c.secret)}}
			}
			learns(t, s, dir, opts)
			for _, command := range readsHistory {
				command = strings.ReplaceAll(command, "$SECRET", c.secret)
				if ended, _ := s.run(t, dir, command, opts); strings.Contains(string(ended.Stdout)+string(ended.Stderr), canary) {
					t.Errorf("%s\nhas written %.300s", command, ended.Stdout)
				} else if notes := strings.Join(ended.Notes, "\n"); (ended.Code == nil || *ended.Code != 0) && !strings.Contains(notes, "does not see the objects") {
					t.Errorf("%s\nis told %q", command, notes)
				}
				open := policy.Options{}
				if c.opts.Layers != nil {
					continue // it was tested with the same commands
				}
				if ended, _ := s.run(t, dir, command, open); !strings.Contains(string(ended.Stdout), canary) && !strings.Contains(command, "mv .git/objects") && !strings.Contains(command, "umount") && !strings.Contains(command, "cat .git/refs") {
					t.Errorf("%s\nreads nothing where it may: %.300s %.300s", command, ended.Stdout, ended.Stderr)
				}
			}
			ended, _ := s.run(t, dir, "git init -q new && cd new && echo x > f && git add f && git -c user.name=a -c user.email=a@b commit -qm own && git show HEAD:f", opts)
			if string(ended.Stdout) != "x\n" {
				t.Errorf("what it has made itself: %s %s", ended.Stdout, ended.Stderr)
			}
			if err := os.Rename(filepath.Join(dir, ".git", "HEAD"), filepath.Join(dir, ".git", "head")); err != nil {
				t.Fatal(err)
			}
			if name == "what looks like a secret" {
				if ended, _ := s.run(t, dir, "cp -r .git /tmp/g; cd /tmp/g; echo ref: refs/heads/main > HEAD; git --git-dir . log -p --all", opts); strings.Contains(string(ended.Stdout), canary) {
					t.Error("the objects of what is no repository any more can be read")
				}
			}
		})
	}
}

// TestHiddenPathsCloseHistories: no command reads the objects of a hidden file, wherever git
// keeps them, even if nothing in the history looks like a secret.
func TestHiddenPathsCloseHistories(t *testing.T) {
	s := newStager(t, Options{})
	if !s.layered() {
		return // nothing is staged there
	}
	const old = `git init -q sub && cd sub && echo "$CANARY" > roll.csv && git add . && git commit -qm one && git rm -q roll.csv && git commit -qm two && echo > roll.csv; cd ..; `
	for _, c := range []struct {
		name, make, command string
		cut                 bool
	}{
		{"a git directory that says where its files are", "mv sub/.git gd; git --git-dir gd config core.worktree ../sub", "git --git-dir gd log -p", false},
		{"one that is called .git", "mkdir x; mv sub/.git x/.git; git --git-dir x/.git config core.worktree ../../sub", "git --git-dir x/.git log -p", false},
		{"one that says too much", "mkdir x; mv sub/.git x/.git; git --git-dir x/.git config core.worktree ../../sub; yes '' | head -n 2000000 >> x/.git/config", "git --git-dir x/.git log -p", false},
		{"a link", "mv sub/.git gd; ln -s ../gd sub/.git", "git -C sub log -p", false},
		{"a directory that a link leads to", "mv sub gd; ln -s gd sub; rm gd/roll.csv", "git -C gd log -p", false},
		{"a link to a file", "mv sub/.git gd; echo gitdir: ../gd > sub/file; ln -s file sub/.git", "git -C sub log -p", false},
		{"a long file", "mv sub/.git gd; (echo gitdir: ../gd; yes '' | head -n 9000) > sub/.git", "git -C sub log -p", false},
		{"a submodule", "git init -q . && mkdir -p .git/modules && mv sub/.git .git/modules/sub && echo gitdir: ../.git/modules/sub > sub/.git", "git -C .git/modules/sub log -p", false},
		{"a submodule that is not checked out", "git init -q . && mkdir -p .git/modules && mv sub/.git .git/modules/sub && rm -r sub && git --git-dir .git/modules/sub config core.worktree ../../../sub", "git --git-dir .git/modules/sub --work-tree . log -p", false},
		{"a separate git directory", "mv sub/.git gd; echo gitdir: ../gd > sub/.git", "git --git-dir gd log -p", false},
		{"one that includes another", "mkdir x; mv sub/.git x/.git; git config --file x/.git/more core.worktree ../../sub; git --git-dir x/.git config include.path more", "git --git-dir x/.git log -p", false},
		{"one that does not say where its files are", "mv sub/.git gd", "git --git-dir gd --work-tree sub log -p", false},
		{"the configuration of a linked worktree", "git -C sub worktree add -q --detach ../x; rm sub/roll.csv; git -C sub config extensions.worktreeConfig true; mv sub y; git -C y worktree repair ../x; mkdir sub; echo > sub/roll.csv; git -C x config --worktree core.worktree $PWD/sub", "git -C y log -p", false},
		{"more files than are looked at", "", "git -C sub log -p", true},
		{"more files than are looked at, and a worktree elsewhere", "mkdir x; mv sub/.git x/.git; git --git-dir x/.git config core.worktree ../../sub", "git --git-dir x/.git log -p", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			script := exec.Command("bash", "-c", "set -e; "+old+c.make)
			script.Dir, script.Env = dir, append(os.Environ(), "CANARY="+canary, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
			if out, err := script.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if c.cut {
				was := scanBudget
				t.Cleanup(func() { scanBudget = was })
				scanBudget.Names = 1
			}
			opts := policy.Options{Rules: []policy.Rule{{Effect: policy.Allow, Tool: "bash", HistoryDir: dir, Source: policy.SourceUser}}, Layers: []policy.Layer{{}}}
			if ended, _ := s.run(t, dir, c.command, opts); !strings.Contains(string(ended.Stdout), canary) {
				t.Errorf("it reads nothing where nothing is hidden: %s", ended.Stderr)
			}
			opts.Layers[0].Ceiling.Hidden = []policy.Setting{{Value: filepath.Join(dir, "sub/roll.csv")}}
			if ended, _ := s.run(t, dir, c.command, opts); strings.Contains(string(ended.Stdout), canary) {
				t.Errorf("%s\nhas written %.300s", c.command, ended.Stdout)
			}
		})
	}
	was := thoroughBudget
	t.Cleanup(func() { thoroughBudget = was })
	thoroughBudget.Names = 1
	dir := t.TempDir()
	historyOf(t, dir, "a")
	for hidden, refused := range map[string]bool{filepath.Join(dir, "a"): true, "/elsewhere": false} {
		opts := policy.Options{Layers: []policy.Layer{{Ceiling: policy.Ceiling{Hidden: []policy.Setting{{Value: hidden}}}}}}
		if _, _, err := s.try(t, dir, "true", opts); (err != nil) != refused || refused && !strings.Contains(err.Error(), "not all repositories could be found") {
			t.Errorf("where not all is looked at, and %s is hidden: %v", hidden, err)
		}
	}
}

// learns gives the jail the result that a guest would find for each repository. It fails if
// the jail asks for more.
func learns(t *testing.T, s *stager, dir string, opts policy.Options) {
	t.Helper()
	for range 2 {
		_, _, err := s.try(t, dir, "true", opts)
		unknown, ok := errors.AsType[*policy.HistoryError](err)
		if !ok {
			return
		}
		for _, u := range unknown.Unknown {
			if err := unknown.Learn(u, []byte(`{"names":[".env"],"whole":true,"commits":3}`)); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Fatal("it is not content with what it has learned")
}

// TestHistoriesAreLookedAtAgain: a result is valid while references stay the same, and a
// found secret while the objects do. A person is asked if that is possible.
func TestHistoriesAreLookedAtAgain(t *testing.T) {
	s := newStager(t, Options{})
	if !s.layered() {
		return // nothing is staged there
	}
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "one")
	opts := policy.Options{CanAsk: true}
	// asks expects that a search ("look") or an answer ("ask") has to come first; empty:
	// the command runs.
	asks := func(want, found string) {
		t.Helper()
		_, _, err := s.try(t, dir, "true", opts)
		got := ""
		if e, ok := errors.AsType[*policy.HistoryError](err); ok {
			if got = "ask"; len(e.Unknown) > 0 {
				got = "look"
				if err := e.Learn(e.Unknown[0], []byte(found)); err != nil {
					t.Fatal(err)
				}
			}
		} else if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	clean := `{"names":[],"whole":true}`
	asks("look", clean)
	asks("", "")
	git("commit", "-q", "--allow-empty", "-m", "two")
	asks("look", clean)
	asks("", "")
	git("update-ref", "refs/notes/x", "HEAD")
	asks("look", `{"names":[],"whole":false}`)
	asks("ask", "")
	opts.Rules = []policy.Rule{{Effect: policy.Deny, Tool: "bash", HistoryDir: dir, Source: policy.SourceSession}}
	if out, _ := s.run(t, dir, "git log", opts); !strings.Contains(strings.Join(out.Notes, "\n"), "could be searched") || strings.Contains(strings.Join(out.Notes, "\n"), "the tool git shows") {
		t.Errorf("of what the tool git may not be able to read it says %q", out.Notes) // names by SHA-256, say
	}
	opts.Rules = nil
	git("update-ref", "-d", "refs/notes/x")
	asks("look", `nonsense`)
	asks("ask", "")
	git("tag", "x")
	asks("look", `{"names":[".env"],"whole":true}`)
	asks("ask", "")
	git("tag", "-d", "x")
	asks("ask", "")
	opts.Rules = []policy.Rule{{Effect: policy.Allow, Tool: "bash", HistoryDir: dir, Source: policy.SourceUser}}
	asks("", "")
	opts.Rules[0].Effect, opts.Rules[0].Source = policy.Deny, policy.SourceSession
	asks("", "")
}

// TestRepositoriesElsewhere: the note names the repository that git does not find, and the
// flag that mounts it if it knows the worktree.
func TestRepositoriesElsewhere(t *testing.T) {
	if *tier < 0 {
		return // a command sees all
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("bash", "-c", `set -e
export HOME=/nonexistent GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b main main && cd main && git commit -q --allow-empty -m one && git worktree add -q ../linked && git worktree add -q in/it
git clone -q --bare . ../bare.git && git -C ../bare.git worktree add -q "../of bare" main
git -c protocol.file.allow=always submodule -q add file://$PWD ../main/sub 2>/dev/null || git -c protocol.file.allow=always submodule -q add file://$PWD sub
cd .. && mkdir -p stranger gone keys home/.ssh moved inner && echo "gitdir: $PWD/main/.git" > stranger/.git && echo "gitdir: ../nowhere" > gone/.git
echo "gitdir: $PWD/home/.ssh" > keys/.git && echo "gitdir: $PWD/main/.git/worktrees/linked" > moved/.git && git init -q inner && echo "$PWD/main/.git" > inner/.git/commondir`)
	c.Dir = base
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, c := range map[string]struct{ dir, command, flag, says string }{
		"a linked worktree":               {"linked", "git log", "--mount " + base + "/main/.git", ""},
		"below its top":                   {"linked", "mkdir -p a/b && cd a/b && git status", "--mount " + base + "/main/.git", ""},
		"one in its repository":           {"main/in/it", "git log", "--mount " + base + "/main/.git", ""},
		"one of a bare repository":        {"of bare", "git log", "--mount " + base + "/bare.git", ""},
		"a submodule":                     {"main/sub", "git log", "--mount " + base + "/main/.git/modules/sub", ""},
		"a build that asks git":           {"linked", "echo error obtaining VCS status: exit status 128; exit 1", "--mount " + base + "/main/.git", ""},
		"a file that names another's":     {"stranger", "git log", "", "has no worktree here"},
		"a copy of another's file":        {"moved", "git log", "", "has no worktree here"},
		"a file that names keys":          {"keys", "git log", "", "has no worktree here"},
		"a repository that leads outside": {"inner", "git log", "", ""},
		"nowhere":                         {"gone", "git log", "", "is not there, or "},
		"all of it":                       {"main", "git -C in/it log && git -C sub log && git -C nowhere log", "", ""},
		"a command without git":           {"linked", "exit 1", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out := run(t, filepath.Join(base, c.dir), c.command, policy.Limits{})
			notes := strings.Join(out.Notes, "\n")
			if c.flag == "" && strings.Contains(notes, "--mount") || !strings.Contains(notes, cmp.Or(c.flag, c.says)) || c.flag+c.says+notes == notes && notes != "" {
				t.Errorf("%s, %q", describe(out), notes)
			}
			if c.flag == "" {
				return
			}
			mounts := []policy.Mount{{Host: filepath.Join(base, c.dir), Write: true}, {Host: strings.TrimPrefix(c.flag, "--mount "), Write: true}}
			out, err := testJail(t).Run(t.Context(), grantWith(t, filepath.Join(base, c.dir), "git log", policy.Options{Mounts: mounts}), bash(filepath.Join(base, c.dir), "git log"))
			if err != nil || out.Code == nil || *out.Code != 0 || !strings.Contains(string(out.Stdout), "one") {
				t.Errorf("with %s: %s, %v", c.flag, describe(out), err)
			}
		})
	}
}
