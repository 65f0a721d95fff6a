package credential

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	helperTimeout  = 10 * time.Second
	maxHelperBytes = 64 << 10 // size of the output of a helper; more is an error
)

// helperDirs are the only directories from which a helper is started: see RATIONALE, "Why
// are credential helpers started by fixed paths?".
var helperDirs = []string{"/usr/local/bin", "/usr/bin", "/opt/homebrew/bin"}

// passedEnv are the variables that we pass to a helper, beside HOME and PATH. A helper
// needs them to find the keyring, and the keyring to ask the user.
var passedEnv = []string{"DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "GNUPGHOME", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR"}

// ask runs docker-credential-NAME for the login of a registry.
func (h Finder) ask(ctx context.Context, name, host string) (Login, error) {
	path, err := h.find(name)
	if err != nil {
		return Login{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, helperTimeout, fmt.Errorf("no answer within %s", helperTimeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "get")
	cmd.Dir = h.Dir // not the current directory, which may be a stranger's repository
	cmd.Env = []string{"HOME=" + h.Dir, "PATH=" + strings.Join(helperDirs, ":") + ":/bin"}
	for _, name := range passedEnv {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Stdin = strings.NewReader(host)
	out := &boundedBuffer{stop: cancel}
	cmd.Stdout = out // its stderr is discarded
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	text := strings.TrimSpace(out.buf.String())
	switch {
	case out.overflowed:
		return Login{}, fmt.Errorf("it printed more than %d bytes", maxHelperBytes)
	case ctx.Err() != nil:
		return Login{}, context.Cause(ctx)
	case err != nil && strings.Contains(text, "credentials not found"): // all helpers print this
		return Login{}, nil
	case err != nil:
		return Login{}, fmt.Errorf("%s: %w", filepath.Base(path), err) // without its output, which may hold the login
	}
	var answer struct{ Username, Secret string }
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return Login{}, errors.New("what it printed is not the JSON of a login")
	}
	l := Login{Username: answer.Username, Password: answer.Secret}
	if answer.Username == "<token>" {
		l = Login{IdentityToken: answer.Secret}
	}
	return l, l.check()
}

// find returns the path of the helper with this name.
func (h Finder) find(name string) (string, error) {
	if name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return "", errors.New("its name is not one of small letters, digits and hyphens")
	}
	dirs := h.helpers
	if dirs == nil {
		dirs = helperDirs
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, "docker-credential-"+name)
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		if !info.Mode().IsRegular() {
			return "", fmt.Errorf("%s is not a regular file", path)
		}
		return path, checkWriters(path, info, true)
	}
	return "", fmt.Errorf("docker-credential-%s is in none of %s, the only folders that are searched", name, strings.Join(dirs, ", "))
}

// boundedBuffer holds the output of a helper, and stops the helper after maxHelperBytes.
type boundedBuffer struct {
	buf        bytes.Buffer
	stop       func()
	overflowed bool
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.buf.Len()+len(p) > maxHelperBytes {
		b.overflowed = true
		b.stop()
		return 0, errors.New("too much output")
	}
	return b.buf.Write(p)
}
