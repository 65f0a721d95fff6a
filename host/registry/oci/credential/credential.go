package credential

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/stockade-dev/stockade/host/internal/private"
)

const (
	maxConfigBytes = 1 << 20
	maxFieldBytes  = 32 << 10 // of a user name, a password or a token
)

// Login is what a registry takes for proof of who asks. The zero Login is nobody's.
type Login struct {
	Username, Password string
	// IdentityToken is exchanged for a token of the registry, in place of a password.
	IdentityToken string
}

// String tells nothing of it, and nor do the others that print it.
func (l Login) String() string { return "login" }

// GoString implements fmt.GoStringer.
func (l Login) GoString() string { return "login" }

// LogValue implements slog.LogValuer.
func (l Login) LogValue() slog.Value { return slog.StringValue("login") }

// hub is what Docker calls its own registry, in its configuration.
const hub = "https://index.docker.io/v1/"

// Home is where the configuration is looked for: the home directory of the user's
// account, an absolute path. The zero Home has no logins.
type Home struct {
	Dir string

	helpers []string // only tests set it; helperDirs otherwise
}

// For returns the login of a registry, HOST or HOST:PORT, or the zero Login if
// there is none.
func (h Home) For(ctx context.Context, host string) (Login, error) {
	if h.Dir == "" {
		return Login{}, nil
	}
	path := filepath.Join(h.Dir, ".docker", "config.json")
	c, err := read(path)
	if err != nil {
		return Login{}, err
	}
	key := host
	switch host {
	case "docker.io", "index.docker.io", "registry-1.docker.io":
		key = hub
	}
	helper := c.CredsStore
	if own, ok := c.CredHelpers[key]; ok {
		helper = own
	} else if own, ok := c.CredHelpers[host]; ok {
		helper = own
	}
	if helper != "" {
		login, err := h.ask(ctx, helper, key)
		if err != nil {
			return Login{}, fmt.Errorf("ask the credential helper %q of %s: %w", helper, path, err)
		}
		if login != (Login{}) {
			return login, nil
		}
	}
	entry, ok := c.entry(key)
	if !ok {
		return Login{}, nil
	}
	login, err := entry.login()
	if err != nil {
		return Login{}, fmt.Errorf("%s: the entry of %s: %w", path, host, err)
	}
	return login, nil
}

// config is what matters here of Docker's file.
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

// read reads the configuration; where there is none it is empty.
func read(path string) (config, error) {
	var c config
	f, err := open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
	if err != nil {
		return c, fmt.Errorf("read %s: %w", path, err)
	}
	if len(data) > maxConfigBytes {
		return c, fmt.Errorf("%s: more than %d bytes", path, maxConfigBytes)
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return config{}, fmt.Errorf("%s is no configuration of Docker: %w", path, err)
	}
	return c, nil
}

// open opens a file in which nobody but the user and root can have written.
func open(path string) (*os.File, error) {
	info, err := os.Stat(path) // a named pipe would be waited for
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = trusted(path, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// trusted says why what a file holds is not believed.
func trusted(path string, info fs.FileInfo) error {
	switch owner, mine := private.Mine(info); {
	case !mine && owner != 0:
		return fmt.Errorf("%s belongs to the user %d, not to you: what it holds is not used", path, owner)
	case private.HasModes && info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be written to by others (mode %#o): what it holds is not used; mend it with chmod go-w", path, info.Mode().Perm())
	}
	return nil
}

// entry finds a registry among those that have a login in the file. Old programs
// have written its URL.
func (c config) entry(key string) (auth, bool) {
	if a, ok := c.Auths[key]; ok {
		return a, true
	}
	for name, a := range c.Auths {
		name = strings.TrimPrefix(strings.TrimPrefix(name, "https://"), "http://")
		if name, _, _ = strings.Cut(name, "/"); name == key {
			return a, true
		}
	}
	return auth{}, false
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

// check refuses what no header could hold.
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
