package settings

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/stockade-dev/stockade/host/internal/private"
)

// Dirs holds this program's own folders, as in the XDG base directory specification. A folder
// is created when something is first stored in it, and no guest sees any of them.
type Dirs struct {
	Config string // agent.toml, policy.toml, trusted publishers, remembered answers
	Data   string // sessions, secrets, added modules
	State  string // stages, trusted project files, the key of the secrets, typed prompts, git histories
	Cache  string // compiled code, changes of commands to the user's caches

	places []place // origin of each folder
}

// place is one of the folders and its origin.
type place struct {
	dir      string
	variable string // environment variable that decided, or HOME
	below    string // default place, below the home directory
}

// FindDirs returns the folders named stockade in those of XDG_*_HOME. A variable without an
// absolute path does not count, as the specification says; then the folder is in its usual place
// below HOME. The error is a *[NoPlaceError].
func FindDirs(env func(string) string) (Dirs, error) {
	var d Dirs
	for _, f := range []struct {
		dir             *string
		variable, below string
	}{
		{&d.Config, "XDG_CONFIG_HOME", ".config"},
		{&d.Data, "XDG_DATA_HOME", ".local/share"},
		{&d.State, "XDG_STATE_HOME", ".local/state"},
		{&d.Cache, "XDG_CACHE_HOME", ".cache"},
	} {
		base, from := env(f.variable), f.variable
		if !filepath.IsAbs(base) {
			home := env("HOME")
			if !filepath.IsAbs(home) {
				return Dirs{}, &NoPlaceError{f.variable}
			}
			base, from = filepath.Join(home, f.below), "HOME"
		}
		*f.dir = filepath.Join(base, "stockade")
		d.places = append(d.places, place{*f.dir, from, f.below})
	}
	return d, nil
}

// NoPlaceError is the error when the environment names no place for the folders.
type NoPlaceError struct {
	Variable string // variable that could name the place, instead of HOME
}

func (e *NoPlaceError) Error() string {
	return fmt.Sprintf("no place for configuration and sessions: neither HOME nor %s names an absolute directory", e.Variable)
}

// AccountHome returns the home directory of the user's account, whatever HOME is; empty:
// unknown.
func AccountHome() string {
	u, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err != nil {
		return ""
	}
	return u.HomeDir
}

// checkOutside returns an error if a variable has put a folder into the workspace. A
// repository can set variables for everybody who enters it (direnv, a Makefile, editor
// settings), and would bring its own configuration, answers and compiled code. The usual
// places below the home directory of the account are not chosen by anybody; they may be in a
// workspace, and are masked there. home returns the home directory; nil: AccountHome. See
// RATIONALE, "Why may no variable put our folders into the workspace?"
func (d Dirs) checkOutside(work string, home func() string) error {
	if home == nil {
		home = AccountHome
	}
	for _, p := range d.places {
		real, in := Within(p.dir, work)
		if !in {
			continue
		}
		if home := home(); filepath.IsAbs(home) {
			if usual, _ := Within(filepath.Join(home, p.below, "stockade"), work); usual == real {
				continue
			}
		}
		return mistake(
			fmt.Sprintf("`echo $%s` shows what it is; .envrc, a Makefile or an editor may have set it. Let it name a directory that is not in the workspace, or go to another one with -C", p.variable),
			"%s puts a folder of stockade into the workspace: %s is in %s. What is in a workspace may come from a repository, which must not bring its own configuration", p.variable, real, work)
	}
	return nil
}

// Within resolves the part of a path that exists, and reports whether the result is dir or
// below dir, whatever the names. If dir cannot be read, in is true.
func Within(name, dir string) (real string, in bool) {
	real = Resolve(name)
	top, err := os.Stat(dir)
	if err != nil {
		return real, true // unknown: the safe answer
	}
	for at := real; ; at = filepath.Dir(at) {
		if st, err := os.Stat(at); err == nil && os.SameFile(st, top) {
			return real, true
		}
		if at == filepath.Dir(at) {
			return real, false
		}
	}
}

