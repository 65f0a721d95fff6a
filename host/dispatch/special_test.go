package dispatch

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

func allowing(t *testing.T, text string) policy.Rule {
	t.Helper()
	r, err := policy.ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	r.Source = policy.SourceFlag
	return r
}

// A change of a special path is decided when it is known, even if the call was allowed
// before. A closed path is not even asked about.
func TestChangesOfSpecialPaths(t *testing.T) {
	renamed := func(from, to string, mode fs.FileMode) tool.Change {
		v := *aFile(to, "x").After
		v.Mode = mode
		return tool.Change{Path: "/work/" + to, From: "/work/" + from, Kind: tool.Renamed, Before: &v, After: &v}
	}
	directory := tool.Change{Path: "/work/.vscode", Kind: tool.DirectoryCreated, After: &tool.Version{Mode: fs.ModeDir | 0o755}}
	editor := aFile(".vscode/settings.json", "x")
	gone := tool.Change{Path: "/work/.bashrc", Kind: tool.Removed, Before: aFile("", "x").After}
	for name, c := range map[string]struct {
		changes []tool.Change
		rule    string
		asked   bool
		denied  bool
	}{
		"a hook":                         {changes: []tool.Change{aFile(".git/hooks/pre-commit", "x")}, rule: "file_write", denied: true},
		"a hook, named":                  {changes: []tool.Change{aFile(".git/hooks/x", "x")}, rule: "file_write(path=.git/hooks/x)", denied: true},
		"a hook, not allowed":            {changes: []tool.Change{aFile(".Git/hooks/x", "x")}, denied: true},
		"a hook among others":            {changes: []tool.Change{aFile("a", "x"), editor, aFile("agent.toml", "x")}, rule: "file_write", denied: true},
		"from a hook":                    {changes: []tool.Change{renamed(".git/config", "x", 0o644)}, rule: "file_write", denied: true},
		"a directory above":              {changes: []tool.Change{renamed("x", ".git/modules/m", fs.ModeDir)}, rule: "file_write", denied: true},
		"an editor":                      {changes: []tool.Change{directory, editor}, rule: "file_write", asked: true},
		"an editor, another is named":    {changes: []tool.Change{editor}, rule: "file_write(path=.vscode/tasks.json)", asked: true},
		"an editor, named":               {changes: []tool.Change{directory, editor}, rule: "file_write(path=.vscode/settings.json)"},
		"an editor, named in full":       {changes: []tool.Change{editor}, rule: "file_write(path=/work/.vscode/settings.json)"},
		"an editor, not allowed":         {changes: []tool.Change{editor}, asked: true},
		"a directory alone":              {changes: []tool.Change{directory}, rule: "file_write", asked: true},
		"a directory that leads to some": {changes: []tool.Change{renamed(".config", "x", fs.ModeDir)}, rule: "file_write", asked: true},
		"a file of that name":            {changes: []tool.Change{renamed(".config", "x", 0o644)}, rule: "file_write"},
		"removed":                        {changes: []tool.Change{gone}, rule: "file_write", asked: true},
		"nothing special":                {changes: []tool.Change{aFile("a", "x"), aFile(".env", "x")}, rule: "file_write"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := policy.Options{Project: "/work"}
			path := "a"
			if c.rule != "" {
				r := allowing(t, c.rule)
				opts.Rules = []policy.Rule{r}
				if _, named, ok := strings.Cut(strings.TrimSuffix(c.rule, ")"), "path="); ok {
					path = named
				}
			}
			for _, allow := range []bool{true, false} {
				w := newWorld(t, opts)
				w.changes = c.changes
				if c.asked || c.rule == "" && !c.denied {
					w.answer = func(_ context.Context, q policy.Question) (policy.Answer, error) {
						if c.asked && (len(q.Scopes) != 1 || !strings.Contains(q.Warning, "it changes \"/work/.") || q.Changes == nil) {
							t.Errorf("the question is %+v", q)
						}
						// More than once is no answer here.
						return policy.Answer{Question: q.ID, Allow: allow, Scope: policy.ScopeAlways, By: "terminal"}, nil
					}
				}
				r, err := w.call(t.Context(), aCall("file_write", `{"path":"`+path+`"}`))
				if err != nil {
					t.Fatal(err)
				}
				if asked := w.did("ask"); asked != c.asked {
					t.Errorf("asked: %v", asked)
				}
				made := !c.denied && (allow || !c.asked)
				if w.did("commit") != made || (r.Err == nil) != made {
					t.Errorf("made: %v, %v", w.did("commit"), r.Err)
				}
				if r.Err != nil && (r.Err.Code != tool.CodeDenied || !strings.Contains(r.Err.Message, "it changes")) {
					t.Errorf("%+v", r.Err)
				}
				if n := len(w.policy.Rules()); n != len(opts.Rules) {
					t.Errorf("%d rules are remembered", n-len(opts.Rules))
				}
			}
		})
	}
}

