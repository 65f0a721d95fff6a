package credential

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/stockade-dev/stockade/host/internal/private"
	"github.com/stockade-dev/stockade/host/internal/regular"
)

const (
	maxConfigBytes = 1 << 20
	maxFieldBytes  = 32 << 10 // size of a user name, a password or a token
)

// Login proves to a registry who sends a request. The zero Login is anonymous.
type Login struct {
	Username, Password string
	IdentityToken      string // exchanged for a token of the registry, in place of a password
}

// String returns no secret; neither do GoString and LogValue.
func (l Login) String() string { return "login" }

// GoString implements fmt.GoStringer.
func (l Login) GoString() string { return "login" }

// LogValue implements slog.LogValuer.
func (l Login) LogValue() slog.Value { return slog.StringValue("login") }

const hub = "https://index.docker.io/v1/"

// Finder searches the configuration files of Docker and podman for logins.
type Finder struct {
	Dir         string                   // the home directory of the user's account, an absolute path; empty: unknown
	Env         func(name string) string // reads a variable of the environment
	InWorkspace func(path string) bool   // reports whether a path is in the workspace, so that a stranger may have written the file

	helpers []string // directories of helpers; nil: helperDirs; only tests set it
}

// Search lists the files in which a login was searched for.
type Search struct {
	Files    []string // the file with the login is the last
	Unusable []string // the files whose login or helper cannot be used, each with the reason
}

// The files of Docker and of podman, which have the same format.
const (
	dockerFile = ".docker/config.json"
	podmanFile = "containers/auth.json"
)

// file is a file of logins. variable is the environment variable that names its place;
// empty: the file is in the usual place, below the home directory of the account.
type file struct{ path, variable string }

// files returns the files that can hold a login, in the order of the search.
func (h Finder) files() (out []file) {
	for _, f := range []struct{ variable, below string }{
		{"REGISTRY_AUTH_FILE", ""}, {"DOCKER_CONFIG", "config.json"}, {"", dockerFile}, {"HOME", dockerFile},
		{"XDG_RUNTIME_DIR", podmanFile}, {"XDG_CONFIG_HOME", podmanFile}, {"", ".config/" + podmanFile},
	} {
		dir := h.Dir
		if f.variable != "" {
			dir = h.Env(f.variable)
		}
		path := filepath.Join(dir, f.below)
		if h.Dir != "" && (path == filepath.Join(h.Dir, dockerFile) || path == filepath.Join(h.Dir, ".config", podmanFile)) {
			f.variable = ""
		}
		if dir != "" && !strings.ContainsFunc(path, unicode.IsControl) && !slices.Contains(out, file{path, f.variable}) {
			out = append(out, file{path, f.variable})
		}
	}
	return out
}

// Login returns the login of a registry, HOST or HOST:PORT; the zero Login if no usable
// one was found.
func (h Finder) Login(ctx context.Context, host string) (login Login, looked Search) {
	for _, f := range h.files() {
		var err error
		login, err = h.loginIn(ctx, f, host)
		text := f.path
		if errors.Is(err, fs.ErrNotExist) {
			text += " (not there)"
		} else if err != nil {
			text = fmt.Sprintf("%s (%v)", text, err)
			looked.Unusable = append(looked.Unusable, text)
		}
		looked.Files = append(looked.Files, text)
		if login != (Login{}) {
			break
		}
	}
	return login, looked
}

