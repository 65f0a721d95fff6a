package policy

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/diff"
	"github.com/stockade-dev/stockade/host/git"
	"github.com/stockade-dev/stockade/host/tool"
)

// playedChat plays staged commands upon a real directory, as host/dispatch does.
type playedChat struct {
	t  *testing.T
	ws string
	p  *Policy
}

func shell(t testing.TB, dir, command string) {
	t.Helper()
	cmd := exec.Command("bash", "-c", "umask 022; "+command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
}

// versions returns all files below a directory as they are now.
func versions(t testing.TB, dir string) map[string]*tool.Version {
	found := map[string]*tool.Version{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		v := &tool.Version{Mode: info.Mode(), Size: info.Size()}
		if v.Mode.IsRegular() {
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			v.Open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
		}
		v.Target, _ = os.Readlink(name)
		found[strings.TrimPrefix(name, dir)] = v
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func changesBetween(t testing.TB, was, is string) (changes []tool.Change) {
	old, now := versions(t, was), versions(t, is)
	change := func(name string, v *tool.Version, ofFile, ofDir tool.ChangeKind) {
		c := tool.Change{Path: was + name, Kind: ofFile, Before: v}
		if v.Mode.IsDir() {
			c.Kind = ofDir
		}
		if ofFile == tool.Created {
			c.Before, c.After = nil, v
		}
		changes = append(changes, c)
	}
	for name, v := range old {
		if n := now[name]; n == nil || n.Mode.Type() != v.Mode.Type() {
			change(name, v, tool.Removed, tool.DirectoryRemoved)
		} else if v.Mode != n.Mode || v.Target != n.Target || sumOf(v) != sumOf(n) {
			changes = append(changes, tool.Change{Path: was + name, Kind: tool.Modified, Before: v, After: n})
		}
	}
	for name, v := range now {
		if o := old[name]; o == nil || o.Mode.Type() != v.Mode.Type() {
			change(name, v, tool.Created, tool.DirectoryCreated)
		}
	}
	slices.SortFunc(changes, func(a, b tool.Change) int { return strings.Compare(a.Path, b.Path) })
	return changes
}

// run carries a command out, if it is allowed or the answer is yes. answer "" is a no.
func (c *playedChat) run(command string, answer Scope) Decision {
	c.t.Helper()
	is, above := c.ws+".after", filepath.Dir(c.ws)
	shell(c.t, above, "rm -rf ws.after; cp -a ws ws.after")
	shell(c.t, is, command)
	changes := changesBetween(c.t, c.ws, is)
	call := byAgent("bash", `{"command":`+quoteJSON(command)+`}`)
	call.Cwd = c.ws
	d := c.p.Decide(call, entry(c.t, "bash", execs), Facts{})
	dirs, err := git.Check(c.t.Context(), changes, c.ws)
	if err != nil {
		d.setOutcome(Deny, Decider{}, err.Error())
		return d
	}
	d, _ = d.DecideShownChanges(c.t.Context(), changes, dirs...)
	d = d.WithDiff(c.t.Context(), changes, dirs...)
	c.t.Logf("%s: %q: %s", d.Effect(), command, d.Reason())
	switch {
	case d.Effect() == Allow:
	case d.Effect() == Deny || answer == "":
		return d
	default:
		d.NoteAnswer(answer)
		if r, err := d.RuleFor(answer); err == nil && answer != ScopeFree {
			c.p.Add(r)
		}
	}
	nothing := &tool.Version{Mode: fs.ModeIrregular}
	for _, x := range diff.DetectRenames(context.Background(), changes) {
		c.p.freedom.Note(x.Kind, x.Path, x.From, sumOf(cmp.Or(x.Before, nothing)), sumOf(cmp.Or(x.After, nothing)))
	}
	shell(c.t, above, "rm -rf ws; mv ws.after ws")
	return d
}

// play makes a repository and plays the lines. A line begins with what happens to a question: "y"
// yes, "s" yes for the session, "b" below a directory, "n" no; "?": there must be a question or a denial; "!": there must be
// none. "@": the person does it. "i": a yes for what git ignores there.
func play(t *testing.T, setup string, free bool, lines ...string) {
	t.Helper()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws += "/ws"
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	shell(t, ws, setup)
	opts := staging()
	opts.Mounts = []Mount{{Host: ws, Write: true}}
	c := &playedChat{t, ws, New(opts)}
	if free {
		c.p.freedom.Open(ws, Provenance{Source: SourceSession})
	}
	for _, line := range lines {
		switch how, command, _ := strings.Cut(line, " "); how {
		case "@":
			shell(t, ws, command)
		case "i":
			c.p.freedom.ignored = map[string]bool{ws + "/" + command: true}
		case "y":
			c.run(command, ScopeOnce)
		case "b":
			c.run(command, ScopeBelow)
		case "s":
			c.run(command, ScopeSession)
		default:
			if d := c.run(command, ""); how != "n" && (d.Effect() == Allow) != (how == "!") {
				t.Errorf("%s: %s, %s", line, d.Effect(), d.Reason())
			}
		}
	}
}

const twoCommits = "git init -q -b main; seq 200 > a.txt; mkdir src; seq 100 > src/b.txt; printf 'dist/\n' > .gitignore; git add .; git commit -qm one; echo 2 >> a.txt; git commit -qam two; echo mine > notes.txt; "

// What is lost is asked about, in whatever way it is lost: with the answer for all changes below
// the directory, and with answers for a command and for what git ignores.
func TestAttacksOnAnswersThatLast(t *testing.T) {
	const (
		submodule = "git init -q -b main ../sub.src; (cd ../sub.src; echo s > s; git add .; git commit -qm s); " + twoCommits + "git -c protocol.file.allow=always submodule -q add ../sub.src sub; git commit -qm sub; cd sub; echo lost > lost; git add .; git commit -qm lost; cd .."
		worktree  = twoCommits + "git worktree add -q -b other wt; cd wt; echo x > x; git add .; git commit -qm x; git checkout -q --detach; echo y >y; git add .; git commit -qm lost; cd .."
		many      = twoCommits + "mkdir many; for i in $(seq 60); do echo $i > many/$i; done; "
		rebase    = twoCommits + "git checkout -q -b f HEAD~1; echo f >> a.txt; git commit -qam f; seq 50 > src/b.txt; git -c rebase.autoStash=true rebase -q main || true; ls .git/rebase-merge/autostash; "
		branches  = twoCommits + "git checkout -q -b b2; echo b2 > b2; git add b2; git commit -qm b2; git checkout -q main; git branch old; echo unsaved >> a.txt; "
		theirs    = "@ echo theirs >> src/b.txt"
	)
	for name, c := range map[string]struct {
		setup string
		free  bool
		lines []string
	}{
		"objects of a submodule":                {submodule, true, []string{"? rm -rf .git/modules/sub/objects", "? rm -rf .git/modules/sub/refs .git/modules/sub/logs", "? rm -f .git/modules/sub/objects/??/*"}},
		"a submodule without HEAD":              {submodule, true, []string{"? mv .git/modules/sub/HEAD .git/modules/sub/HEAD2; rm -rf .git/modules/sub/logs .git/modules/sub/refs/heads"}},
		"reflogs of a worktree":                 {worktree, true, []string{"? rm -rf .git/worktrees/wt/logs", "? mv .git/worktrees/wt/HEAD .git/worktrees/wt/H; rm -rf .git/worktrees/wt/logs", "? mv .git/worktrees/wt/HEAD .git/worktrees/wt/H", "? rm .git/worktrees/wt/index"}},
		"a file that is moved into .git":        {many, true, []string{"? mv notes.txt .git/n.lock", "? mv many .git/objects/many"}},
		"a lock that is a file":                 {twoCommits + "mv notes.txt .git/n.lock", true, []string{"? rm .git/n.lock"}},
		"objects that are none":                 {many + "mv many .git/objects", true, []string{"? rm -rf .git/objects/many"}},
		"a file that is moved to dist":          {twoCommits, true, []string{"i dist", "n mkdir dist; mv notes.txt dist/notes.txt", "? rm dist/notes.txt"}},
		"many files that are moved to dist":     {many, true, []string{"i dist", "n mkdir dist; mv many dist/many", "? rm -rf dist/many"}},
		"a file that is moved to dist with yes": {twoCommits, false, []string{"y mkdir dist; echo > dist/x", "y mv notes.txt dist/notes.txt", "? rm -rf dist/notes.txt"}},
		"a pack of an old kind":                 {twoCommits + "git -c pack.indexVersion=1 repack -qad", true, []string{"? rm -f .git/objects/pack/*"}},
		"a pack":                                {twoCommits + "git repack -qad", true, []string{"? rm -f .git/objects/pack/*"}},
		"a commit that is amended":              {branches, false, []string{"b git commit -q --allow-empty -m x", theirs, "? git commit -q --amend --allow-empty -m gone"}},
		"a branch that is moved by checkout":    {branches, false, []string{"b git checkout -q b2", theirs, "? git checkout -q -B b2 main", "s git checkout -q old", "? git checkout -q -B b2 main"}},
		"a branch that is moved by switch":      {branches, false, []string{"b git switch -q b2", theirs, "? git switch -q -C b2 main"}},
		"unsaved work below src":                {branches, false, []string{"s git checkout -q b2", theirs, "? git checkout -q src"}},
		"unsaved work":                          {branches, false, []string{"s git checkout -q b2", theirs, "? git checkout -q -- ."}},
		"unsaved work on a switch":              {branches, false, []string{"s git switch -q b2", theirs, "? git switch -q --discard-changes main"}},
		"unsaved work in other files":           {branches, false, []string{"s git restore a.txt", theirs, "? git restore ."}},
		"many removed files":                    {many + "git add .; git commit -qm many", false, []string{"s git rm -q a.txt", "? git rm -rq many"}},
		"the kept rule of a directory":          {branches, false, []string{"s git add notes.txt", "! git add -A", "b touch z; git commit -qm x", "! touch z2; echo y > notes.txt; git commit -qam y"}},
		"a staged file, by reset":               {twoCommits, true, []string{"n git add -f notes.txt && rm notes.txt", "? git reset -q"}},
		"a staged file, by its index":           {twoCommits, true, []string{"n git add -f notes.txt && rm notes.txt", "? rm .git/index"}},
		"a staged file, by rm":                  {twoCommits, true, []string{"! git add notes.txt", "n rm notes.txt", "? git rm -q --cached notes.txt"}},
		"a staged file that is moved":           {twoCommits, true, []string{"! git add notes.txt", "! git mv notes.txt n2.txt", "! mv n2.txt n3.txt; git add -A", "! git reset -q"}},
		"a pack that is replaced":               {twoCommits + "git repack -qad; git init -q ../o; (cd ../o; echo o > o; git add .; git commit -qm o; git repack -qad)", true, []string{"? for e in idx pack; do cp -f ../o/.git/objects/pack/*.$e .git/objects/pack/*.$e; done"}},
		"an autostash":                          {rebase, true, []string{"? rm -rf .git/rebase-merge", "? rm -f .git/rebase-merge/autostash", "? git rebase --quit", "? git rebase --abort"}},
		"node_modules/":                         {twoCommits + "echo node_modules/ > .gitignore; git commit -qam i", false, []string{"y mkdir -p node_modules/l; echo 1 > node_modules/l/i.js", "? echo evil > node_modules/l/i.js"}},
		"node_modules/*":                        {twoCommits + "echo 'node_modules/*' > .gitignore; git commit -qam i", false, []string{"y mkdir -p node_modules/l; echo 1 > node_modules/l/i.js", "? echo evil > node_modules/l/i.js"}},
		"**/node_modules/**":                    {twoCommits + "echo '**/node_modules/**' > .gitignore; git commit -qam i", false, []string{"y mkdir -p node_modules/l; echo 1 > node_modules/l/i.js", "? echo evil > node_modules/l/i.js"}},
		"/node_modules/.cache":                  {twoCommits + "echo /node_modules/.cache > .gitignore; git commit -qam i", false, []string{"y mkdir -p node_modules/.cache; echo 1 > node_modules/.cache/i.js", "? echo evil > node_modules/.cache/i.js"}},
		"Node_Modules":                          {twoCommits + "echo '[Nn]ode_[Mm]odules' > .gitignore; git commit -qam i", false, []string{"y mkdir -p Node_Modules/l; echo 1 > Node_Modules/l/i.js", "? echo evil > Node_Modules/l/i.js"}},
		"secrets that git ignores":              {twoCommits + "printf '.env\n' >> .gitignore; git commit -qam i; echo K=1 > .env", false, []string{"y echo K=2 > .env", "? echo K=3 > .env", "y mkdir dist; echo 1 > dist/x", "? echo k > dist/id_rsa", "? echo k > dist/.env", "! echo 2 > dist/x"}},
		"a program that git ignores":            {twoCommits, false, []string{"y mkdir dist; echo 1 > dist/x", "? cp /bin/true dist/lib.so; chmod 644 dist/lib.so"}},
		"a file that the person wrote anew":     {twoCommits, true, []string{"! echo made > plan.md", "@ seq 500 > plan.md", "! echo x >> plan.md", "? rm plan.md"}},
		"a file that is emptied":                {twoCommits + "seq 1000 > notes.txt", true, []string{"? : > notes.txt", "! : > a.txt", "! seq 1001 > notes.txt"}},
		"what git ignores":                      {twoCommits + "mkdir notes; echo 1 > notes/1", true, []string{"? echo notes/ >> .gitignore", "? echo '*' >> .git/info/exclude"}},
		"references in tables":                  {twoCommits + "git config core.repositoryformatversion 1; git config extensions.refstorage reftable; mkdir .git/reftable; echo 0x1-a.ref > .git/reftable/tables.list; rm -rf .git/logs .git/refs/heads; echo 'ref: refs/heads/.invalid' > .git/HEAD; echo none > .git/refs/heads", true, []string{"? echo 0x2-b.ref >> .git/reftable/tables.list; echo REFT2 > .git/reftable/0x2-b.ref", "? echo REFT3 > .git/reftable/0x1-a.ref"}},
		"an ordinary day": {twoCommits, true, []string{"! seq 9 > new.txt", "! git add new.txt", "! git commit -qm new", "! rm src/b.txt", "! git commit -qam rm", "! git checkout -q -b f", "! echo f >> a.txt; git commit -qam f", "! git checkout -q main", "! git merge -q --no-ff -m m f", "! git mv new.txt n2.txt", "! git commit -qm mv",
			"! git revert --no-edit HEAD", "! git switch -q f", "! git switch -q main", "! git add -A; git reset -q", "! mkdir dist; seq 5 > dist/x", "! git rm -q --cached a.txt; git add a.txt", "! git repack -qad", "! git branch z", "! git checkout -q -b r f; echo r > r; git add r; git commit -qm r", "! git tag v1", "! git pack-refs --all", "! mv a.txt src.txt; git add -A; git commit -qm x"}},
	} {
		t.Run(name, func(t *testing.T) { play(t, c.setup, c.free, c.lines...) })
	}
}

// A home directory has no freedom, whatever its name is, nor has a directory that holds it.
func TestNoFreedomForAHome(t *testing.T) {
	for _, home := range []string{"/work", "/work/", "/work/ada", ""} {
		opts := staging()
		opts.Home = home
		f := new(Freedom)
		f.Open("/work", Provenance{Source: SourceSession})
		d := decideFree(t, opts, f, entry(t, "bash", execs), byAgent("bash", `{"command":"make"}`), []tool.Change{fileChange(tool.Created, "/work/a")})
		if (d.Effect() == Allow) != (home == "") {
			t.Errorf("%q: %s, %s", home, d.Effect(), d.Reason())
		}
	}
}

// Plan mode holds for a command that began before it, and an answer to an older question does not
// end it.
func TestPlanModeHoldsForWhatBeganBefore(t *testing.T) {
	some := []tool.Change{fileChange(tool.Modified, "/work/a")}
	for _, rules := range [][]Rule{{rule(t, "bash below /work", SourceUser)}, nil} {
		opts := staging()
		opts.Rules = rules
		f := new(Freedom)
		d := withFreedom(opts, f).Decide(byAgent("bash", `{"command":"make"}`), entry(t, "bash", execs), Facts{})
		if rules == nil {
			d, _ = d.DecideShownChanges(t.Context(), some)
			d = d.WithDiff(t.Context(), some)
		}
		f.SetMode(ModePlan, "/work")
		if rules == nil {
			d.NoteAnswer(ScopeFree)
		} else {
			d, _ = d.DecideShownChanges(t.Context(), some)
		}
		if f.Mode() != ModePlan || d.Effect() == Allow {
			t.Errorf("%d rules: %s, %s, %s", len(rules), f.Mode(), d.Effect(), d.Reason())
		}
	}
}

// What is removed is shown as removed, although git ignores it.
func TestIgnoredFilesThatAreRemovedAreShown(t *testing.T) {
	d := decideFree(t, staging(), new(Freedom), entry(t, "bash", execs), byAgent("bash", `{"command":"make"}`), []tool.Change{fileChange(tool.Removed, "/work/dist/a")})
	d.ignored = map[string]string{"/work/dist/a": "/work/dist"}
	if e := d.WithDiff(t.Context(), []tool.Change{fileChange(tool.Removed, "/work/dist/a")}).diff.Entries; len(e) != 1 || e[0].Care != diff.CareRemoved {
		t.Errorf("it is shown as %+v", e)
	}
}
