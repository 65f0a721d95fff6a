package jail

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/services"
)

// A workspace with special files, and commands that touch them.
func TestSpecialPathsOfAWorkspace(t *testing.T) {
	files := map[string]string{
		".env": "TOKEN=hunter2\n", "deploy/server.key": "hunter2\n", ".git/config": "[core]\n\tbare = false\n", ".git/HEAD": "ref: refs/heads/main\n",
		".git/hooks/pre-commit.sample": "#!/bin/sh\n", "a.txt": "a\n", "sub/b.txt": "b\n", "agent.toml": "# ours\n",
	}
	if *tier < 1 {
		return // nothing is held
	}
	confined := policy.Tier(*tier) >= 2
	for _, tt := range []struct {
		name, command string
		not           string   // in its output
		says          []string // notes
		changes       map[string]string
	}{
		{name: "a secret is not read", command: "cat .env deploy/server.key; cp .env copy; cat copy; grep -r hunter2 .", not: "hunter2", says: []string{"hidden from the command", ".env", "deploy/server.key"}},
		{name: "a hook is not planted", command: "echo x > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; echo; true"},
		{name: "a hook is not changed", command: "echo evil >> .git/hooks/pre-commit.sample; true"},
		{name: "the configuration of git is not changed", command: "git config core.fsmonitor evil; echo evil >> .git/config; rm -f .git/config; mv .git/config x; true"},
		{name: "a repository is not exchanged", command: "mv .git old; mkdir .git; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; true"},
		{name: "what is closed and new is removed again", command: "mkdir -p new/.git/hooks; echo evil > new/.git/hooks/pre-commit; git -C sub init -q .; echo evil > sub/.git/hooks/post-commit; true", says: []string{"removed again"}},
		{name: "what others run is not planted", command: "for f in .gitmodules .envrc .vscode/tasks.json .idea/workspace.xml .mcp.json sub/.vscode/tasks.json .bashrc; do mkdir -p $(dirname $f); echo evil > $f; done; true", says: []string{"removed again"}},
		{name: "our own configuration is not changed", command: "echo evil > agent.toml; echo evil > sub/agent.toml; mkdir -p .stockade && echo x > .stockade/x; true"},
		{name: "other files are changed, and that is said", command: "echo c > c.txt; echo more >> a.txt; rm sub/b.txt", says: []string{"created c.txt", "changed a.txt", "removed sub"},
			changes: map[string]string{"c.txt": "c\n", "a.txt": "a\nmore\n", "sub/b.txt": ""}},
		{name: "git is read and written", command: "git status --short | head -3; git -c user.name=a -c user.email=b add a.txt && git -c user.name=a -c user.email=b commit -qm one && git log --oneline", says: []string{"created .git ("}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range files {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			_ = os.MkdirAll(filepath.Join(dir, ".git/objects"), 0o755)
			_ = os.MkdirAll(filepath.Join(dir, ".git/refs/heads"), 0o755)
			out := run(t, dir, tt.command, policy.Limits{})
			notes := strings.Join(out.Notes, "\n")
			t.Log(describe(out), notes)
			if tt.not != "" && confined && strings.Contains(string(out.Stdout), tt.not) {
				t.Errorf("it shows %q", out.Stdout)
			}
			if confined {
				for _, s := range tt.says {
					if !strings.Contains(notes, s) {
						t.Errorf("nothing says %q", s)
					}
				}
			}
			if strings.Contains(notes, "changed .env") {
				t.Error("what was written just before counts as changed")
			}
			for name, content := range files {
				if name == ".git/HEAD" && !confined {
					continue // what is not closed can be moved
				}
				if want, ok := tt.changes[name]; ok {
					content = want
				}
				got, _ := os.ReadFile(filepath.Join(dir, name))
				if string(got) != content {
					t.Errorf("%s is %q, want %q", name, got, content)
				}
			}
			_ = filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
				rel, _ := filepath.Rel(dir, name)
				data, _ := os.ReadFile(name)
				if strings.Contains(string(data), "evil") && !e.IsDir() {
					t.Errorf("%s holds %q", rel, data)
				}
				return nil
			})
		})
	}
}

