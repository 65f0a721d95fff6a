package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/BurntSushi/toml"

	"github.com/stockade-dev/stockade/host/config/keys"
	"github.com/stockade-dev/stockade/sdk/go/nearest"
)

// entryKey is a key that each table below a chosen name has, such as model in every
// [profiles.NAME]. The environment cannot set these keys.
type entryKey struct {
	keys.Key // its name has a word in the place of the chosen name

	class    class
	complete func(key) *key // returns the key for one table, with its accessors
}

// Words in the name of an entryKey, in the place of the name that the file has.
const (
	profileWord = "PROFILE"
	priceWord   = "MODEL"
)

// Limits on profiles and prices: their number, and the bytes of a name. More is an error.
const (
	maxProfiles    = 64
	maxPrices      = 128
	maxProfileName = 64
	maxModelName   = 256
)

var entryTable = []entryKey{
	profileField("provider", keys.Choice(Providers...), `"openai"`, authority,
		"Another way to a model: `stockade --profile work`, or /model work in a chat, or profile = \"work\" above. Each key means what it does in [model]; provider is needed. A project's file can define a profile once you have trusted it, and never name its key.",
		func(p *Profile) *string { return &p.Provider }),
	profileField("model", text(maxModelName, true), `"gpt-5"`, authority,
		"The name of the model.",
		func(p *Profile) *string { return &p.Name }),
	profileField("base_url", baseURL, `""`, authority,
		"The address of the provider. Empty: its own. A profile with an address gets only the key that it names itself, with api_key_env or key.",
		func(p *Profile) *string { return &p.BaseURL }),
	profileField("api_key_env", variable, `""`, private,
		"The environment variable that holds the key. Empty: the provider's usual one.",
		func(p *Profile) *string { return &p.APIKeyEnv }),
	profileField("key", secretName, `""`, private,
		"The name of the secret that holds the key, in place of a variable.",
		func(p *Profile) *string { return &p.Key }),
	profileField("stall_timeout", keys.Duration(time.Second, time.Hour), `"300s"`, authority,
		"How long the provider may be silent. Not set: as in [model].",
		func(p *Profile) *time.Duration { return &p.StallTimeout }).withCap("model.stall_timeout"),
	profileField("max_attempts", keys.Integer(1, 20, ""), "4", authority,
		"How often one request is tried. Not set: as in [model].",
		func(p *Profile) *int { return &p.MaxAttempts }).withCap("model.max_attempts"),
	profileField("context_tokens", keys.Integer(0, 100_000_000, "tokens"), "0", authority,
		"How many tokens the context of the model holds. 0: not known.",
		func(p *Profile) *int { return &p.ContextTokens }),
	profileField("reasoning", reasoning, `""`, authority,
		"How much the model thinks before it answers. Empty: the provider's default.",
		func(p *Profile) *string { return &p.Reasoning }),
	profileField("fallback", profileNames, "[]", authority,
		`The profiles that are asked instead if this one fails; "model" stands for [model]. Their own fallbacks are not asked.`,
		func(p *Profile) *[]string { return &p.Fallback }),

	priceField("input", "The price of a million tokens of requests to a model; with prices, the cost of each turn is shown. The name is that of the model, or the beginning of the names of several; the longest one counts. No prices are built in. Input and output are both needed.",
		func(p *Price) *float64 { return &p.Input }),
	priceField("output", "The price of a million tokens of answers.",
		func(p *Price) *float64 { return &p.Output }),
	priceField("cached_input", "The price of a million tokens of a request that the provider has in its cache. Not set: as input.",
		func(p *Price) *float64 { return &p.CachedInput }),
	priceField("cache_write", "The price of a million tokens that the provider puts into its cache, if it reports them. Not set: as input.",
		func(p *Price) *float64 { return &p.CacheWrite }),
}

