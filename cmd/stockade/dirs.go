package main

import (
	"errors"
	"fmt"
	"path/filepath"
)

// dirs are our own folders, by the XDG base directory specification. None is
// made before something is to be put there, and no guest sees any of them.
type dirs struct {
	config string // agent.toml, remembered answers
	data   string // sessions, secrets
	state  string // stages, the key of the secrets
	cache  string // compiled code
}

// findDirs reads XDG_*_HOME, which count only when absolute, as the
// specification says, and falls back to the places below HOME.
func findDirs(env func(string) string) (dirs, error) {
	home := env("HOME")
	var missing error
	dir := func(variable, below string) string {
		base := env(variable)
		if !filepath.IsAbs(base) {
			if !filepath.IsAbs(home) {
				missing = errors.Join(missing, fmt.Errorf("neither HOME nor %s names an absolute directory", variable))
			}
			base = filepath.Join(home, below)
		}
		return filepath.Join(base, "stockade")
	}
	d := dirs{
		config: dir("XDG_CONFIG_HOME", ".config"),
		data:   dir("XDG_DATA_HOME", ".local/share"),
		state:  dir("XDG_STATE_HOME", ".local/state"),
		cache:  dir("XDG_CACHE_HOME", ".cache"),
	}
	if missing != nil {
		return dirs{}, &exitErr{code: exitError, message: "no place for configuration and sessions: " + firstLine(missing.Error()), hint: "set HOME"}
	}
	return d, nil
}

// masked is what no guest sees: our folders, and the files that count most by
// themselves too, because a link may lead from there to a place of the user's.
func (d dirs) masked() []string {
	return []string{
		d.config, d.data, d.state, d.cache,
		d.agentTOML(), d.policyTOML(), d.remembered(), d.sessions(), d.sessions() + "-wal", d.sessions() + "-shm",
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

func (d dirs) stages() string   { return filepath.Join(d.state, "stages") }
func (d dirs) locks() string    { return filepath.Join(d.data, "locks") } // beside what they guard
func (d dirs) compiled() string { return filepath.Join(d.cache, "compiled") }
