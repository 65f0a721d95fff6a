//go:build unix

package credential

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// home makes a home directory with a configuration of Docker.
func home(t *testing.T, config string) Finder {
	t.Helper()
	h := Finder{Dir: t.TempDir(), Env: func(string) string { return "" }, helpers: []string{t.TempDir()}}
	if err := os.MkdirAll(filepath.Join(h.Dir, ".docker"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.file(), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h Finder) file() string { return filepath.Join(h.Dir, ".docker", "config.json") }

// helper puts a program among the helpers.
func (h Finder) helper(t *testing.T, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.helpers[0], "docker-credential-"+name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestTheLoginOfARegistry(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", "/nonexistent")
	t.Setenv("STOCKADE_API_KEY", "secret")
	t.Setenv("DISPLAY", ":7")
	me := Login{Username: "me", Password: "pass:word"}
	for _, tt := range []struct {
		what, config, host, helper string
		want                       Login
		err                        string
	}{
		{what: "a login in the file", host: "r.example:5000", config: `{"auths":{"r.example:5000":{"auth":"bWU6cGFzczp3b3Jk"}},"psFormat":"x"}`, want: me},
		{what: "one by the URL of the registry", host: "r.example", config: `{"auths":{"https://r.example/v1/":{"auth":"bWU6cGFzczp3b3Jk"}}}`, want: me},
		{what: "one of Docker's own registry", host: "docker.io", config: `{"auths":{"https://index.docker.io/v1/":{"auth":"bWU6cGFzczp3b3Jk"}}}`, want: me},
		{what: "an identity token", host: "r.example", config: `{"auths":{"r.example":{"identitytoken":"t"}}}`, want: Login{IdentityToken: "t"}},
		{what: "another host has none", host: "evil.example", config: `{"auths":{"r.example":{"auth":"bWU6cGFzczp3b3Jk"}}}`},
		{what: "nor has another port", host: "r.example:81", config: `{"auths":{"r.example":{"auth":"bWU6cGFzczp3b3Jk"}}}`},
		{what: "an entry that is no login", host: "r.example", config: `{"auths":{"r.example":{"auth":"?"}}}`, err: "not USER:PASSWORD in base64"},
		{what: "a password of two lines", host: "r.example", config: `{"auths":{"r.example":{"username":"a","password":"b\nc"}}}`, err: "more than one line"},
		{what: "a file that is not JSON", host: "r.example", config: `{"auths":{}} {}`, err: "no configuration of Docker"},
		{what: "a file that is too large", host: "r.example", config: strings.Repeat(" ", 1<<20) + "{}", err: "more than 1048576 bytes"},

		{what: "a helper of the host", host: "r.example", config: `{"credHelpers":{"r.example":"test"}}`,
			helper: `test "$1" = get && read host; test "$host" = r.example && echo '{"Username":"me","Secret":"pass:word"}'`, want: me},
		{what: "a helper for all hosts", host: "r.example", config: `{"credsStore":"test"}`, helper: `echo '{"Username":"<token>","Secret":"t"}'`, want: Login{IdentityToken: "t"}},
		{what: "a helper that knows nothing, and the file", host: "r.example", config: `{"credsStore":"test","auths":{"r.example":{"auth":"bWU6cGFzczp3b3Jk"}}}`,
			helper: `echo credentials not found in native keychain; exit 1`, want: me},
		{what: "a helper sees little of the environment", host: "r.example", config: `{"credsStore":"test"}`,
			helper: `echo "{\"Username\":\"$STOCKADE_API_KEY$DOCKER_CONFIG\",\"Secret\":\"$DISPLAY $PATH\"}"`, want: Login{Password: ":7 /usr/local/bin:/usr/bin:/opt/homebrew/bin:/bin"}},
		{what: "a helper that fails", host: "r.example", config: `{"credsStore":"test"}`, helper: `echo password; exit 1`, err: "exit status 1"},
		{what: "a helper that prints no login", host: "r.example", config: `{"credsStore":"test"}`, helper: `echo hello`, err: "not the JSON of a login"},
		{what: "a helper that does not stop printing", host: "r.example", config: `{"credsStore":"test"}`, helper: `while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done`, err: "more than 65536 bytes"},
		{what: "a helper that fails, and the file", host: "r.example", config: `{"credsStore":"test","auths":{"r.example":{"auth":"bWU6cGFzczp3b3Jk"}}}`, helper: `exit 1`, want: me},
		{what: "one of Docker's own registry, as podman writes it", host: "docker.io", config: `{"auths":{"docker.io":{"auth":"bWU6cGFzczp3b3Jk"}}}`, want: me},
		{what: "a helper that is not there", host: "r.example", config: `{"credsStore":"other"}`, err: "docker-credential-other is in none of"},
		{what: "a helper by a path", host: "r.example", config: `{"credsStore":"../../tmp/evil"}`, err: "small letters, digits and hyphens"},
		{what: "a helper by an absolute path", host: "r.example", config: `{"credHelpers":{"r.example":"/tmp/evil"}}`, err: "small letters, digits and hyphens"},
		{what: "a helper with an argument", host: "r.example", config: `{"credHelpers":{"r.example":"test get"}}`, err: "small letters, digits and hyphens"},
	} {
		h := home(t, tt.config)
		h.helper(t, "test", tt.helper)
		got, looked := h.Login(t.Context(), tt.host)
		wrong := strings.Join(looked.Unusable, "; ")
		if got != tt.want || (wrong == "") != (tt.err == "") || !strings.Contains(wrong, tt.err) || !strings.HasPrefix(looked.Files[0], h.file()) {
			t.Errorf("%s: %q %q, %+v", tt.what, got.Username, got.Password+got.IdentityToken, looked)
		}
		if strings.Contains(wrong, "password\n") {
			t.Errorf("%s: it tells what a helper has printed: %s", tt.what, wrong)
		}
	}
	h := home(t, `{"credsStore":"test"}`)
	write(t, filepath.Join(h.helpers[0], "docker-credential-test"), "#!/nonexistent")
	chmod(t, filepath.Join(h.helpers[0], "docker-credential-test"), 0o700)
	if _, looked := h.Login(t.Context(), "r.example"); len(looked.Unusable) != 1 {
		t.Errorf("a helper without its interpreter: %+v", looked)
	}
	h = Finder{Dir: t.TempDir(), Env: func(string) string { return "" }}
	if got, looked := h.Login(t.Context(), "r.example"); got != (Login{}) || looked.Unusable != nil || !strings.HasSuffix(looked.Files[0], "config.json (not there)") {
		t.Errorf("a home without a configuration: %+v", looked)
	}
}

// TestHelpersOfPATHAreNotStarted: a repository can put a directory of its own into
// PATH, for whoever enters it.
func TestHelpersOfPATHAreNotStarted(t *testing.T) {
	dir := t.TempDir()
	started := filepath.Join(dir, "started")
	if err := os.WriteFile(filepath.Join(dir, "docker-credential-evil"), []byte("#!/bin/sh\ntouch "+started), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Chdir(dir)
	h := home(t, `{"credsStore":"evil"}`)
	h.helpers = nil
	if _, looked := h.Login(t.Context(), "r.example"); !strings.Contains(fmt.Sprint(looked.Unusable), "none of /usr/local/bin, /usr/bin, /opt/homebrew/bin") {
		t.Error(looked)
	}
	if _, err := os.Stat(started); err == nil {
		t.Error("it was started")
	}
}

func TestWhatOthersCanWriteIsNotUsed(t *testing.T) {
	h := home(t, `{"credsStore":"test"}`)
	h.helper(t, "test", `echo '{"Username":"me","Secret":"x"}'`)
	helper := filepath.Join(h.helpers[0], "docker-credential-test")
	for _, path := range []string{h.file(), helper} {
		for _, mode := range []os.FileMode{0o720, 0o702} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			if got, looked := h.Login(t.Context(), "r.example"); got != (Login{}) || !strings.Contains(fmt.Sprint(looked.Unusable), "can be written to by others") {
				t.Errorf("%s with mode %#o: %v", path, mode, looked)
			}
		}
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if got, looked := h.Login(t.Context(), "r.example"); got.Username != "me" || looked.Unusable != nil {
		t.Errorf("when they no longer can: %v", looked)
	}
	if text := fmt.Sprintf("%v %+v %#v", Login{Password: "x"}, Login{Password: "x"}, Login{Password: "x"}); text != "login login login" {
		t.Errorf("a login prints as %s", text)
	}
}

// TestFilesThatAVariableNames: each case changes the file that a variable names, which has a
// login.
func TestFilesThatAVariableNames(t *testing.T) {
	const login = `{"auths":{"r.example":{"auth":"bWU6cGFzczp3b3Jk"}}}`
	named := func(variable, below string) func(t *testing.T, dir string, env map[string]string) {
		return func(t *testing.T, dir string, env map[string]string) {
			env[variable] = filepath.Join(dir, below)
			if strings.HasPrefix(variable, "XDG") || variable == "HOME" {
				env[variable] = dir
			}
			write(t, filepath.Join(dir, below), login)
		}
	}
	for _, tt := range []struct {
		what   string
		change func(t *testing.T, dir string, env map[string]string)
		wrong  string // empty: its login is used
		root   bool   // it takes root to make that
	}{
		{what: "podman's variable", change: named("REGISTRY_AUTH_FILE", "a/auth.json")},
		{what: "Docker's", change: func(t *testing.T, dir string, env map[string]string) {
			env["DOCKER_CONFIG"] = dir
			write(t, filepath.Join(dir, "config.json"), login)
		}},
		{what: "HOME", change: named("HOME", ".docker/config.json")},
		{what: "podman's place for a session", change: named("XDG_RUNTIME_DIR", "containers/auth.json")},
		{what: "podman's place", change: named("XDG_CONFIG_HOME", "containers/auth.json")},
		{what: "one that is not there", wrong: "none", change: func(_ *testing.T, dir string, env map[string]string) { env["DOCKER_CONFIG"] = dir }},
		{what: "a relative path", wrong: "not an absolute path", change: func(t *testing.T, dir string, env map[string]string) {
			t.Chdir(dir)
			write(t, "auth.json", login)
			env["REGISTRY_AUTH_FILE"] = "auth.json"
		}},
		{what: "one in the workspace", wrong: "it is in the workspace, and $REGISTRY_AUTH_FILE names it", change: named("REGISTRY_AUTH_FILE", "work/auth.json")},
		{what: "one that others may write to", wrong: "can be written to by others", change: func(t *testing.T, dir string, env map[string]string) {
			named("REGISTRY_AUTH_FILE", "a/auth.json")(t, dir, env)
			chmod(t, filepath.Join(dir, "a/auth.json"), 0o622)
		}},
		{what: "one in a directory that others may write to", wrong: "others may write to", change: func(t *testing.T, dir string, env map[string]string) {
			named("REGISTRY_AUTH_FILE", "a/auth.json")(t, dir, env)
			chmod(t, filepath.Join(dir, "a"), 0o777)
		}},
		{what: "one of another user", wrong: "belongs to another user", root: true, change: func(t *testing.T, dir string, env map[string]string) {
			named("REGISTRY_AUTH_FILE", "a/auth.json")(t, dir, env)
			if err := os.Chown(filepath.Join(dir, "a/auth.json"), 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}},
		{what: "a directory", wrong: "not a regular file", change: func(_ *testing.T, dir string, env map[string]string) { env["REGISTRY_AUTH_FILE"] = dir }},
		{what: "one with a helper", wrong: "its credential helper is not asked", change: func(t *testing.T, dir string, env map[string]string) {
			env["REGISTRY_AUTH_FILE"] = filepath.Join(dir, "auth.json")
			write(t, env["REGISTRY_AUTH_FILE"], `{"credsStore":"test"}`)
		}},
		{what: "one with a helper for the registry", wrong: "its credential helper is not asked", change: func(t *testing.T, dir string, env map[string]string) {
			env["REGISTRY_AUTH_FILE"] = filepath.Join(dir, "auth.json")
			write(t, env["REGISTRY_AUTH_FILE"], `{"credHelpers":{"r.example":"test"}}`)
		}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			if tt.root && os.Getuid() != 0 {
				return
			}
			h, env, dir := home(t, `{}`), map[string]string{}, filepath.Join(t.TempDir(), "dir")
			h.helper(t, "test", `echo '{"Username":"me","Secret":"pass:word"}'`)
			h.Env = func(name string) string { return env[name] }
			h.InWorkspace = func(path string) bool { return strings.HasPrefix(path, filepath.Join(dir, "work")) }
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			tt.change(t, dir, env)
			got, looked := h.Login(t.Context(), "r.example")
			if used := got == (Login{Username: "me", Password: "pass:word"}); used != (tt.wrong == "") {
				t.Errorf("used: %v; %+v", used, looked)
			}
			if want := strings.TrimPrefix(tt.wrong, "none"); !strings.Contains(strings.Join(looked.Unusable, ", "), want) || want == "" && looked.Unusable != nil {
				t.Errorf("%q, want %q", looked.Unusable, want)
			}
			if tt.wrong != "" && !strings.Contains(strings.Join(looked.Files, ", "), h.file()) {
				t.Errorf("the usual file is not among %q", looked.Files)
			}
		})
	}
	// Where the account is not known, a variable makes no place a usual one.
	h := home(t, `{"credsStore":"test"}`)
	h.helper(t, "test", `echo '{"Username":"me","Secret":"x"}'`)
	t.Chdir(h.Dir)
	h.Dir, h.Env = "", func(name string) string {
		return map[string]string{"DOCKER_CONFIG": ".docker", "REGISTRY_AUTH_FILE": "/a\nhint: b"}[name]
	}
	if got, looked := h.Login(t.Context(), "r.example"); got != (Login{}) || len(looked.Files) != 1 || !strings.Contains(looked.Files[0], "not an absolute path") {
		t.Errorf("%+v", looked)
	}
	// That of the account is in its usual place whoever names it: its helper is asked.
	h = home(t, `{"credsStore":"test"}`)
	h.helper(t, "test", `echo '{"Username":"me","Secret":"x"}'`)
	h.Env = func(name string) string {
		return map[string]string{"HOME": h.Dir, "DOCKER_CONFIG": filepath.Join(h.Dir, ".docker")}[name]
	}
	h.InWorkspace = func(string) bool { return true }
	if got, looked := h.Login(t.Context(), "r.example"); got.Username != "me" || len(looked.Files) != 1 {
		t.Errorf("%+v", looked)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