// profileField returns a key of each [profiles.NAME].
func profileField[T any](name string, k keys.Kind, example string, class class, doc string, at func(*Profile) *T) entryKey {
	return entryField("profiles."+profileWord+"."+name, k, example, class, doc, func(c *Config) *map[string]Profile { return &c.Profiles }, at)
}

// priceField returns a key of each [prices.NAME].
func priceField(name, doc string, at func(*Price) *float64) entryKey {
	return entryField("prices."+priceWord+"."+name, keys.Amount(1_000_000, "US dollars"), "0", preference, doc, func(c *Config) *map[string]Price { return &c.Prices }, at)
}

// entryField returns an entryKey whose value is a field of an entry in a map of [Config].
func entryField[E, T any](name string, k keys.Kind, example string, class class, doc string, in func(*Config) *map[string]E, at func(*E) *T) entryKey {
	return entryKey{keys.Key{Name: name, Kind: k, Note: classNotes[class], Example: example, Doc: doc}, class, func(k key) *key {
		k.get = func(c *Config) any {
			e := (*in(c))[k.entryName]
			return *at(&e)
		}
		k.set = func(c *Config, v any) {
			m := in(c)
			if *m == nil {
				*m = map[string]E{}
			}
			e := (*m)[k.entryName]
			*at(&e) = v.(T)
			(*m)[k.entryName] = e
		}
		return &k
	}}
}

// withCap applies the administrator's limit on another key to this key, too.
func (n entryKey) withCap(limit string) entryKey {
	complete := n.complete
	n.complete = func(k key) *key { k.cappedBy = limit; return complete(k) }
	return n
}

// keyFor returns the key for the table with this name.
func (n entryKey) keyFor(name string) *key {
	words := strings.Split(n.Name, ".")
	full := toml.Key{words[0], name, words[2]}.String() // quotes a name that TOML would not take bare
	k := n.Key
	k.Name = full
	return n.complete(key{Key: k, class: n.class, entryName: name})
}

// compare orders two keys below names: profiles before prices, then by name, then in the order
// of the sample.
func (k *key) compare(other *key) int {
	place := func(k *key) (table string, index int) {
		table, _, _ = strings.Cut(k.Name, ".")
		last := k.Name[strings.LastIndexByte(k.Name, '.'):]
		return table, slices.IndexFunc(entryTable, func(n entryKey) bool { return strings.HasPrefix(n.Name, table) && strings.HasSuffix(n.Name, last) })
	}
	table, index := place(k)
	otherTable, otherIndex := place(other)
	return cmp.Or(strings.Compare(otherTable, table), strings.Compare(k.entryName, other.entryName), index-otherIndex)
}

func checkName(table, name string) error {
	if table == "profiles" {
		return checkProfileName(name)
	}
	if name == "" || len(name) > maxModelName || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("%.80q is no name of a model", name)
	}
	return nil
}

func checkProfileName(name string) error {
	switch {
	case !profileNameRE().MatchString(name):
		return fmt.Errorf("%.80q is no name of a profile: write letters, digits, '.', '_' and '-', at most %d, the first a letter or a digit", name, maxProfileName)
	case name == ModelProfile:
		return fmt.Errorf("%q is the name of what [model] says; write another", name)
	}
	return nil
}

// ModelProfile is the name by which profiles refer to [model].
const ModelProfile = "model"

// Providers are the names of all providers. Package door opens them.
var Providers = []string{"openai", "openai-responses", "anthropic", "google", "ollama", "xai", "meta", "offline"}

// family returns the provider whose addresses, keys and models a provider uses; often itself.
func family(provider string) string {
	switch provider {
	case "auto", "offline", "openai-responses":
		return "openai"
	}
	return provider
}

