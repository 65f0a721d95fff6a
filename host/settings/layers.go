package settings

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/config/policyfile"
	"github.com/stockade-dev/stockade/host/policy"
)

// DenyVariable is the environment variable with rules that deny, one on each line.
const DenyVariable = "STOCKADE_DENY"

// loadLayers reads all layers of the policy. A fault in any of them is an error: a policy that
// cannot be read must not count as missing.
func (s *Settings) loadLayers(o Options) error {
	admin := o.Administrator
	if admin == (policyfile.Place{}) {
		admin = policyfile.Administrator()
	}
	s.Layers = s.settingsLayers()
	for _, l := range []struct {
		place  policyfile.Place
		source policy.Source
		hint   string
	}{
		{admin, policy.SourceAdmin, "nothing runs until an administrator has mended it"},
		{policyfile.User(s.Dirs.policyTOML()), policy.SourceUser, "mend the file, or move it away; `stockade policy check FILE` tells when it is good"},
		{policyfile.Place{Path: ProjectPolicy(s.Workspace), Owner: policyfile.Anybody}, policy.SourceProject, "mend the file, or move it away"},
	} {
		layer, warnings, err := l.place.Read(l.source)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return mistake(l.hint, "the policy of the %s: %v", l.source, err)
		}
		for _, w := range warnings {
			s.warn("", "%s", w)
		}
		s.Layers = append(s.Layers, layer)
	}
	var lines []string
	for line := range strings.Lines(o.Env(DenyVariable)) {
		if line = strings.Trim(line, "\r\n"); line != "" {
			lines = append(lines, line)
		}
	}
	for _, l := range []struct {
		source policy.Source
		name   string
		rules  []string
	}{{policy.SourceEnv, DenyVariable, lines}, {policy.SourceFlag, "--deny", o.Deny}} {
		layer := policy.Layer{Source: l.source}
		for _, text := range l.rules {
			r, err := policy.ParseDenial(text)
			if err != nil {
				return mistake("", "%s: %v", l.name, err)
			}
			r.Source = l.source
			if l.source == policy.SourceEnv {
				r.Origin = l.name
			}
			layer.Ceiling.Rules = append(layer.Ceiling.Rules, r)
		}
		if len(layer.Ceiling.Rules) > 0 {
			s.Layers = append(s.Layers, layer)
		}
	}
	s.Ceiling = policy.Combine(s.Layers)
	if err := s.bindRoute(); err != nil {
		return err
	}
	s.capSettings()
	return nil
}

// settingsLayers returns the layer of the settings: the switches, the tools and modules that
// are off, and the lowest tier of a process. Nil: none of these is set.
func (s *Settings) settingsLayers() []policy.Layer {
	layer := policy.Layer{Source: policy.SourceSettings}
	from := func(key string) policy.Provenance {
		return policy.Provenance{Source: policy.SourceSettings, Origin: s.Config.Source(key)}
	}
	for _, w := range []struct {
		key string
		on  bool
	}{{policy.ExecKey, s.Config.Tools.Exec}, {policy.FilesKey, s.Config.Tools.FS}, {policy.NetworkKey, s.Config.Tools.Web}, {policy.StoreSwitchKey, s.Config.Tools.Store}} {
		if !w.on {
			layer.Ceiling.DisabledCapabilities = append(layer.Ceiling.DisabledCapabilities, policy.Setting{Value: w.key, From: from(w.key)})
		}
	}
	for _, name := range s.Config.Tools.Off {
		layer.Ceiling.DisabledNames = append(layer.Ceiling.DisabledNames, policy.Setting{Value: name, From: from(policy.OffKey)})
	}
	if least := s.Config.Bash.MinTier; least > 0 {
		layer.Ceiling.MinTier = &policy.Limit{Value: int64(least), From: from(policy.MinTierKey)}
	}
	if layer.Ceiling.DisabledCapabilities == nil && layer.Ceiling.DisabledNames == nil && layer.Ceiling.MinTier == nil {
		return nil
	}
	return []policy.Layer{layer}
}

// bindRoute replaces the user's proxy by the administrator's, if there is one.
func (s *Settings) bindRoute() error {
	proxy := policy.RouteOf(s.Layers).Proxy
	if proxy == nil {
		return nil
	}
	for _, b := range []struct{ key, value string }{{"network.proxy", proxy.URL}, {"network.proxy_resolves", strconv.FormatBool(proxy.Resolves)}} {
		before, from := s.Config.Value(b.key), s.Config.Source(b.key)
		if err := s.Config.Set(b.key, b.value, proxy.From.String()); err != nil {
			return err
		}
		if from != "default" && s.Config.Value(b.key) != before {
			s.warn("", "%s = %s (%s) is not used: the %s decides", b.key, before, from, proxy.From)
		}
	}
	return nil
}

// capSettings lowers the settings to the limits of the ceiling.
func (s *Settings) capSettings() {
	for key, limit := range s.Ceiling.Limits {
		flag, ok := strings.CutPrefix(s.Config.Source(key), "flag ")
		if s.Config.Cap(key, limit.Value, limit.From.String()) && ok {
			s.warn("", "%s is lowered to %s: %s", flag, limit, limit.From)
		}
	}
}
