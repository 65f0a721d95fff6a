package main

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
)

// dirs are our own folders, by the XDG base directory specification. None is
// made before something is to be put there, and no guest sees any of them.
type dirs struct {
	config string // agent.toml, remembered answers
	data   string // sessions, secrets
	state  string // stages, trusted project files, the key of the secrets
	cache  string // compiled code

	places []place // where each of them comes from
}

// place is where one of our folders is, and what put it there.
type place struct {
	dir      string
	variable string // of the environment
	below    string // the home directory, where no variable says otherwise
}

// findDirs reads XDG_*_HOME, which count only when absolute, as the
// specification says, and falls back to the places below HOME.
func findDirs(env func(string) string) (dirs, error) {
	var d dirs
	for _, f := range []struct {
		dir             *string
		variable, below string
	}{
		{&d.config, "XDG_CONFIG_HOME", ".config"},
		{&d.data, "XDG_DATA_HOME", ".local/share"},
		{&d.state, "XDG_STATE_HOME", ".local/state"},
		{&d.cache, "XDG_CACHE_HOME", ".cache"},
	} {
		base, from := env(f.variable), f.variable
		if !filepath.IsAbs(base) {
			home := env("HOME")
			if !filepath.IsAbs(home) {
				return dirs{}, &exitErr{code: exitError, hint: "set HOME",
					message: fmt.Sprintf("no place for configuration and sessions: neither HOME nor %s names an absolute directory", f.variable)}
			}
			base, from = filepath.Join(home, f.below), "HOME"
		}
		*f.dir = filepath.Join(base, "stockade")
		d.places = append(d.places, place{*f.dir, from, f.below})
	}
	return d, nil
}

// accountHome is the home directory of the user's account, "" if the system does
// not know one. It does not ask HOME; tests put another function in its place.
var accountHome = func() string {
	u, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err != nil {
		return ""
	}
	return u.HomeDir
}

// outside refuses folders that a variable has put into the workspace: whatever
// sets variables for those who enter a repository (direnv, a Makefile, the
// settings of an editor) comes with it, and would bring configuration, answers
// and compiled code of its own. The usual places below the home directory of the
// account are nobody's choice; they can be in a workspace, and are masked there.
// See RATIONALE, "Why may no variable put our folders into the workspace?"
func (d dirs) outside(work string) error {
	for _, p := range d.places {
		real, in := within(p.dir, work)
		if !in {
			continue
		}
		if home := accountHome(); filepath.IsAbs(home) {
			if usual, _ := within(filepath.Join(home, p.below, "stockade"), work); usual == real {
				continue
			}
		}
		return &exitErr{code: exitUsage,
			message: fmt.Sprintf("%s puts a folder of stockade into the workspace: %s is in %s. What is in a workspace may come from a repository, which must not bring its own configuration", p.variable, real, work),
			hint:    fmt.Sprintf("`echo $%s` shows what it is; .envrc, a Makefile or an editor may have set it. Let it name a directory that is not in the workspace, or go to another one with -C", p.variable)}
	}
	return nil
}

// within resolves a name as far as it exists, and reports whether it is dir or
// in it, by whatever name.
func within(name, dir string) (real string, in bool) {
	real = resolve(name)
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

// resolve follows links in the part of a name that exists, and also those that
// lead to nothing yet.
func resolve(name string) string {
	for range 40 { // as many links as the kernel follows
		at, rest := name, ""
		for {
			if real, err := filepath.EvalSymlinks(at); err == nil {
				return filepath.Join(real, rest)
			}
			if target, err := os.Readlink(at); err == nil {
				if !filepath.IsAbs(target) {
					target = filepath.Join(resolve(filepath.Dir(at)), target)
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
func (d dirs) masked() []string {
	return []string{
		d.config, d.data, d.state, d.cache,
		d.agentTOML(), d.policyTOML(), d.remembered(), d.trusted(), d.sessions(), d.sessions() + "-wal", d.sessions() + "-shm",
		d.secrets(), d.secretsKey(), d.keyringNames(),
	}
}

func (d dirs) agentTOML() string  { return filepath.Join(d.config, "agent.toml") }
func (d dirs) policyTOML() string { return filepath.Join(d.config, "policy.toml") }
func (d dirs) remembered() string { return filepath.Join(d.config, "allow.toml") }
func (d dirs) sessions() string   { return filepath.Join(d.data, "sessions.db") }

// The file of secrets and its key are in two folders: a copy of one alone is
// worth nothing.
func (d dirs) secrets() string      { return filepath.Join(d.data, "secrets.sealed") }
func (d dirs) secretsKey() string   { return filepath.Join(d.state, "secrets.key") }
func (d dirs) keyringNames() string { return filepath.Join(d.data, "keyring.json") }

// trusted is beside nothing that people edit or copy to other machines: a trust
// is in a place of this one.
func (d dirs) trusted() string { return filepath.Join(d.state, "trust.toml") }

func (d dirs) stages() string   { return filepath.Join(d.state, "stages") }
func (d dirs) locks() string    { return filepath.Join(d.data, "locks") } // beside what they guard
func (d dirs) compiled() string { return filepath.Join(d.cache, "compiled") }
