package main

import (
	"context"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/config/policyfile"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/settings"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/sdk/go/nearest"
)

// What tests put something else in the place of: where the administrator's policy
// is, and the home directory of the user's account, for which nil asks the system.
var (
	adminPolicyPlace = policyfile.Administrator
	accountHome      func() string
)

// loadConfig reads what was set for this workspace. Where the command may ask, a
// person is asked about a workspace's file that wants more than it may.
func (a *app) loadConfig(ctx context.Context) error {
	opts := settings.Options{
		Env: a.s.env, Workspace: a.Workspace, Deny: a.flags.deny, Warn: a.warn, SkipTrustWarning: a.trust == trustSkip,
		Flags: []settings.Flag{
			{Name: "--profile", Key: "profile", Value: a.flags.profile},
			{Name: "--provider", Key: "model.provider", Value: a.flags.provider},
			{Name: "--model", Key: "model.name", Value: a.flags.model},
			{Name: "--max-turns", Key: "max_tool_turns", Value: a.flags.maxTurns},
		},
		Administrator: adminPolicyPlace(), AccountHome: accountHome,
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

// checkVariables warns of variables that nothing reads. Other programs can set some, so only a
// name like a known one is an error.
func (a *app) checkVariables(environ []string) error {
	const prefix = "STOCKADE_"
	known := []string{strings.TrimPrefix(settings.DenyVariable, prefix), "MODEL_TOKEN"} // of `model serve`
	for _, key := range config.Keys() {
		known = append(known, strings.TrimPrefix(config.EnvVar(key), prefix))
	}
	for _, text := range environ {
		name, value, _ := strings.Cut(text, "=")
		name, ours := strings.CutPrefix(name, prefix)
		if !ours || value == "" || slices.Contains(known, name) {
			continue
		}
		what, near := "environment: "+prefix+name+" is not read", nearest.Find(name, known)
		if near != "" {
			what += "; did you mean " + prefix + near + "?"
		}
		if near != "" && nearest.Distance(name, near) <= 2 { // letters, which is a typing error
			return usageError("unset it, or write "+prefix+near, "%s", what)
		}
		a.s.note("warning: %s", what)
	}
	return nil
}

func (a *app) warn(text, hint string) {
	a.s.note("warning: %s", text)
	if hint != "" {
		a.s.hint("%s", hint)
	}
}

// checkRuleNames looks for rules that speak of no call because of how something is
// written: in a flag or a variable that is a mistake. A file may name tools of
// modules that are not here, and is warned about.
func (a *app) checkRuleNames(catalog *tool.Catalog) (warned int, err error) {
	known := []*tool.Catalog{catalog}
	if builtin, err := registry.Builtin(); err == nil { // a build without tools has none to compare with
		known = append(known, builtin)
	}
	for _, l := range a.Layers {
		for _, r := range slices.Concat(l.Ceiling.Rules, l.Answers) {
			doubt := hintText(r.Lint(a.tier, known...))
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

// checkToolsOff looks for names in tools.off that are those of no tool and no module, which
// is a mistake in a variable, and a warning about a file.
func (a *app) checkToolsOff(catalog *tool.Catalog) error {
	if len(a.Ceiling.DisabledNames) == 0 {
		return nil
	}
	entries := catalog.Entries()
	if builtin, err := registry.Builtin(); err == nil { // a build without tools has none to compare with
		entries = append(entries, builtin.Entries()...)
	}
	var known []string
	for _, e := range entries {
		known = append(known, e.Name, e.Module.Name)
	}
	records, err := a.moduleStore().Records()
	if err != nil {
		return err
	}
	for _, r := range records { // of which some are not offered
		known = append(known, r.Name)
		for _, s := range r.Manifest.Tools {
			known = append(known, r.Name+"_"+s.Name)
		}
	}
	for _, l := range a.Ceiling.DisabledNames {
		switch {
		case slices.Contains(known, l.Value):
		case strings.HasPrefix(l.From.Origin, "environment "):
			return usageError("`stockade tool list` shows both", "%s: there is no tool and no module %q%s", l.From.Origin, l.Value, nearest.Hint(l.Value, known))
		default:
			a.s.note("warning: %s: %s: no tool and no module %q is known here%s", l.From.Origin, policy.OffKey, l.Value, nearest.Hint(l.Value, known))
		}
	}
	return nil
}

// remember keeps an answer "always" or "project".
func (a *app) remember(r policy.Rule) error { return a.Dirs.Remember(r, a.redactor.Text) }
