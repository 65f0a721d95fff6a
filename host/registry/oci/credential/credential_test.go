//go:build unix

package credential

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// home makes a home directory with a configuration of Docker.
func home(t *testing.T, config string) Home {
	t.Helper()
	h := Home{Dir: t.TempDir(), helpers: []string{t.TempDir()}}
	if err := os.MkdirAll(filepath.Join(h.Dir, ".docker"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.file(), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h Home) file() string { return filepath.Join(h.Dir, ".docker", "config.json") }

// helper puts a program among the helpers.
func (h Home) helper(t *testing.T, name, script string) {
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
		{what: "a helper that is not there", host: "r.example", config: `{"credsStore":"other"}`, err: "docker-credential-other is in none of"},
		{what: "a helper by a path", host: "r.example", config: `{"credsStore":"../../tmp/evil"}`, err: "small letters, digits and hyphens"},
		{what: "a helper by an absolute path", host: "r.example", config: `{"credHelpers":{"r.example":"/tmp/evil"}}`, err: "small letters, digits and hyphens"},
		{what: "a helper with an argument", host: "r.example", config: `{"credHelpers":{"r.example":"test get"}}`, err: "small letters, digits and hyphens"},
	} {
		h := home(t, tt.config)
		h.helper(t, "test", tt.helper)
		got, err := h.For(t.Context(), tt.host)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %q %q, %v", tt.what, got.Username, got.Password+got.IdentityToken, err)
		}
		if err != nil && strings.Contains(err.Error(), "password\n") {
			t.Errorf("%s: the error tells what a helper has printed: %v", tt.what, err)
		}
	}
	if got, err := (Home{Dir: t.TempDir()}).For(t.Context(), "r.example"); got != (Login{}) || err != nil {
		t.Errorf("a home without a configuration: %v", err)
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
	if _, err := h.For(t.Context(), "r.example"); err == nil || !strings.Contains(err.Error(), "none of /usr/local/bin, /usr/bin, /opt/homebrew/bin") {
		t.Error(err)
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
			if _, err := h.For(t.Context(), "r.example"); err == nil || !strings.Contains(err.Error(), "can be written to by others") {
				t.Errorf("%s with mode %#o: %v", path, mode, err)
			}
		}
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := h.For(t.Context(), "r.example"); got.Username != "me" || err != nil {
		t.Errorf("when they no longer can: %v", err)
	}
	if text := fmt.Sprintf("%v %+v %#v", Login{Password: "x"}, Login{Password: "x"}, Login{Password: "x"}); text != "login login login" {
		t.Errorf("a login prints as %s", text)
	}
}
