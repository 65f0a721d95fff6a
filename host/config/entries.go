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

// entryKey is a key of each table below a name that a person has chosen, such as
// [profiles.work]. The variables of the environment have no say in them.
type entryKey struct {
	keys.Key // with a word for the name in its own

	class    class
	complete func(key) *key // completes the key of one table
}

// The words that stand for a name.
const (
	profileWord = "PROFILE"
	priceWord   = "MODEL"
)

// Limits on what a file may name.
const (
	maxProfiles    = 64
	maxPrices      = 128
	maxProfileName = 64
	maxModelName   = 256
)

var entryTable = []entryKey{
	profileField("provider", keys.Choice(Providers...), `"openai"`, authority,
		"Another way to a model: `stockade --profile work`, or /model work in a chat, or profile = \"work\" above. Each key means what it does in [model]; provider is needed. A project's file can define a profile once you have trusted it, and never say what key one has.",
		func(p *Profile) *string { return &p.Provider }),
	profileField("model", text(maxModelName, true), `"gpt-5"`, authority,
		"The name of the model.",
		func(p *Profile) *string { return &p.Name }),
	profileField("base_url", baseURL, `""`, authority,
		"Where the provider is reached. Empty: at its own address. A profile with an address gets no key but the one that it names itself, in one of the next two keys.",
		func(p *Profile) *string { return &p.BaseURL }),
	profileField("api_key_env", variable, `""`, private,
		"The environment variable that holds the key. Empty: the provider's usual one.",
		func(p *Profile) *string { return &p.APIKeyEnv }),
	profileField("key", secretName, `""`, private,
		"The name of the secret that holds the key, in place of a variable.",
		func(p *Profile) *string { return &p.Key }),
	profileField("stall_timeout", keys.Duration(time.Second, time.Hour), `"60s"`, authority,
		"How long the provider may be silent. Not set: as in [model].",
		func(p *Profile) *time.Duration { return &p.StallTimeout }).withCap("model.stall_timeout"),
	profileField("max_attempts", keys.Integer(1, 20, ""), "4", authority,
		"How often one request is tried. Not set: as in [model].",
		func(p *Profile) *int { return &p.MaxAttempts }).withCap("model.max_attempts"),
	profileField("context_tokens", keys.Integer(0, 100_000_000, "tokens"), "0", authority,
		"How many tokens the context of the model holds. 0: not known.",
		func(p *Profile) *int { return &p.ContextTokens }),
	profileField("reasoning", reasoning, `""`, authority,
		"How much the model thinks before it answers. Empty: as the provider has it.",
		func(p *Profile) *string { return &p.Reasoning }),
	profileField("fallback", profileNames, "[]", authority,
		`The profiles that are asked instead where this one fails; "model" is what [model] says. Theirs are not.`,
		func(p *Profile) *[]string { return &p.Fallback }),

	priceField("input", "What a million tokens of requests to a model cost, so that the cost of each turn is shown. The name is that of the model, or how the names of several begin; the longest counts. No price is known that no file has. Input and output are needed.",
		func(p *Price) *float64 { return &p.Input }),
	priceField("output", "What a million tokens of answers cost.",
		func(p *Price) *float64 { return &p.Output }),
	priceField("cached_input", "What a million tokens cost that a request repeats and the provider has kept. Not set: as input.",
		func(p *Price) *float64 { return &p.CachedInput }),
	priceField("cache_write", "What a million tokens cost that the provider keeps for the next request, where it says so. Not set: as input.",
		func(p *Price) *float64 { return &p.CacheWrite }),
}

// profileField makes a key of each [profiles.NAME].
func profileField[T any](name string, k keys.Kind, example string, class class, doc string, at func(*Profile) *T) entryKey {
	return entryField("profiles."+profileWord+"."+name, k, example, class, doc, func(c *Config) *map[string]Profile { return &c.Profiles }, at)
}

// priceField makes a key of each [prices.NAME].
func priceField(name, doc string, at func(*Price) *float64) entryKey {
	return entryField("prices."+priceWord+"."+name, keys.Amount(1_000_000, "US dollars"), "0", preference, doc, func(c *Config) *map[string]Price { return &c.Prices }, at)
}

// entryField makes a key whose value lives in one field of an entry of a map.
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

// withCap makes an administrator's limit hold for a key, too.
func (n entryKey) withCap(limit string) entryKey {
	of := n.complete
	n.complete = func(k key) *key { k.cappedBy = limit; return of(k) }
	return n
}

// keyFor is the key in the table of a name.
func (n entryKey) keyFor(name string) *key {
	words := strings.Split(n.Name, ".")
	full := toml.Key{words[0], name, words[2]}.String() // quotes a name that is no bare word
	k := n.Key
	k.Name = full
	return n.complete(key{Key: k, class: n.class, entryName: name})
}

// compare orders keys below names: profiles before prices, then by the name, then as
// the sample has them.
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

// checkName reports what is wrong with the name of a table.
func checkName(table, name string) error {
	if table == "profiles" {
		return checkProfileName(name)
	}
	if name == "" || len(name) > maxModelName || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("%.80q is no name of a model", name)
	}
	return nil
}

// checkProfileName reports what is wrong with the name of a profile.
func checkProfileName(name string) error {
	switch {
	case !profileNameRE().MatchString(name):
		return fmt.Errorf("%.80q is no name of a profile: write letters, digits, '.', '_' and '-', at most %d, the first a letter or a digit", name, maxProfileName)
	case name == ModelProfile:
		return fmt.Errorf("%q is the name of what [model] says; write another", name)
	}
	return nil
}

// ModelProfile is the name of the profile that [model] is.
const ModelProfile = "model"

// Providers are the names of all providers. What each is, package door knows.
var Providers = []string{"openai", "openai-responses", "anthropic", "google", "ollama", "xai", "meta", "offline"}

// family is the provider whose address, key and models another one has, too.
func family(provider string) string {
	switch provider {
	case "auto", "offline", "openai-responses":
		return "openai"
	}
	return provider
}

// resetKeys are the keys that hold no longer when k becomes v: what was said of one server
// is not meant for another.
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

// ProfileKey is the name of a key of a profile.
func ProfileKey(name, key string) string { return toml.Key{"profiles", name, key}.String() }

// ProfileNames are the names of all profiles, [ModelProfile] first.
func (c *Config) ProfileNames() []string {
	return append([]string{ModelProfile}, slices.Sorted(maps.Keys(c.Profiles))...)
}

// ResolveProfile is what a profile says, and where it says nothing of how long is waited and
// how often is tried, what [model] says. Empty or "model" is [model].
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

// Check reports names of profiles that there are not, and profiles that lack something.
// It is called when all layers have been set.
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

// firstKeyOf is a key that is set of a profile.
func (c *Config) firstKeyOf(profile string) string {
	for _, n := range entryTable {
		if k := n.keyFor(profile); c.entryKeys[k.Name] != nil {
			return k.Name
		}
	}
	return ""
}

// Price is what a model costs, by its name: the entry of prices with that name, or the
// longest with which it begins, or else what [model] says of the model that it names.
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
