package main

import (
	"slices"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/settings"
	"github.com/stockade-dev/stockade/host/tool"
)

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
			doubt := inWords(r.Doubt(policy.TierNone, known...))
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