// A call that names a file which looks like a secret, or a link to one, asks. Its grant
// is for that file alone.
func TestCallsThatNameSecretFiles(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ws/.env", "ws/a", "ws/id_rsa", "out/.env"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"ws/README.md": ".env", "ws/d": ".", "ws/out": "../out/.env"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	ws := filepath.Join(dir, "ws")
	for name, c := range map[string]struct {
		path, rule string
		asked      bool
		flag       string
	}{
		"plain":             {path: "a"},
		"missing":           {path: "no/.env"},
		"outside":           {path: "../out/.env"},
		"outside by a link": {path: "out"},
		"secret":            {path: ".env", asked: true, flag: "file_read(path=.env)"},
		"a key":             {path: "id_rsa", asked: true, flag: "file_read(path=id_rsa)"},
		"in full":           {path: ws + "/.env", asked: true, flag: "file_read(path=" + ws + "/.env)"},
		"by a link":         {path: "README.md", asked: true},
		"by a directory":    {path: "d/.env", asked: true},
		"tool allowed":      {path: ".env", rule: "file_read", asked: true, flag: "file_read(path=.env)"},
		"link allowed":      {path: "README.md", rule: "file_read(path=README.md)", asked: true},
		"another allowed":   {path: ".env", rule: "file_read(path=id_rsa)", asked: true, flag: "file_read(path=.env)"},
		"a pattern allowed": {path: ".env", rule: "file_read(path:path=/**)", asked: true, flag: "file_read(path=.env)"},
		"itself allowed":    {path: ".env", rule: "file_read(path=.env)"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := policy.Options{Mounts: []policy.Mount{{Host: ws}}, Project: ws}
			if c.rule != "" {
				opts.Rules = []policy.Rule{allowing(t, c.rule)}
			}
			w := newWorld(t, opts)
			if c.asked {
				w.answer = func(_ context.Context, q policy.Question) (policy.Answer, error) {
					if len(q.Scopes) != 1 || !strings.Contains(q.Warning, "looks like a secret") || q.AllowRule != c.flag {
						t.Errorf("the question is %+v", q)
					}
					return policy.Answer{Question: q.ID, Allow: true, Scope: policy.ScopeSession}, nil
				}
			}
			open := ""
			w.run = func(_ context.Context, g policy.Grant, _ *tool.Module, _ tool.Call, _ func(tool.Progress)) (tool.Result, error) {
				for _, name := range []string{".env", "id_rsa", "d/.env"} {
					if _, secret := g.OpenedSecrets().SpecialForRead(filepath.ToSlash(filepath.Join(ws, name))); !secret {
						open += name
					}
				}
				return tool.Result{Output: tool.Text("done")}, nil
			}
			call := aCall("file_read", `{"path":"`+c.path+`"}`)
			call.Cwd = ws
			r, err := w.call(t.Context(), call)
			refused := strings.HasPrefix(name, "outside") // before it runs
			if err != nil || (r.Err != nil) != refused || w.did("run") == refused || w.did("ask") != c.asked {
				t.Errorf("asked %v: %+v, %v", w.did("ask"), r.Err, err)
			}
			want := ""
			if c.asked || name == "itself allowed" {
				want = ".env"
				if c.path == "id_rsa" {
					want = "id_rsa"
				}
			}
			if diff := cmp.Diff(want, open); diff != "" {
				t.Errorf("what the grant opens: %s", diff)
			}
			if len(w.policy.Rules()) != len(opts.Rules) {
				t.Error("the answer is remembered")
			}
		})
	}
}

