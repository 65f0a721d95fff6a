package main

import "github.com/stockade-dev/stockade/host/settings"

// dirs are our own folders, under the names that the wiring has for them.
type dirs struct{ settings.Dirs }

func findDirs(env func(string) string) (dirs, error) {
	d, err := settings.FindDirs(env)
	return dirs{d}, err
}

func (d dirs) agentTOML() string    { return d.AgentTOML() }
func (d dirs) remembered() string   { return d.AnswersFile() }
func (d dirs) sessions() string     { return d.Sessions() }
func (d dirs) secrets() string      { return d.Secrets() }
func (d dirs) secretsKey() string   { return d.SecretsKey() }
func (d dirs) keyringNames() string { return d.KeyringNames() }
func (d dirs) stages() string       { return d.Stages() }
func (d dirs) locks() string        { return d.Locks() }
func (d dirs) compiled() string     { return d.Compiled() }