// Resolve resolves symbolic links in the part of a path that exists, and links whose target
// does not exist.
func Resolve(name string) string {
	for range 40 { // the kernel's limit of links
		at, rest := name, ""
		for {
			if real, err := filepath.EvalSymlinks(at); err == nil {
				return filepath.Join(real, rest)
			}
			if target, err := os.Readlink(at); err == nil {
				if !filepath.IsAbs(target) {
					target = filepath.Join(Resolve(filepath.Dir(at)), target)
				}
				name = filepath.Join(target, rest)
				break
			}
			if at == filepath.Dir(at) {
				return name
			}
			at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest)
		}
	}
	return name
}

// masked returns the paths that no guest sees: the folders, and the most important files in
// them, because a file may be a link to another place of the user's.
func (d Dirs) masked() []string {
	return []string{
		d.Config, d.Data, d.State, d.Cache,
		d.AgentTOML(), d.policyTOML(), d.AnswersFile(), d.trustFile(), d.Sessions(), d.Sessions() + "-wal", d.Sessions() + "-shm", d.Sessions() + "-settled",
		d.Secrets(), d.SecretsKey(), d.KeyringNames(), d.TrustTOML(), d.Modules(), d.PromptHistory(),
	}
}

// AgentTOML returns the path of the user's configuration.
func (d Dirs) AgentTOML() string { return filepath.Join(d.Config, "agent.toml") }

// WriteAgentTOML writes the user's configuration, or that of a workspace, which others may
// read. The user's may be a symbolic link, and stays one. A link in a workspace is an error.
func (d Dirs) WriteAgentTOML(path string, data []byte) error {
	if path == d.AgentTOML() {
		path = Resolve(path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		return private.Write(path, data)
	}
	if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", path)
	}
	return private.WriteShared(path, data)
}

func (d Dirs) policyTOML() string { return filepath.Join(d.Config, "policy.toml") }

// TrustTOML returns the path of the user's list of trusted publishers of modules.
func (d Dirs) TrustTOML() string { return filepath.Join(d.Config, "trust.toml") }

// Modules returns the folder of the added modules.
func (d Dirs) Modules() string { return filepath.Join(d.Data, "modules") }

// AnswersFile returns the path of the remembered answers.
func (d Dirs) AnswersFile() string { return filepath.Join(d.Config, "allow.toml") }

// trustFile returns the path of the trusted project files. It is not in Config, which people
// edit and copy to other machines: what is trusted is a path of this machine.
func (d Dirs) trustFile() string { return filepath.Join(d.State, "trust.toml") }

// Sessions returns the path of the session store.
func (d Dirs) Sessions() string { return filepath.Join(d.Data, "sessions.db") }

// Secrets returns the path of the encrypted secrets. Their key is in another folder: a copy of
// only one of the two folders is useless.
func (d Dirs) Secrets() string { return filepath.Join(d.Data, "secrets.sealed") }

// SecretsKey returns the path of the key of the encrypted secrets.
func (d Dirs) SecretsKey() string { return filepath.Join(d.State, "secrets.key") }

// KeyringNames returns the path of the names of the secrets in the system's keyring.
func (d Dirs) KeyringNames() string { return filepath.Join(d.Data, "keyring.json") }

// PromptHistory returns the path of the prompts that were typed.
func (d Dirs) PromptHistory() string { return filepath.Join(d.State, "history") }

// Stages returns the folder of the changes that wait for a decision.
func (d Dirs) Stages() string { return filepath.Join(d.State, "stages") }

// GitHistories returns the folder of the results of searching repository histories.
func (d Dirs) GitHistories() string { return filepath.Join(d.State, "histories") }

// CacheLayers returns the folder of the changes of commands to the user's caches.
func (d Dirs) CacheLayers() string { return filepath.Join(d.Cache, "layers") }

// Compiled returns the folder of compiled code.
func (d Dirs) Compiled() string { return filepath.Join(d.Cache, "compiled") }
