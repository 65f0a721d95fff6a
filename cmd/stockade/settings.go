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

// Tests replace these: the place of the administrator's policy, and the function that returns
// the home directory of the user's account (nil: the system is asked).
var (
	adminPolicyPlace = policyfile.Administrator
	accountHome      func() string
)

// loadConfig reads the settings for this workspace. If a file of the workspace requests more
// than it may set, the person is asked about the file, if the command may ask.
func (a *app) loadConfig(ctx context.Context) error {
	opts := settings.Options{
		Env: a.s.env, Workspace: a.Workspace, Deny: a.flags.deny, Warn: a.warn, SkipTrustWarning: a.trust == trustSkip,
		Flags: []settings.Flag{
			{Name: "--profile", Key: "profile", Value: a.flags.profile},
			{Name: "--provider", Key: "model.provider", Value: a.flags.provider},
			{Name: "--model", Key: "model.name", Value: a.flags.model},
			{Name: "--auto", Key: "auto", Value: a.flags.auto},
			{Name: "--max-turns", Key: "max_tool_turns", Value: a.flags.maxTurns},
			{Name: "--max-cost", Key: "max_cost", Value: a.flags.maxCost},
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

// checkVariables warns of environment variables with our prefix that nothing reads. If the
// name of such a variable differs from a known one by one or two letters, it returns an error;
// the others may belong to other programs.
func (a *app) checkVariables(environ []string) error {
	const prefix = "STOCKADE_"
	known := []string{strings.TrimPrefix(settings.DenyVariable, prefix), "MODEL_TOKEN"} // of `model serve`
	for _, key := range config.Keys() {
		known = append(known, strings.TrimPrefix(config.EnvVar(key), prefix))
	}
	for _, text := range environ {
		name, value, _ := strings.Cut(text, "=")
		name, isOurs := strings.CutPrefix(name, prefix)
		if !isOurs || value == "" || slices.Contains(known, name) {
			continue
		}
		what, near := "environment: "+prefix+name+" is not read", nearest.Find(name, known)
		if near != "" {
			what += "; did you mean " + prefix + near + "?"
		}
		if near != "" && nearest.Distance(name, near) <= 2 { // letters: a typing mistake
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

// checkRuleNames looks for rules that, as they are written, match no call or never count. Such
// a rule in --deny or its variable is an error. In a file it is a warning, because a file may
// name tools of modules that are not installed here. warned is the number of warnings.
func (a *app) checkRuleNames(catalog *tool.Catalog) (warned int, err error) {
	known := []*tool.Catalog{catalog}
	if builtin, err := registry.Builtin(); err == nil { // a build without tools cannot compare names
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

// checkToolsOff looks for names in tools.off that no tool and no module has. Such a name is an
// error in a variable, and a warning in a file.
func (a *app) checkToolsOff(catalog *tool.Catalog) error {
	if len(a.Ceiling.DisabledNames) == 0 {
		return nil
	}
	entries := catalog.Entries()
	if builtin, err := registry.Builtin(); err == nil { // a build without tools cannot compare names
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
	for _, r := range records { // some of them are not offered
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

// remember stores an answer whose scope is "always" or "project".
func (a *app) remember(r policy.Rule) error { return a.Dirs.Remember(r, a.redactor.Text) }