// Mounts of a grant, and hidden paths below them.
func TestWhatIsMountedAndHidden(t *testing.T) {
	needHelper(t)
	base := t.TempDir()
	work, other, outside := filepath.Join(base, "work"), filepath.Join(base, "other"), filepath.Join(base, "outside")
	for name, content := range map[string]string{
		work + "/a": "a", work + "/ours/state": "hunter2", work + "/hidden.txt": "hunter2", work + "/fixed/f": "fixed",
		other + "/b": "b", outside + "/c": "hunter2",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"link": outside, "alias": "hidden.txt", "in": "ours"} {
		if err := os.Symlink(target, filepath.Join(work, name)); err != nil {
			t.Fatal(err)
		}
	}
	mounts := []policy.Mount{{Host: work, Write: true}, {Host: other}}
	masked := []string{work + "/ours", work + "/hidden.txt", work + "/none", outside}
	narrow := append(slices.Clone(mounts), policy.Mount{Host: work + "/fixed"})
	confined := policy.Tier(*tier) >= 2
	for _, tt := range []struct {
		name, command string
		opts          policy.Options
		refused       bool // below tier 2
		want          string
	}{
		{"what is mounted", "cat a ../other/b; cat ../outside/c link/c; ls ../outside", policy.Options{Mounts: mounts}, false, "ab"},
		{"what is mounted for reading", "echo x > ../other/b; rm ../other/b; echo x > ../other/n; chmod 777 ../other/b; cat ../other/b", policy.Options{Mounts: mounts}, false, "b"},
		{"what is hidden", "cat ours/state hidden.txt; ls ours; echo x > hidden.txt; rm -rf ours hidden.txt; cat a", policy.Options{Mounts: mounts, Masked: masked}, true, "a"},
		{"what a hidden link leads to", "cat alias hidden.txt in/state ours/state; cat a", policy.Options{Mounts: mounts, Masked: []string{work + "/alias", work + "/in/state"}}, true, "a"},
		{"reading inside of writing", "echo x > fixed/f; rm -rf fixed; mv fixed x; cat fixed/f", policy.Options{Mounts: narrow}, true, "fixed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if *tier < 1 {
				return // nothing is hidden
			}
			g := grantWith(t, work, tt.command, tt.opts)
			out, err := testJail(t).Run(t.Context(), g, bash(work, tt.command))
			if tt.refused && !confined {
				if services.KindOf(err) != services.Denied {
					t.Errorf("it is not refused: %v", err)
				}
				return
			}
			if err != nil || string(out.Stdout) != tt.want {
				t.Errorf("%v, %s", err, describe(out))
			}
			for name, want := range map[string]string{other + "/b": "b", work + "/ours/state": "hunter2", work + "/hidden.txt": "hunter2", work + "/fixed/f": "fixed", outside + "/c": "hunter2"} {
				if got, err := os.ReadFile(name); string(got) != want {
					t.Errorf("%s is %q: %v", name, got, err)
				}
			}
		})
	}
	g := grantWith(t, work, "true", policy.Options{Mounts: []policy.Mount{{Host: "/"}}})
	if _, err := testJail(t).Run(t.Context(), g, bash(work, "true")); *tier > 0 && services.KindOf(err) != services.Denied {
		t.Errorf("with all mounted: %v", err)
	}
}

// ownConfig has credentials. vendoredConfig has some by which a stranger wants to have our
// words redacted.
const (
	ownConfig = "[remote \"origin\"]\n\turl = https://me:hunter2@example.com/x\n\tpushurl = https://ghp_abcdefghij0123@example.com/x\n\tfetch = hunter2\n" +
		"[http \"https://example.com/\"]\n\textraHeader = \"AUTHORIZATION: basic eDpzZXNhbWU\"\n[sendemail]\n\tsmtpPass = open sesame ; mine\n[url \"https://o:p4ss@h.example/\"]\n\tinsteadOf = h:\n" +
		"[http]\n\tsslCertPasswordProtected = true\n[remote \"git\"]\n\turl = ssh://git@example.com/x\n"
	vendoredConfig = "[remote \"origin\"]\n\turl = https://me:function@example.com/x\n"
)

