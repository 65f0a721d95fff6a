package jail

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/match"
)

func init() {
	// setxattr NAME ATTRIBUTE VALUE
	programs["setxattr"] = func(args []string) {
		if err := unix.Lsetxattr(args[0], args[1], []byte(args[2]), 0); err != nil {
			fmt.Println(err)
		}
	}
}

// stagedAttacks are commands that run on a stage, with a rule that allows all of
// bash. What they begin with is a repository with f.txt, d/x, d/y and d/.env, and
// what before makes. Beside it is a directory victim. SELF is this program.
var stagedAttacks = []struct {
	name, before, command string
	// made, or "asks" or "denies" with a part of the reason. What is asked about is
	// then made, too.
	want string
	host map[string]string // what is there in the end: a part of how it is described, "" if nothing is
	says string            // a part of a note
	all  bool              // it is much like another one, and runs with -all only
}{
	{name: "nothing", command: `cat f.txt; find .; git status`, want: "made"},
	{name: "a file", command: `echo new >f.txt; mkdir -p d/e; echo x >d/e/z`, want: "made", host: map[string]string{"f.txt": "new", "d/e/z": "x"}},

	// Bits and types.
	{name: "set-id bits", command: `cp /bin/true s; chmod 6755 s; mkdir g; chmod 2777 g; chmod 1777 d; chmod 4755 f.txt; install -m 4755 /bin/true i`, want: "made",
		host: map[string]string{"s": "-rwxr-xr-x", "g": "drwxr-xr-x", "d": "drwxrwxrwx", "f.txt": "-rw-r--r--"}},
	{name: "a set-id bit of the directory above", before: `chmod 2755 d`, command: `mkdir d/n; echo z >d/n/z; echo z >d/z`, want: "made", host: map[string]string{"d/n": "drwxr-xr-x", "d/z": "z"}, all: true},
	{name: "a FIFO", command: `mkfifo p d/p; rm f.txt; mkfifo f.txt; rm -r d/y; mkfifo d/y`, want: "made", host: map[string]string{"p": "", "d/p": "", "f.txt": "", "d/y": ""}, says: "p"},
	{name: "a FIFO in a new directory", command: `mkdir -p n/m; mkfifo n/m/p; echo x >n/m/q`, want: "made", host: map[string]string{"n/m/p": "", "n/m/q": "x"}, says: "n/m/p", all: true},
	{name: "devices", command: `mknod b b 8 0; mknod c c 1 3; mknod w c 0 0; mknod d/x c 0 0; true`, want: "made", host: map[string]string{"b": "", "c": "", "w": "", "d/x": "x"}},

	// Attributes of overlays, set by the command itself.
	{name: "an opaque directory", command: `SELF setxattr d user.overlay.opaque y; echo z >d/z`, want: "made", host: map[string]string{"d/x": "x", "d/y": "y", "d/z": "z"}},
	{name: "a redirect", command: `mkdir r; SELF setxattr r user.overlay.redirect /d; SELF setxattr d user.overlay.redirect ../victim; echo z >r/z`, want: "made", host: map[string]string{"r/x": "", "r/z": "z"}},
	{name: "a metacopy", command: `echo mine >m; SELF setxattr m user.overlay.metacopy ""; SELF setxattr m user.overlay.redirect /../victim/secret; SELF setxattr f.txt user.overlay.metacopy ""`, want: "made", host: map[string]string{"m": "mine", "f.txt": "content"}},
	{name: "a whiteout", command: `: >w; SELF setxattr w user.overlay.whiteout y; SELF setxattr d/x user.overlay.whiteout y; SELF setxattr d user.overlay.opaque x; true`, want: "made", host: map[string]string{"w": "-rw", "d/x": "x"}},
	{name: "a hostile workspace", before: `SELF setxattr d user.overlay.opaque y; SELF setxattr d user.overlay.redirect /../victim; SELF setxattr f.txt user.overlay.metacopy ""`, command: `echo z >d/z; ls d; cat f.txt`, want: "made"},

	// Links that lead out.
	{name: "a link out", command: `ln -s ../victim l`, want: "asks", host: map[string]string{"l": "../victim"}},
	{name: "a link to the root", command: `ln -s / l`, want: "asks", all: true},
	{name: "a link out in a new directory", command: `mkdir -p n/m; ln -s ../../../victim n/m/l`, want: "asks", all: true},
	{name: "a link inside", command: `ln -s d l; ln -s ../f.txt d/l; ln -s none broken`, want: "made"},
	{name: "a link out by way of a link", command: `ln -s ../.. d/l; mkdir d/e; ln -s . d/e/up; ln -s up/../../../victim d/e/l; ln -s e/up/../../../victim d/q`, want: "asks"},
	{name: "a link out by way of a link that is there", before: `mkdir -p a/b; ln -s ../.. a/b/top`, command: `ln -s top/../victim a/b/l`, want: "asks", all: true},
	{name: "a directory becomes a link out", command: `rm -r d/x d/y; mv d e || true; ln -s ../victim d2; echo evil >d2/secret; ln -sfn ../victim d; echo evil >d/secret; true`, want: "asks"},
	{name: "writing through a link that is there", before: `ln -s ../victim l; ln -s ../victim/secret s`, command: `echo evil >l/secret; echo evil >s; echo evil >l/new; rm -f l/secret; rm -r l/; true`, want: "made"},

	// What git runs.
	{name: "a hook", command: `echo evil >.git/hooks/pre-commit`, want: "made", host: map[string]string{".git/hooks/pre-commit": ""}},
	{name: "a hook where there are none", before: `rm -r .git/hooks`, command: `mkdir .git/hooks; echo evil >.git/hooks/pre-commit`, want: "denies hooks"},
	{name: "hooks by a link", before: `rm -r .git/hooks`, command: `mkdir h; echo evil >h/pre-commit; ln -s ../h .git/hooks`, want: "denies hooks", all: true},
	{name: "a hook by a link", before: `rm -r .git/hooks`, command: `mkdir .git/hooks; ln -s ../../f.txt .git/hooks/pre-commit`, want: "denies hooks", all: true},
	{name: "a hook with another name first", before: `rm -r .git/hooks`, command: `mkdir .git/hooks; echo evil >.git/hooks/x.sample; mv .git/hooks/x.sample .git/hooks/pre-commit`, want: "denies hooks", all: true},
	{name: "a repository that is moved in", command: `mkdir -p sub/x/hooks; echo evil >sub/x/hooks/pre-commit; mv sub/x sub/.git`, want: "denies hooks"},
	{name: "a repository in place of another", command: `cp -r .git x; echo evil >x/hooks/pre-commit; mv .git y; mv x .git; true`, want: "made", host: map[string]string{".git/hooks/pre-commit": "", ".git/x/hooks/pre-commit": "evil"}},
	{name: "upper case", command: `mkdir -p sub/.GIT/Hooks; echo evil >sub/.GIT/Hooks/pre-commit`, want: "denies"},
	{name: "upper case beside the other", command: `mkdir -p .GIT/hooks; echo evil >.GIT/hooks/pre-commit`, want: "denies", all: true},
	{name: "a template with a hook", command: `mkdir -p t/hooks; echo evil >t/hooks/post-checkout; git init -q --template=t sub`, want: "denies hooks"},
	{name: "a new repository", command: `git init -q sub; cd sub; echo x >x; git add x; git -c user.name=a -c user.email=b commit -qm one`, want: "made", host: map[string]string{"sub/.git/HEAD": "refs"}},
	{name: "a commit", command: `echo new >f.txt; git -c user.name=a -c user.email=b commit -qam two; git tag t; git branch b`, want: "made"},
	{name: "core.hooksPath", command: `git config core.hooksPath ../h`, want: "denies core.hookspath", all: true},
	{name: "core.fsmonitor", command: `git config core.fsmonitor evil`, want: "denies core.fsmonitor"},
	{name: "alias", command: `git config alias.st '!evil'`, want: "denies alias", all: true},
	{name: "filter", command: `git config filter.x.clean evil`, want: "denies filter", all: true},
	{name: "uploadpack", command: `git config remote.origin.uploadpack evil`, want: "denies remote", all: true},
	{name: "insteadOf", command: `git config url.ext::evil.insteadOf https://`, want: "denies url", all: true},
	{name: "include", command: `git config include.path ../evil`, want: "denies include", all: true},
	{name: "a url that runs something", command: `git config remote.origin.url 'ext::sh -c evil'`, want: "denies remote"},
	{name: "a url", command: `git config remote.origin.url https://example.org/x`, want: "asks remote.origin.url", host: map[string]string{".git/config": "example.org"}},
	{name: "core.fsmonitor by another name of the file", command: `ln .git/config c && printf '[core]\nfsmonitor = evil\n' >>c`, want: "denies configuration"},
	{name: "another name of a configuration", command: `git init -q sub; ln sub/.git/config c`, want: "denies configuration", all: true},
	{name: "core.fsmonitor by a link", command: `cp .git/config c; printf '[core]\nfsmonitor = evil\n' >>c; ln -sf ../c .git/config`, want: "denies configuration"},
	{name: "core.fsmonitor of a new repository", command: `git init -q sub; git -C sub config core.fsmonitor evil`, want: "denies configuration", all: true},
	{name: "core.fsmonitor by a rename", command: `cp .git/config c; printf '[core]\nfsmonitor = evil\n' >>c; mv c .git/config`, want: "denies fsmonitor", all: true},
	{name: "no configuration", command: `rm .git/config`, want: "denies configuration"},
	{name: "a file that leads to a repository", command: `mkdir x; echo "gitdir: ../x" >sub.git; mkdir sub; echo "gitdir: ../x" >sub/.git`, want: "denies"},
	{name: "a link that leads to a repository", command: `mkdir sub; ln -s ../d sub/.git`, want: "denies", all: true},
	{name: "the configuration of a worktree", command: `echo evil >.git/config.worktree`, want: "denies"},
	{name: "a worktree", command: `git worktree add -q ../wt 2>&1 || git worktree add -q wt`, want: "denies"},
	{name: "commondir", command: `echo ../x >.git/commondir`, want: "denies", all: true},
	{name: "hooks of a submodule", command: `mkdir -p .git/modules/m/hooks; echo evil >.git/modules/m/hooks/post-checkout`, want: "denies"},
	{name: "submodules by a link", command: `mkdir -p m/m/hooks; echo evil >m/m/hooks/post-checkout; ln -s ../m .git/modules`, want: "denies", all: true},
	{name: "attributes", command: `mkdir -p .git/info; echo '* filter=x' >.git/info/attributes`, want: "denies"},
	{name: "attributes by a link", before: `rmdir .git/info`, command: `mkdir i; echo '* filter=x' >i/attributes; ln -s ../i .git/info`, want: "denies", all: true},
	{name: "a rebase", command: `mkdir .git/rebase-merge; echo 'exec evil' >.git/rebase-merge/git-rebase-todo`, want: "asks rebase"},
	{name: "submodules", command: `echo x >.gitmodules`, want: "denies"},
	{name: "a bare repository", command: `git init -q --bare b`, want: "asks HEAD"},
	{name: "hooks of a bare repository", before: `git init -q --bare --template= b`, command: `mkdir b/hooks; echo evil >b/hooks/post-update`, want: "denies"},
	{name: "hooks of a bare repository that has some", before: `git init -q --bare b`, command: `echo evil >b/hooks/post-update`, want: "made", host: map[string]string{"b/hooks/post-update": ""}, all: true},
	{name: "the configuration of a bare repository", before: `git init -q --bare b`, command: `git -C b config core.fsmonitor evil`, want: "denies"},

	// Ours, and what others run.
	{name: "our configuration", command: `echo evil >agent.toml`, want: "denies agent.toml"},
	{name: "our configuration, in the end", command: `echo evil >x; mv x agent.toml`, want: "denies agent.toml", all: true},
	{name: "our configuration, in a directory", command: `mkdir -p n/.stockade; echo evil >n/.stockade/x`, want: "denies", all: true},
	{name: "our configuration by a link", command: `echo evil >x; ln -s x agent.toml`, want: "denies agent.toml"},
	{name: "our configuration by another name of it", before: `echo ours >agent.toml`, command: `ln agent.toml x; echo evil >x; mv x agent.toml; true`, want: "made", host: map[string]string{"agent.toml": "ours"}},
	{name: "an editor", command: `mkdir .vscode; echo evil >.vscode/tasks.json`, want: "asks .vscode"},
	{name: "an editor by a link", command: `mkdir v; echo evil >v/tasks.json; ln -s v .vscode`, want: "asks .vscode", all: true},
	{name: "a package manager by a link", command: `mkdir c; echo evil >c/config.toml; ln -s c .cargo`, want: "asks .cargo", all: true},
	{name: "a package manager by a rename", command: `mkdir c; echo evil >c/config.toml; mv c .cargo`, want: "asks .cargo"},

	// Secrets.
	{name: "a hidden secret is removed", command: `rm -rf d; true`, want: "made", host: map[string]string{"d/.env": "hunter2", "d/x": ""}},
	{name: "a hidden secret is moved", command: `mv d e; rm -f d/.env; perl -e 'rename "d","e"'; true`, want: "made", host: map[string]string{"d/.env": "hunter2", "e/.env": ""}},
	{name: "a hidden secret is linked", command: `ln d/.env e; cp -l d/.env e; cat e; true`, want: "made", host: map[string]string{"d/.env": "hunter2", "e": ""}, all: true},

	// What is outside of it.
	{name: "a FIFO that is there", before: `mkfifo pipe`, command: `echo evil >pipe & cat pipe; wait`, want: "made"},
	{name: "what goes on afterwards", command: `setsid bash -c 'while :; do echo MARK >>late; done' & (setsid sleep MARK &); until [ -s late ]; do :; done`, want: "made"},

	// Names and sizes.
	{name: "odd names", command: `mkdir $'d\n'; touch $'new\nline' $'in\xffvalid' $'\e[2J' $'d\n'/$(printf %0255d 0) -- -rf`, want: "made",
		host: map[string]string{"new\nline": "-", "in\xffvalid": "-", "d\n/" + strings.Repeat("0", 255): "-"}},
	{name: "nobody's directories", command: `mkdir -p n/m/o; echo x >n/m/o/p; chmod 000 n/m/o/p n/m/o n/m n; chmod 000 d`, want: "made", host: map[string]string{"n": "d---------", "d": "d---------"}},
	{name: "a deep directory", command: `mkdir -p $(printf "d/%.0s" {1..300})`, want: "fails too long"},
	{name: "a deep directory that is there", before: `cd d; mkdir -p $(printf "d/%.0s" {1..300}); echo x >d/d/x`, command: `rm -r d/d`, want: "fails too long"},
}

