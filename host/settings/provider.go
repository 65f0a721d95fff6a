package settings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/secret"
	"github.com/stockade-dev/stockade/host/tool"
)

// Keys are the places that keys of providers come from.
type Keys struct {
	Env     func(string) string // returns an environment variable; empty: it is not set
	Secrets *secret.Vault       // required if a profile names a secret
}

// Provider returns the provider of a profile, with the address of its model, the key for that
// server, and the profiles to fall back on. An empty name stands for the selected profile. rules are
// the network rules.
//
// A key is sent only to a server that it is meant for:
//
//   - The key in a provider's usual variable goes to the provider's own address, to the
//     address in its usual variable, and to that of [model].
//   - A profile with a server of its own gets the key that it names, or none.
//   - A server that a variable names gets the key of the usual variable, or none. That another
//     key is named is an error.
//   - A secret goes to the hosts that it is bound to (if to none, to any), over https or to this
//     machine.
func (s *Settings) Provider(ctx context.Context, name string, keys Keys, rules []network.Rule) (*door.Provider, error) {
	p, fallback, err := s.provider(ctx, cmp.Or(name, s.Config.Profile, config.ModelProfile), keys, rules)
	if err != nil {
		return nil, err
	}
	for _, other := range fallback {
		o, _, err := s.provider(ctx, other, keys, rules)
		if err != nil {
			s.warn("", "%s cannot be asked where %s fails: %v", other, p.Profile, err)
			continue
		}
		p.Fallback = append(p.Fallback, *o)
	}
	if other := s.Config.CompactionProfile; other != "" && s.Config.Compaction != "off" {
		if p.Summarizer, _, err = s.provider(ctx, other, keys, rules); err != nil {
			return nil, fmt.Errorf("compaction_profile: %w", err)
		}
	}
	return p, nil
}

// provider returns the provider of one profile, and the names of the profiles to fall back on.
func (s *Settings) provider(ctx context.Context, name string, keys Keys, rules []network.Rule) (*door.Provider, []string, error) {
	profile, err := s.Config.ResolveProfile(name)
	if err != nil {
		return nil, nil, mistake("`stockade model list` shows the profiles", "%v", err)
	}
	kind, ok := door.ProviderKindOf(profile.Provider)
	if !ok {
		return nil, nil, mistake("", "this build has no provider %q", profile.Provider)
	}
	p := &door.Provider{Name: profile.Provider, Profile: name, Attempts: profile.MaxAttempts, Rules: rules}
	p.Client.Model, p.Client.StallTimeout, p.Client.BaseURL = profile.Name, profile.StallTimeout, profile.BaseURL
	p.Client.ContextTokens, p.Client.ReasoningEffort = profile.ContextTokens, profile.Reasoning
	server := serverOf{name: name, kind: kind, profile: profile}
	if name == config.ModelProfile {
		if variable, ok := strings.CutPrefix(s.Config.Source("model.base_url"), "environment "); ok {
			server.variable = variable
		}
	} else if profile.BaseURL == "" && profile.APIKeyEnv == "" && profile.Key == "" {
		if p.Client.BaseURL, err = addressIn(kind, keys.Env); err != nil {
			return nil, nil, err
		}
		if p.Client.BaseURL != "" {
			server.variable = kind.AddressVariable
		}
	}
	server.address = cmp.Or(p.Client.BaseURL, kind.Address)
	if p.Client.APIKey, p.Client.KeySource, err = s.key(ctx, server, keys); err != nil {
		return nil, nil, err
	}
	if price, known := s.Config.Price(profile.Name); known {
		p.Price = (*llm.Price)(&price)
	}
	return p, profile.Fallback, nil
}

// serverOf is the server of a profile, and the origin of its address.
type serverOf struct {
	kind     door.ProviderKind
	profile  config.Profile
	name     string // name of the profile
	variable string // environment variable that names the address; empty: none
	address  string
}

