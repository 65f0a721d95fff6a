package main

import (
	"context"

	"github.com/stockade-dev/stockade/host/config/policyfile"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/settings"
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

// remember keeps an answer "always" or "project".
func (a *app) remember(r policy.Rule) error { return a.Dirs.Remember(r, a.known.Text) }