func TestAttacksOfStagedCommands(t *testing.T) {
	if *tier < 2 || *noRoot {
		return
	}
	s := newStager(t, Options{})
	base := shortDir(t)
	self := filepath.Join(base, "bin", "self")
	plainly := func(t *testing.T, dir, command string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "bash", "-ec", command)
		c.Dir, c.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	plainly(t, base, `mkdir -p bin first/victim first/ws/d; cp /proc/$PPID/exe bin/self; echo secret >first/victim/secret; cd first/ws
git init -q --template=; mkdir .git/hooks .git/info; echo echo sample >.git/hooks/a.sample; echo content >f.txt; echo x >d/x; echo y >d/y; git add .; git -c user.name=a -c user.email=b commit -qm one; echo hunter2 >d/.env`)
	for i, tt := range stagedAttacks {
		if tt.all && !*all && os.Getenv(again) == "" {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(base, strconv.Itoa(i))
			work, victim := filepath.Join(dir, "ws"), filepath.Join(dir, "victim")
			plainly(t, base, "cp -a first "+dir+"; cd "+work+"\n"+strings.ReplaceAll(tt.before, "SELF", self))
			defer removeTree(dir)
			before, outside := wholeTree(t, work), wholeTree(t, victim)
			// Whoever reads from a FIFO of the workspace.
			reader, err := os.OpenFile(filepath.Join(work, "pipe"), os.O_RDWR|unix.O_NONBLOCK, 0)
			if err == nil {
				defer reader.Close()
				defer func() {
					if err := reader.SetReadDeadline(time.Now()); err != nil {
						t.Error(err)
					}
					if n, err := reader.Read(make([]byte, 10)); n > 0 {
						t.Errorf("it has said something to others: %d bytes, %v", n, err)
					}
				}()
			}
			mark := newMark()
			command := strings.NewReplacer("SELF", self, "MARK", mark).Replace(tt.command)
			opts := policy.Options{Mounts: []policy.Mount{{Host: work, Write: true}, {Host: filepath.Dir(self)}}, WhyNotStaged: s.WhyNotStaged}
			ended, set, err := s.try(t, work, command, opts)
			if left := marked(t, mark); len(left) > 0 {
				t.Errorf("there are still %v", left)
			}
			want, why, _ := strings.Cut(tt.want, " ")
			if diff := cmp.Diff(before, wholeTree(t, work)); diff != "" {
				t.Errorf("it has changed something before that was decided:\n%s", diff)
			}
			if (err != nil) != (want == "fails") || err != nil && !strings.Contains(err.Error(), why) {
				t.Fatalf("want %s: %v", tt.want, err)
			}
			if err != nil {
				return
			}
			t.Log(describe(ended), ended.Notes)
			if out := string(ended.Stdout); strings.Contains(out, "hunter2") || strings.Contains(out, "secret\n") {
				t.Errorf("it has read %q", out)
			}
			if *tier == 2 && !strings.Contains(strings.Join(ended.Notes, "\n"), tt.says) { // Landlock lets nobody make them
				t.Errorf("it says %q", ended.Notes)
			}
			changes, err := set.Changes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			exactly, err := match.NewCondition(match.Equal, "command", command, false)
			if err != nil {
				t.Fatal(err)
			}
			opts.Rules = []policy.Rule{{Effect: policy.Allow, Tool: "bash", Where: []match.Condition{exactly}, Source: policy.SourceFlag}}
			d, _ := decisionOf(t, work, map[string]any{"command": command}, opts).DecideChanges(changes)
			verdict := map[policy.Effect]string{policy.Allow: "made", policy.Ask: "asks", policy.Deny: "denies"}[d.Effect()]
			if verdict != want || !strings.Contains(d.Reason(), why) {
				var did []string
				for _, c := range changes {
					did = append(did, fmt.Sprintf("%s %q", c.Kind, strings.TrimPrefix(c.Path, work)))
				}
				t.Fatalf("%s, want %s: %s; %v", verdict, tt.want, d.Reason(), did)
			}
			if verdict == "denies" {
				return
			}
			if err := set.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			after := wholeTree(t, work)
			for name, want := range tt.host {
				if got, there := after["/"+name]; there != (want != "") || !strings.Contains(got, want) {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			if diff := cmp.Diff(outside, wholeTree(t, victim)); diff != "" {
				t.Errorf("it has changed what is outside:\n%s", diff)
			}
			for name, what := range after {
				if mode, _, _ := strings.Cut(what, " "); before[name] != what && strings.ContainsAny(mode, "ugtpSDc") {
					t.Errorf("%s is %s", name, what)
				}
				attributes := make([]byte, 1000)
				n, err := unix.Llistxattr(work+name, attributes)
				if err == nil && strings.Contains(string(attributes[:n]), "user.overlay") && tt.before == "" {
					t.Errorf("%s has %q", name, attributes[:n])
				}
			}
		})
	}
}
