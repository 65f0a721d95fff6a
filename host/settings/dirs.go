package settings

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/stockade-dev/stockade/host/internal/private"
)

// Dirs are our own folders, by the XDG base directory specification. None is
// made before something is to be put there, and no guest sees any of them.
type Dirs struct {
	Config string // agent.toml, remembered answers
	Data   string // sessions, secrets
	State  string // stages, trusted project files, the key of the secrets, what was typed
	Cache  string // compiled code

	places []place // where each of them comes from
}

// place is where one of our folders is, and what put it there.
type place struct {
	dir      string
	variable string // of the environment
	below    string // the home directory, where no variable says otherwise
}

// FindDirs reads XDG_*_HOME, which count only when absolute, as the
// specification says, and falls back to the places below HOME.
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

// NoPlaceError says that the environment names no place for our folders.
type NoPlaceError struct {
	Variable string // that could name one, beside HOME
}

func (e *NoPlaceError) Error() string {
	return fmt.Sprintf("no place for configuration and sessions: neither HOME nor %s names an absolute directory", e.Variable)
}

// AccountHome is the home directory of the user's account, "" if the system does
// not know one. It does not ask HOME.
func AccountHome() string {
	u, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err != nil {
		return ""
	}
	return u.HomeDir
}

// checkOutside refuses folders that a variable has put into the workspace: whatever
// sets variables for those who enter a repository (direnv, a Makefile, the
// settings of an editor) comes with it, and would bring configuration, answers
// and compiled code of its own. The usual places below the home directory of the
// account are nobody's choice; they can be in a workspace, and are masked there.
// See RATIONALE, "Why may no variable put our folders into the workspace?"
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

// Within resolves a name as far as it exists, and reports whether it is dir or
// in it, by whatever name.
func Within(name, dir string) (real string, in bool) {
	real = Resolve(name)
	top, err := os.Stat(dir)
	if err != nil {
		return real, true // it cannot be told
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

// Resolve follows links in the part of a name that exists, and also those that
// lead to nothing yet.
func Resolve(name string) string {
	for range 40 { // as many links as the kernel follows
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

// masked is what no guest sees: our folders, and the files that count most by
// themselves too, because a link may lead from there to a place of the user's.
func (d Dirs) masked() []string {
	return []string{
		d.Config, d.Data, d.State, d.Cache,
		d.AgentTOML(), d.policyTOML(), d.AnswersFile(), d.trustFile(), d.Sessions(), d.Sessions() + "-wal", d.Sessions() + "-shm", d.Sessions() + "-settled",
		d.Secrets(), d.SecretsKey(), d.KeyringNames(), d.TrustTOML(), d.Modules(), d.PromptHistory(),
	}
}

// AgentTOML is the user's configuration.
func (d Dirs) AgentTOML() string { return filepath.Join(d.Config, "agent.toml") }

// WriteAgentTOML writes the user's configuration, or that of a workspace, which
// others may read. A link to the user's own stays one; that of a workspace is none.
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

// TrustTOML says whose signatures over modules count.
func (d Dirs) TrustTOML() string { return filepath.Join(d.Config, "trust.toml") }

// Modules is the folder of the modules that were added.
func (d Dirs) Modules() string { return filepath.Join(d.Data, "modules") }

// AnswersFile holds what [Dirs.Answers] returns.
func (d Dirs) AnswersFile() string { return filepath.Join(d.Config, "allow.toml") }

// trustFile is beside nothing that people edit or copy to other machines: a trust
// is in a place of this one.
func (d Dirs) trustFile() string { return filepath.Join(d.State, "trust.toml") }

// Sessions is the file of the store of sessions.
func (d Dirs) Sessions() string { return filepath.Join(d.Data, "sessions.db") }

// Secrets is the file of secrets. Its key is in another folder: a copy of one
// alone is worth nothing.
func (d Dirs) Secrets() string { return filepath.Join(d.Data, "secrets.sealed") }

// SecretsKey is the key of the file of secrets.
func (d Dirs) SecretsKey() string { return filepath.Join(d.State, "secrets.key") }

// KeyringNames lists the secrets in the keyring of the system.
func (d Dirs) KeyringNames() string { return filepath.Join(d.Data, "keyring.json") }

// PromptHistory is the file of the prompts that were typed.
func (d Dirs) PromptHistory() string { return filepath.Join(d.State, "history") }

// Stages is the folder of what waits for a decision.
func (d Dirs) Stages() string { return filepath.Join(d.State, "stages") }

// GitHistories is the folder of what was found in the histories of repositories.
func (d Dirs) GitHistories() string { return filepath.Join(d.State, "histories") }

// CacheLayers is the folder of what commands have written to caches of the user's.
func (d Dirs) CacheLayers() string { return filepath.Join(d.Cache, "layers") }

// Compiled is the folder of native code.
func (d Dirs) Compiled() string { return filepath.Join(d.Cache, "compiled") }