// resetKeys returns the names of the keys that lose their values when k changes to v: settings
// for one server do not fit another.
func (k *key) resetKeys(c *Config, v any) (names []string) {
	table, last, _ := strings.Cut(k.Name, ".")
	switch {
	case k.Name == "model.provider" && family(v.(string)) != family(c.Model.Provider):
		for _, key := range []string{"name", "base_url", "api_key_env", "key", "context_tokens", "reasoning", "fallback", "input_price", "output_price"} {
			names = append(names, "model."+key)
		}
	case table == "profiles" && (strings.HasSuffix(last, ".provider") || strings.HasSuffix(last, ".base_url")) && k.get(c) != v:
		names = []string{ProfileKey(k.entryName, "api_key_env"), ProfileKey(k.entryName, "key")}
	}
	return names
}

// ProfileKey returns the full name of a key of a profile.
func ProfileKey(name, key string) string { return toml.Key{"profiles", name, key}.String() }

// ProfileNames returns the names of all profiles, [ModelProfile] first.
func (c *Config) ProfileNames() []string {
	return append([]string{ModelProfile}, slices.Sorted(maps.Keys(c.Profiles))...)
}

// ResolveProfile returns a profile. Where it sets no stall timeout or no number of attempts,
// it gets those of [model]. The names "" and "model" mean [model].
func (c *Config) ResolveProfile(name string) (Profile, error) {
	if name == "" || name == ModelProfile {
		return c.Model.Profile, nil
	}
	p, ok := c.Profiles[name]
	if !ok {
		return Profile{}, fmt.Errorf("there is no profile %q%s; there is %s", name, nearest.Hint(name, c.ProfileNames()), strings.Join(c.ProfileNames(), ", "))
	}
	p.StallTimeout, p.MaxAttempts = cmp.Or(p.StallTimeout, c.Model.StallTimeout), cmp.Or(p.MaxAttempts, c.Model.MaxAttempts)
	return p, nil
}

// Check returns an error if a setting names a profile that does not exist, or if a profile has
// no provider or falls back on itself. Call it after all layers have been set.
func (c *Config) Check() error {
	var errs []error
	fail := func(key string, err error) {
		errs = append(errs, fmt.Errorf("%s: %s: %w", strings.TrimPrefix(strings.TrimPrefix(c.Source(key), "user "), "project "), key, err))
	}
	if _, err := c.ResolveProfile(c.Profile); err != nil {
		fail("profile", err)
	}
	for _, name := range c.ProfileNames() {
		p, fallback := c.Model.Profile, "model.fallback"
		if name != ModelProfile {
			p, fallback = c.Profiles[name], ProfileKey(name, "fallback")
			if p.Provider == "" {
				fail(c.firstKeyOf(name), fmt.Errorf("the profile %s has no provider; write one of %s", name, strings.Join(Providers, ", ")))
			}
		}
		for _, other := range p.Fallback {
			switch _, err := c.ResolveProfile(other); {
			case err != nil:
				fail(fallback, err)
			case other == name:
				fail(fallback, errors.New("it names the profile itself"))
			}
		}
	}
	return errors.Join(errs...)
}

// firstKeyOf returns the first key that a profile sets, in the sample's order; empty: none.
func (c *Config) firstKeyOf(profile string) string {
	for _, n := range entryTable {
		if k := n.keyFor(profile); c.entryKeys[k.Name] != nil {
			return k.Name
		}
	}
	return ""
}

// Price returns the price of a model: the entry of prices with its name, or else the longest
// entry with which its name begins, or else the prices in [model] if [model] names this model
// and has both. known is false if there is none.
func (c *Config) Price(model string) (p Price, known bool) {
	best := ""
	for name := range c.Prices {
		if strings.HasPrefix(model, name) && len(name) > len(best) {
			best = name
		}
	}
	if p, known = c.Prices[best]; known {
		return p, true
	}
	if m := c.Model; m.InputPrice > 0 && m.OutputPrice > 0 && m.Name == model {
		return Price{Input: m.InputPrice, Output: m.OutputPrice}, true
	}
	return Price{}, false
}