// key returns the key for a server, and the place that it comes from or is expected in. An
// empty key: there is none, or the server needs none.
func (s *Settings) key(ctx context.Context, to serverOf, keys Keys) (key, from string, err error) {
	usual := ""
	for _, name := range to.kind.KeyVariables {
		if from = cmp.Or(from, name); usual == "" && keys.Env(name) != "" {
			usual, from = keys.Env(name), name
		}
	}
	named := cmp.Or(to.profile.APIKeyEnv, to.profile.Key)
	switch {
	case to.kind.Address == "":
		return "", "", nil
	case named != "":
	case to.name != config.ModelProfile && to.variable == "" && to.profile.BaseURL != "" && !sameServer(to.profile.BaseURL, to.kind.Address):
		return "", config.ProfileKey(to.name, "api_key_env") + " or " + config.ProfileKey(to.name, "key"), nil
	default:
		return usual, from, nil
	}
	if to.profile.Key != "" {
		from = "the secret " + to.profile.Key
	} else if key, from = keys.Env(to.profile.APIKeyEnv), to.profile.APIKeyEnv; key == "" {
		return "", from, nil
	}
	if to.variable != "" && !slices.Contains(to.kind.KeyVariables, from) {
		return "", "", mistake(fmt.Sprintf("set model.base_url in %s, or unset %s", s.Dirs.AgentTOML(), to.variable),
			"the server is named by %s in the environment, and such a server gets only the key in %s; %s names %s",
			to.variable, strings.Join(to.kind.KeyVariables, " or "), map[bool]string{true: "model.key", false: "model.api_key_env"}[to.profile.Key != ""], named)
	}
	if to.profile.Key != "" {
		key, err = s.secretFor(ctx, to, keys.Secrets)
	}
	return key, from, err
}

// secretFor returns the value of the secret of a profile. It fails if the secret may not be
// sent to the server.
func (s *Settings) secretFor(ctx context.Context, to serverOf, secrets *secret.Vault) (string, error) {
	name := to.profile.Key
	record, err := secrets.Get(ctx, name)
	if errors.Is(err, secret.ErrNotFound) {
		return "", mistake("store it: stockade secret set "+name, "the key for %s is the secret %s, which does not exist", to.address, name)
	}
	if err != nil {
		return "", mistake("", "the key for %s: %v", to.address, err)
	}
	u, err := url.Parse(to.address)
	if err != nil {
		return "", mistake("", "%s: %v", to.address, err)
	}
	host, err := tool.NormalHost(u.Host)
	if err != nil {
		return "", mistake("", "%s: %v", to.address, err)
	}
	switch {
	case u.Scheme != "https" && !secret.IsLoopback(u.Hostname()):
		return "", mistake("use https, or a key in a variable", "the secret %s is not sent to %s: anybody on the way could read it", name, to.address)
	case len(record.Hosts) > 0 && !slices.Contains(record.Hosts, host):
		return "", mistake(fmt.Sprintf("bind it to that host, too: stockade secret set %s --host %s", name, host),
			"the secret %s is not sent to %s: it is bound to %s", name, host, strings.Join(record.Hosts, ", "))
	case record.Header != "" && !strings.EqualFold(record.Header, to.kind.Header):
		return "", mistake(fmt.Sprintf("stockade secret set %s --header %s", name, to.kind.Header),
			"the secret %s may be sent in the header %s only, and %s wants its key in %s", name, record.Header, to.kind.Name, to.kind.Header)
	}
	return record.Value.Reveal(), nil
}

// sameServer reports whether two addresses have the same scheme, host and port.
func sameServer(a, b string) bool {
	x, err := url.Parse(a)
	y, err2 := url.Parse(b)
	return err == nil && err2 == nil && x.Scheme == y.Scheme && strings.EqualFold(x.Host, y.Host)
}

// setServerAddress sets the address of [model] from its provider's usual variable, if nothing
// else sets it.
func (s *Settings) setServerAddress(env func(string) string) error {
	if s.Config.Source("model.base_url") != "default" {
		return nil
	}
	kind, _ := door.ProviderKindOf(s.Config.Model.Provider)
	base, err := addressIn(kind, env)
	if err != nil || base == "" {
		return err
	}
	return s.Config.Set("model.base_url", base, "environment "+kind.AddressVariable)
}

// addressIn returns the address in a provider's usual variable; empty: there is none. It fails
// if the variable holds no address.
func addressIn(kind door.ProviderKind, env func(string) string) (string, error) {
	base := kind.AddressIn(env)
	check := config.Default()
	if err := check.Set("model.base_url", base, ""); err != nil {
		return "", mistake("", "%s: %v", kind.AddressVariable, err)
	}
	return base, nil
}
