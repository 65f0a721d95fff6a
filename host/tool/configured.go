package tool

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// EffectiveConfig is what a module is configured with: the values, by the name of the module,
// in the place of its own. Those are of built-in modules, and of names that they declare.
func (m *Module) EffectiveConfig(values map[string]map[string]string) map[string]string {
	own := values[m.Name]
	if m.Origin != OriginBuiltin || len(own) == 0 {
		return m.Config
	}
	config := maps.Clone(m.Config)
	for name := range config {
		if value, ok := own[name]; ok {
			config[name] = value
		}
	}
	return config
}

// WithConfig is what of the capabilities is asked for where the module is configured
// so: the secrets of which that is said, and the hosts of URLs that are configured.
func (c Capabilities) WithConfig(config map[string]string) Capabilities {
	if len(c.HostsOf) > 0 {
		c.Hosts = slices.Clone(c.Hosts)
		for _, name := range c.HostsOf {
			if host := hostOf(config[name]); host != "" && !slices.Contains(c.Hosts, host) {
				c.Hosts = append(c.Hosts, host)
			}
		}
		c.HostsOf = nil
	}
	if slices.ContainsFunc(c.Secrets, func(s Secret) bool { return s.When != "" }) {
		var secrets []Secret
		for _, s := range c.Secrets {
			name, value, _ := strings.Cut(s.When, "=")
			if s.When != "" && config[name] != value {
				continue
			}
			s.When = ""
			secrets = append(secrets, s)
		}
		c.Secrets = secrets
	}
	return c
}

// hostOf is the host of a URL as a tool asks for it, of http with that before it; "" if
// there is none.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	host, err := NormalHost(u.Host)
	switch {
	case err != nil:
		return ""
	case u.Scheme == "http":
		return "http://" + host
	}
	return host
}

// checkConfigNames finds what depends on a name that the module does not declare.
func (c Capabilities) checkConfigNames(config map[string]string) error {
	names := slices.Clone(c.HostsOf)
	for _, s := range c.Secrets {
		if s.When != "" {
			name, _, ok := strings.Cut(s.When, "=")
			if !ok {
				return fmt.Errorf("capability secrets: %s: when is %.80q, and no NAME=VALUE", s.Name, s.When)
			}
			names = append(names, name)
		}
	}
	for _, name := range names {
		if _, ok := config[name]; !ok {
			return fmt.Errorf("capabilities: the name %.80q is not in the module's config", name)
		}
	}
	return nil
}

// WithConfig is the catalog in which built-in tools ask for what they do where their
// modules are configured with these values, by the name of the module.
func (c *Catalog) WithConfig(values map[string]map[string]string) *Catalog {
	out := &Catalog{entries: maps.Clone(c.entries), names: c.names}
	for name, e := range c.entries {
		if len(values[e.Module.Name]) > 0 && e.Module.Origin == OriginBuiltin && (len(e.Requested.HostsOf) > 0 || len(e.Requested.Secrets) > 0) {
			configured := *e
			configured.Capabilities = e.Requested.WithConfig(e.Module.EffectiveConfig(values))
			out.entries[name] = &configured
		}
	}
	return out
}