// The result of a call that has read a secret is told only after an answer, even if the
// call fails or changes nothing.
func TestATriedCallTellsNoSecret(t *testing.T) {
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(ws, ".env"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, rules := range [][]policy.Rule{nil, {allowing(t, "file_write")}} {
		for _, fails := range []bool{false, true} {
			w := newWorld(t, policy.Options{Mounts: []policy.Mount{{Host: ws, Write: true}}, Rules: rules})
			w.changes, w.answer = nil, no
			w.run = func(_ context.Context, g policy.Grant, _ *tool.Module, _ tool.Call, report func(tool.Progress)) (tool.Result, error) {
				report(tool.Progress{Level: "info", Message: "swordfish"})
				if !g.Rehearsal() {
					t.Error("it is not a rehearsal")
				}
				if fails {
					return tool.Failed(tool.CodeFailed, tool.NotFound, "not in swordfish"), nil
				}
				return tool.Result{Output: tool.Text("swordfish")}, nil
			}
			call := aCall("file_write", `{"path":".env"}`)
			call.Cwd = ws
			r, err := w.call(t.Context(), call)
			if err != nil || !w.did("ask") || r.Err == nil || r.Err.Code != tool.CodeDenied {
				t.Errorf("asked %v: %+v, %v", w.did("ask"), r, err)
			}
			if strings.Contains(string(r.Envelope()), "swordfish") {
				t.Errorf("told %s", r.Envelope())
			}
		}
	}
}

// Paths in arguments are resolved as in the file system of a guest: no link leads out of
// a mount, nothing outside is examined, and a missing file has a path, too.
func TestWhereArgumentsLead(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ws/a", "ws/d/b", "ws/bare/HEAD", "out/c"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"ws/to-a": "a", "ws/to-d": "./d/", "ws/up": "d/../a", "ws/out": "../out/c", "ws/round": "../ws/a", "ws/absolute": dir + "/ws/a", "ws/dangling": "d/new", "ws/loop": "loop", "ws/r": "bare",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	p := policy.New(policy.Options{Mounts: []policy.Mount{{Host: dir + "/ws", Write: true}}, Masked: []string{dir + "/ws/d/masked"}})
	entry, ok := catalog(t).Find("file_write")
	if !ok {
		t.Fatal("no file_write")
	}
	for path, want := range map[string]policy.NamedFile{
		"a": {Path: "ws/a", Regular: true}, "to-a": {Path: "ws/a", Regular: true}, "to-d/b": {Path: "ws/d/b", Regular: true}, "up": {Path: "ws/a", Regular: true}, "d": {Path: "ws/d"}, ".": {Path: "ws"},
		"to-d/../a": {Path: "ws/a", Regular: true}, // as text, before links
		"new/x":     {Path: "ws/new/x"}, "dangling": {Path: "ws/d/new"}, "to-d/new": {Path: "ws/d/new"},
		"out": {}, "round": {}, "absolute": {}, "loop": {}, "../out/c": {}, "/etc/passwd": {}, "d/masked/x": {},
		"bare/config": {Path: "ws/bare/config", InRepository: true}, "r/hooks/x": {Path: "ws/bare/hooks/x", InRepository: true}, "bare/objects/x": {Path: "ws/bare/objects/x"},
	} {
		call := aCall("file_write", `{"path":"`+path+`"}`)
		call.Cwd = dir + "/ws"
		if want.Path != "" {
			want.Path = filepath.Join(dir, want.Path)
		}
		want.Arg, want.Name = "path", filepath.Clean(filepath.Join(call.Cwd, path))
		if filepath.IsAbs(path) {
			want.Name = path
		}
		if diff := cmp.Diff([]policy.NamedFile{want}, NamedFiles(p, call, entry)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

// The decision about a command knows only files that look like secrets and that a mount shows.
func TestSecretsThatACommandNames(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws, outside := filepath.Join(dir, "ws"), filepath.Join(dir, "outside")
	for _, name := range []string{"ws/.env", "ws/sub/id_rsa", "ws/a.txt", "ws/ours/.env", "outside/.env"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"link": "sub/id_rsa", "out": outside + "/.env"} {
		if err := os.Symlink(target, filepath.Join(ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	p := policy.New(policy.Options{Mounts: []policy.Mount{{Host: ws, Write: true}}, Masked: []string{filepath.Join(ws, "ours")}})
	entry := &tool.Entry{Spec: tool.Spec{Capabilities: tool.Capabilities{Exec: "command"}}, Module: &tool.Module{}}
	for command, want := range map[string][]string{
		"cat .env":                               {".env"},
		"cat a.txt .envrc":                       nil,
		"cat $X .env | grep x > " + ws:           {".env"},
		"sort <sub/id_rsa; . ./.env":             {"sub/id_rsa", ".env"},
		"docker run --env-file=.env x":           {".env"},
		"echo $(cat '.env') \"sub/id_rsa\"":      {".env", "sub/id_rsa"},
		"cat link":                               {"sub/id_rsa"},
		"cat out ours/.env " + outside + "/.env": nil,
		"cat *.env; cat /proc/self/environ":      nil,
		"cat ws/.env sub":                        nil,
		"cat 'x":                                 nil,
	} {
		args, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range NamedFiles(p, tool.Call{Args: args, Cwd: ws}, entry) {
			name, err := filepath.Rel(ws, f.Path)
			if err != nil || f.Arg != "command" || !f.Regular {
				t.Errorf("%s: %+v, %v", command, f, err)
			}
			got = append(got, name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", command, diff)
		}
	}
}
