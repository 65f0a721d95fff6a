package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/settings"
	"github.com/stockade-dev/stockade/host/tool"
)

// checkNames looks for rules that speak of no call because of how something is
// written: in a flag or a variable that is a mistake. A file may name tools of
// modules that are not here, and is warned about.
func (a *app) checkNames(catalog *tool.Catalog) (warned int, err error) {
	known := []*tool.Catalog{catalog}
	if builtin, err := a.catalog(); err == nil { // a build without tools has none to compare with
		known = append(known, builtin)
	}
	for _, l := range a.layers {
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

// permitModel checks who would be asked, before anything is sent there.
func (a *app) permitModel(provider, base string) error {
	if ok, from := policy.Permits(a.ceiling.Providers, provider); !ok {
		return &exitErr{code: exitDenied, message: fmt.Sprintf("the provider %q is not permitted: %s", provider, from),
			hint: permitted(a.ceiling.Providers, "--provider ")}
	}
	if provider == providerOffline {
		return nil // served by this process
	}
	if ok, from := policy.Permits(a.ceiling.BaseURLs, base); !ok {
		name := fmt.Sprintf("the address %q of the provider", base)
		if base == "" {
			name = "the provider's own address"
		}
		return &exitErr{code: exitDenied, message: fmt.Sprintf("%s is not permitted: %s", name, from), hint: permitted(a.ceiling.BaseURLs, "model.base_url = ")}
	}
	return nil
}

// permitted names what one layer permits.
func permitted(lists []policy.List, before string) string {
	for _, l := range lists {
		if len(l.Values) > 0 {
			return "permitted: " + before + strings.Join(l.Values, ", "+before)
		}
	}
	return ""
}

// permitMounts says which mounts the ceiling leaves out or narrows. It is the
// policy that does so.
func (a *app) permitMounts(mounts []policy.Mount) []policy.Mount {
	var out []policy.Mount
	for _, m := range mounts {
		kept, ok, from := a.ceiling.PermitsMount(m)
		switch {
		case !ok:
			a.s.note("warning: tools are not shown %s: %s", m.Host, from)
			continue
		case kept != m:
			a.s.note("warning: tools can only read %s: %s", m.Host, from)
		}
		if m.Host == "/" && m.Host != a.work {
			a.s.note("warning: / is mounted; every tool can read all that you can, but for /proc, /sys and /dev")
			a.s.hint("mount the directories that tools need")
		}
		out = append(out, kept)
	}
	return out
}

// ours is the configuration that no guest sees and that is no folder of ours.
func (a *app) ours() []string { return a.settings().Masked() }
