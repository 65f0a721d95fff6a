package main

import (
	"context"
	"slices"

	"github.com/stockade-dev/stockade/host/config/policyfile"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/settings"
	"github.com/stockade-dev/stockade/host/tool"
)

// What tests put something else in the place of: where the administrator's policy
// is, and the home directory of the user's account, for which nil asks the system.
var (
	administrator = policyfile.Administrator
	accountHome   func() string
)

// loadConfig reads what was set for this workspace. Where the command may ask, a
// person is asked about a workspace's file that wants more than it may.
func (a *app) loadConfig(ctx context.Context) error {
	opts := settings.Options{
		Env: a.s.env, Work: a.Work, Deny: a.flags.deny, Warn: a.warn, KnownUntrusted: a.trust == trustLeave,
		Flags: []settings.Flag{
			{Name: "--provider", Key: "model.provider", Value: a.flags.provider},
			{Name: "--model", Key: "model.name", Value: a.flags.model},
			{Name: "--max-turns", Key: "max_tool_turns", Value: a.flags.maxTurns},
		},
		Administrator: administrator(), AccountHome: accountHome,
	}
	if a.trust == trustAsk && !a.flags.json {
		opts.Ask = a.askOnTerminal
	}
	s, err := settings.Load(ctx, opts)
	if err != nil {
		return err
	}
	a.Settings = *s
	return nil
}

func (a *app) warn(text, hint string) {
	a.s.note("warning: %s", text)
	if hint != "" {
		a.s.hint("%s", hint)
	}
}

// checkNames looks for rules that speak of no call because of how something is
// written: in a flag or a variable that is a mistake. A file may name tools of
// modules that are not here, and is warned about.
func (a *app) checkNames(catalog *tool.Catalog) (warned int, err error) {
	known := []*tool.Catalog{catalog}
	if builtin, err := registry.Builtin(); err == nil { // a build without tools has none to compare with
		known = append(known, builtin)
	}
	for _, l := range a.Layers {
		for _, r := range slices.Concat(l.Ceiling.Rules, l.Answers) {
			doubt := inWords(r.Doubt(a.tier, known...))
			switch {
			case doubt == "":
			case r.Source == policy.SourceFlag:
				return 0, usageError("`stockade tool list` shows the tools", "--deny %s: %s", r, doubt)
			case r.Source == policy.SourceEnv:
				return 0, usageError("`stockade tool list` shows the tools", "%s: %s: %s", settings.DenyVariable, r, doubt)
			default:
				warned++
				a.s.note("warning: %s: the rule %q: %s", r.Origin, r, doubt)
			}
		}
	}
	return warned, nil
}

// remember keeps an answer "always" or "project".
func (a *app) remember(r policy.Rule) error { return a.Dirs.Remember(r, a.known.Text) }