// Credentials of the workspace's repository are not repeated in the output, where git has
// them. All other text stays, and other redactors do not learn them.
func TestCredentialsOfTheRepositoryAreNotRepeated(t *testing.T) {
	if *tier < 1 {
		return
	}
	dir := t.TempDir()
	for name, text := range map[string]string{".git/config": ownConfig, "vendor/x/.git/config": vendoredConfig} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	all := []string{"hunter2", "ghp_", "eDpzZXNhbWU", "sesame", "p4ss"}
	for command, c := range map[string]struct{ has, not []string }{
		"cat .git/config": {[]string{
			"url = https://me:[redacted]@example.com/x\n", "pushurl = https://[redacted]@example.com/x\n", "fetch = hunter2\n", "\"[redacted]\"\n",
			"smtpPass = [redacted] ; mine\n", "[url \"https://o:[redacted]@h.example/\"]", "sslCertPasswordProtected = true\n", "ssh://git@example.com/x\n",
		}, []string{"me:hunter2", "ghp_", "eDpzZXNhbWU", "sesame", "p4ss"}},
		"git config --file .git/config --list | grep -v fetch":                    {[]string{"http.https://example.com/.extraheader=[redacted]\n", "sendemail.smtppass=[redacted]\n"}, all},
		"git config --file .git/config --list -z | grep -av fetch":                {nil, []string{"eDpzZXNhbWU", "sesame", "p4ss", "ghp_"}},
		"git config --file .git/config --get-regexp 'pass|header$'":               {[]string{"sendemail.smtppass [redacted]\n"}, all},
		"git config --file .git/config http.https://example.com/.extraheader >&2": {[]string{"AUTHORIZATION: [redacted]\n"}, all},
		"printf 'https://me:hun' && sleep 0.1 && printf 'ter2@example.com/y'":     {[]string{"https://me:[redacted]@example.com/y"}, all},
		// The same text elsewhere.
		"echo hunter2 https://me:hunter2@example.org/x open sesame": {[]string{"hunter2 https://me:hunter2@example.org/x open sesame\n"}, nil},
		"cat vendor/x/.git/config; echo function":                   {[]string{"https://me:function@example.com/x\nfunction\n"}, nil},
		// This does not stop a command that wants to show it.
		"rev .git/config": {[]string{"2retnuh"}, nil},
	} {
		known := new(redact.Redactor)
		out, err := newJail(t, Options{Redact: known}).Run(t.Context(), grantFor(t, dir, command, policy.Limits{}), bash(dir, command))
		text := string(out.Stdout) + string(out.Stderr)
		if err != nil {
			t.Errorf("%s: %v, %s", command, err, describe(out))
		}
		for _, has := range c.has {
			if !strings.Contains(text, has) {
				t.Errorf("%s: %q is not in\n%s", command, has, text)
			}
		}
		for _, not := range c.not {
			if strings.Contains(text, not) {
				t.Errorf("%s: %q is in\n%s", command, not, text)
			}
		}
		if known.Finds([]byte(ownConfig + vendoredConfig)) {
			t.Errorf("%s: what a file of the workspace holds is a secret everywhere", command)
		}
	}
}

// A configuration of any size takes little work.
func TestCredentialsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, config := range map[string]string{
		"a long password": "url = https://a:" + long + "@h", "a long key": "[a]\ntoken = " + long,
		"many URLs": strings.Repeat("url = https://a:b@h\n", 50_000), "many keys": strings.Repeat("[a] token = abcd\n", 50_000),
	} {
		sum := 0
		for _, p := range credentialsIn(config) {
			sum += len(p.Before) + len(p.Value) + len(p.After)
		}
		if sum > maxCredentials {
			t.Errorf("%s: %d bytes are known", name, sum)
		}
	}
}

// Nobody writes to it, so it would be read for ever.
func TestANamedPipeInPlaceOfAConfiguration(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/.git", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(dir+"/.git/config", 0o644); err != nil {
		t.Fatal(err)
	}
	j := newJail(t, Options{Redact: new(redact.Redactor)})
	out, err := j.Run(t.Context(), grantFor(t, dir, "echo done", policy.Limits{}), bash(dir, "echo done"))
	if err != nil || string(out.Stdout) != "done\n" {
		t.Errorf("%v, %s", err, describe(out))
	}
}

// A file that comes to look like a secret ends a running command, unless the
// command has made it.
func TestASecretThatAppears(t *testing.T) {
	if policy.Tier(*tier) < policy.MaxTier {
		return // nothing is staged
	}
	defer func(d time.Duration) { rescanInterval = d }(rescanInterval)
	rescanInterval = 10 * time.Millisecond
	const looks = "echo ready; for i in $(seq 1000); do cat .env; printf '\\r'; sleep 0.03; done 2>&1; echo end"
	for name, c := range map[string]struct {
		standing, command string
		theirs            string // what somebody else makes when the command is ready
		ended             bool
	}{
		"a secret":                 {"unasked", looks, ".env", true},
		"where nothing can change": {"no change", looks, ".env", true},
		"by a directory":           {"unasked", looks, "sub/.aws/credentials", true},
		"no secret":                {"unasked", "echo ready; sleep 0.3", "other", false},
		"its own":                  {"unasked", "echo ready; echo x >.env; sleep 0.2; cat .env", "", false},
		"its own at once":          {"direct", "echo ready; echo x >.env; sleep 0.2; cat .env", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := newStager(t, Options{}), t.TempDir()
			s.show = func(text string) {
				if c.theirs != "" && strings.Contains(text, "ready") {
					files(t, dir, map[string]string{c.theirs: "hunter2"})
				}
			}
			out := s.as(t, c.standing, dir, c.command, true)
			s.show = nil
			says := strings.Contains(strings.Join(out.Notes, "\n"), " has come to look like a secret")
			if ended := out.Signal != nil; ended != c.ended || says != c.ended || c.ended && len(out.Stdout)+len(out.RawOutput) > 0 {
				t.Errorf("%s, %q", describe(out), out.Notes)
			}
			if out := s.as(t, c.standing, dir, "cat "+c.theirs+" .env", true); c.ended && strings.Contains(string(out.Stdout), "hunter2") {
				t.Errorf("the next command reads it: %s", describe(out))
			}
		})
	}
}
