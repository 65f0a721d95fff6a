package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/config/policyfile"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/tool"
)

// administrator is where the administrator's policy is. Nothing that a user of
// the program can set changes it; tests put another function in its place.
var administrator = policyfile.Administrator

// denyVariable holds rules of the environment that deny, one a line.
const denyVariable = "STOCKADE_DENY"

// loadLayers reads what each layer permits. Whatever is wrong with any of them
// stops the program: a policy that cannot be read must not be a missing one.
func (a *app) loadLayers() error {
	a.layers = a.switches()
	for _, l := range []struct {
		place  policyfile.Place
		source policy.Source
		hint   string
	}{
		{administrator(), policy.SourceAdmin, "nothing runs until an administrator has mended it"},
		{policyfile.Own(a.dirs.policyTOML()), policy.SourceUser, "mend the file, or move it away; `stockade policy check FILE` tells when it is good"},
		{policyfile.Place{Path: projectPolicy(a.work), Owner: policyfile.Anybody}, policy.SourceProject, "mend the file, or move it away"},
	} {
		layer, warnings, err := l.place.Read(l.source)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return &exitErr{code: exitUsage, message: fmt.Sprintf("the policy of the %s: %v", l.source, err), hint: l.hint}
		}
		for _, w := range warnings {
			a.s.note("warning: %s", w)
		}
		a.layers = append(a.layers, layer)
	}
	var lines []string
	for line := range strings.Lines(a.s.env(denyVariable)) {
		if line = strings.Trim(line, "\r\n"); line != "" {
			lines = append(lines, line)
		}
	}
	for _, l := range []struct {
		source policy.Source
		name   string
		rules  []string
	}{{policy.SourceEnv, denyVariable, lines}, {policy.SourceFlag, "--deny", a.flags.deny}} {
		layer := policy.Layer{Source: l.source}
		for _, text := range l.rules {
			r, err := policy.ParseDenial(text)
			if err != nil {
				return usageError("", "%s: %v", l.name, err)
			}
			r.Source = l.source
			if l.source == policy.SourceEnv {
				r.Origin = l.name
			}
			layer.Ceiling.Rules = append(layer.Ceiling.Rules, r)
		}
		if len(layer.Ceiling.Rules) > 0 {
			a.layers = append(a.layers, layer)
		}
	}
	a.ceiling = policy.Meet(a.layers)
	if err := a.bindRoute(); err != nil {
		return err
	}
	return a.capSettings()
}

// switches is the layer of the settings that switch tools off.
func (a *app) switches() []policy.Layer {
	layer := policy.Layer{Source: policy.SourceSettings}
	for _, s := range []struct {
		key string
		on  bool
	}{{policy.ExecKey, a.cfg.Tools.Exec}, {policy.FilesKey, a.cfg.Tools.FS}, {policy.NetworkKey, a.cfg.Tools.Web}} {
		if !s.on {
			from := policy.From{Source: policy.SourceSettings, Origin: a.cfg.Source(s.key)}
			layer.Ceiling.Off = append(layer.Ceiling.Off, policy.Line{Value: s.key, From: from})
		}
	}
	if layer.Ceiling.Off == nil {
		return nil
	}
	return []policy.Layer{layer}
}

// bindRoute puts the administrator's proxy, where there is one, in the place of
// what the user has set.
func (a *app) bindRoute() error {
	proxy := policy.RouteOf(a.layers).Proxy
	if proxy == nil {
		return nil
	}
	for _, s := range []struct{ key, value string }{{"network.proxy", proxy.URL}, {"network.proxy_resolves", strconv.FormatBool(proxy.Resolves)}} {
		before, from := a.cfg.Value(s.key), a.cfg.Source(s.key)
		if err := a.cfg.Set(s.key, s.value, proxy.From.String()); err != nil {
			return err
		}
		if from != "default" && a.cfg.Value(s.key) != before {
			a.s.note("warning: %s = %s (%s) is not used: the %s decides", s.key, before, from, proxy.From)
		}
	}
	return nil
}

// projectPolicy is the policy that comes with a workspace.
func projectPolicy(work string) string { return filepath.Join(work, ".stockade", "policy.toml") }

// checkNames looks for rules that speak of no call because of how something is
// written: in a flag or a variable that is a mistake. A file may name tools of
// modules that are not here, and is warned about.
func (a *app) checkNames(catalog *tool.Catalog) (warned int, err error) {
	known := []*tool.Catalog{catalog}
	if builtin, err := registry.Builtin(); err == nil { // a build without tools has none to compare with
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
				return 0, usageError("`stockade tool list` shows the tools", "%s: %s: %s", denyVariable, r, doubt)
			default:
				warned++
				a.s.note("warning: %s: the rule %q: %s", r.Origin, r, doubt)
			}
		}
	}
	return warned, nil
}

// capSettings lowers what the configuration sets to what the layers permit.
func (a *app) capSettings() error {
	for key, most := range a.ceiling.Limits {
		from := a.cfg.Source(key)
		capped, err := a.cfg.Cap(key, most.Value, most.From.String())
		if err != nil {
			return err
		}
		if capped && strings.HasPrefix(from, "flag ") {
			a.s.note("warning: %s is lowered to %s: %s", strings.TrimPrefix(from, "flag "), most, most.From)
		}
	}
	return nil
}

// ours is the configuration that no guest sees and that is no folder of ours.
func (a *app) ours() []string {
	return append(a.dirs.masked(), projectPolicy(a.work))
}

// readAnswers reads the remembered answers, if nobody else could have written
// them.
func (a *app) readAnswers() ([]config.Answer, error) {
	data, err := policyfile.Own(a.dirs.remembered()).Bytes()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var answers []config.Answer
	if err == nil {
		answers, err = config.ParseAnswers(a.dirs.remembered(), data)
	}
	if err != nil {
		return nil, &exitErr{code: exitUsage, message: err.Error(), hint: "mend the file, or remove it to be asked again"}
	}
	return answers, nil
}