func (h Finder) loginIn(ctx context.Context, f file, host string) (login Login, err error) {
	c, err := h.read(f)
	if err != nil {
		return Login{}, err
	}
	names := []string{host}
	if hubs := []string{hub, "docker.io", "index.docker.io", "registry-1.docker.io"}; slices.Contains(hubs, host) {
		names = hubs
	}
	helper := c.CredsStore
	for _, name := range names {
		helper = cmp.Or(c.CredHelpers[name], helper)
	}
	if helper != "" && f.variable != "" {
		err = errors.New("its credential helper is not asked")
	} else if helper != "" {
		if login, err = h.ask(ctx, helper, names[0]); login != (Login{}) && err == nil {
			return login, nil
		}
		if err != nil {
			err = fmt.Errorf("its credential helper %q: %s", helper, err.Error()) // not %w: the caller takes fs.ErrNotExist for a missing file of logins
		}
	}
	switch login, wrong := c.entry(names).login(); {
	case wrong != nil:
		return Login{}, fmt.Errorf("the entry of %s: %w", host, wrong)
	case login != (Login{}):
		return login, nil
	}
	return Login{}, err
}

// config is the part of Docker's file that we read.
type config struct {
	Auths       map[string]auth   `json:"auths"`
	CredHelpers map[string]string `json:"credHelpers"`
	CredsStore  string            `json:"credsStore"`
}

type auth struct {
	Auth          string `json:"auth"` // USER:PASSWORD in base64
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
}

// read reads a configuration file. It refuses a file that somebody other than the user could
// have written; in its usual place, root may have written it, too.
func (h Finder) read(file file) (c config, err error) {
	f, info, err := regular.Open(file.path)
	if err != nil {
		return c, err
	}
	defer f.Close()
	switch {
	case file.variable == "":
	case !filepath.IsAbs(file.path):
		return c, fmt.Errorf("it is not used: $%s is not an absolute path", file.variable)
	case h.InWorkspace(file.path):
		return c, fmt.Errorf("it is not used: it is in the workspace, and $%s names it", file.variable)
	default:
		if err := private.CheckPath(file.path); err != nil {
			return c, fmt.Errorf("it is not used: %w", err)
		}
	}
	if err := checkWriters(file.path, info, file.variable == ""); err != nil {
		return c, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
	if err != nil {
		return c, err
	}
	if len(data) > maxConfigBytes {
		return c, fmt.Errorf("it has more than %d bytes", maxConfigBytes)
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return config{}, fmt.Errorf("it is no configuration of Docker: %w", err)
	}
	return c, nil
}

// checkWriters returns an error if another user could have written a file; byRoot permits
// root.
func checkWriters(path string, info fs.FileInfo, byRoot bool) error {
	switch owner, mine := private.Owner(info); {
	case !mine && (owner != 0 || !byRoot):
		return fmt.Errorf("%s belongs to the user %d, not to you: what it holds is not used", path, owner)
	case private.HasModes && info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be written to by others (mode %#o): what it holds is not used; mend it with chmod go-w", path, info.Mode().Perm())
	}
	return nil
}

// entry returns the login in the file for a registry: that of the first of its names that has
// one; zero: none has. Old programs write the registry's URL as its name.
func (c config) entry(names []string) auth {
	for _, name := range names {
		for _, key := range append([]string{name}, slices.Sorted(maps.Keys(c.Auths))...) {
			host, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://"), "/")
			if a, ok := c.Auths[key]; ok && (key == name || host == name) {
				return a
			}
		}
	}
	return auth{}
}

func (a auth) login() (Login, error) {
	l := Login{Username: a.Username, Password: a.Password, IdentityToken: a.IdentityToken}
	if a.Auth != "" {
		text, err := base64.StdEncoding.DecodeString(a.Auth)
		user, password, ok := bytes.Cut(text, []byte(":"))
		if err != nil || !ok {
			return Login{}, errors.New(`"auth" is not USER:PASSWORD in base64`)
		}
		l.Username, l.Password = string(user), strings.TrimRight(string(password), "\x00")
	}
	return l, l.check()
}

// check returns an error for a login that cannot be sent in a header.
func (l Login) check() error {
	for _, s := range []string{l.Username, l.Password, l.IdentityToken} {
		if len(s) > maxFieldBytes || strings.ContainsAny(s, "\x00\r\n") {
			return errors.New("the login is too long, or has more than one line")
		}
	}
	if strings.Contains(l.Username, ":") {
		return errors.New("the user name holds a colon")
	}
	return nil
}
