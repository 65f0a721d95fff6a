package tool

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// EffectiveConfig returns the configuration of a module. values holds configured values by the
// name of the module and their own names; they replace the module's defaults. Only built-in
// modules are configured, and only names that they declare.
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

// WithConfig returns the capabilities that a tool asks for under a configuration. It leaves
// out secrets whose When does not fit, and adds the hosts of the valid URLs in HostsOf to Hosts.
// HostsOf and each When are empty then.
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

// hostOf returns the host of a URL in the form of Capabilities.Hosts, with "http://" before it
// if the URL is not encrypted. It is empty for any other text, or without a valid host.
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

// checkConfigNames returns an error if a capability depends on a name that is not in config,
// or a When is malformed.
func (c Capabilities) checkConfigNames(config map[string]string) error {
	names := slices.Clone(c.HostsOf)
	for _, s := range c.Secrets {
		if s.When != "" {
			name, _, ok := strings.Cut(s.When, "=")
			if !ok {
				return fmt.Errorf("capability secrets: %s: when is %.80q, not NAME=VALUE", s.Name, s.When)
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

// WithConfig returns a catalog whose built-in tools ask for the capabilities that they need
// under a configuration. values is as in [Module.EffectiveConfig].
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
