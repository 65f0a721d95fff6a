package config

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/stockade-dev/stockade/host/config/keys"
)

// NoCharBudget is the value of [Config.HistoryCharBudget] that limits nothing.
const NoCharBudget = 100_000_000

// Config holds all settings after the layers were merged. Start from [Default] or [Merge]: the
// zero value is not usable. Set and Cap change a copy without an effect on the original.
type Config struct {
	Model    Model
	Profile  string             // name of the profile in use; default "", which is Model, as is "model"
	Profiles map[string]Profile // more models, by the name of the profile; default none
	Prices   map[string]Price   // prices by the name of the model; default none

	MaxToolTurns        int           // limit on the model's steps in one turn; default 50
	MaxToolCallsPerTurn int           // limit on tool calls in one step; default 15
	RepeatedCalls       int           // equal calls with equal results before a turn ends; default 4
	MaxOutputSize       int           // limit on a tool's result, in bytes; default 1048576
	ToolTimeout         time.Duration // limit on one tool call; default 30s
	ToolMemory          int           // limit on the linear memory of one tool call, in bytes; default 268435456
	ToolMemoryTotal     int           // limit on the linear memory of all concurrent calls, in bytes; default 2147483648
	ToolFuel            int           // limit on the fuel of one tool call, in units; default 50000000000
	ToolFuelTotal       int           // limit on the fuel of all calls of a tool in a session, in units; default 2000000000000
	SessionFuel         int           // limit on the fuel of all calls in a session, in units; default 10000000000000
	ToolStore           int           // limit on the bytes that the tools of one module store in a session; default 262144
	SessionStore        int           // limit on the bytes that all tools store in a session; default 1048576
	ToolTokenLimit      int           // limit on the tokens of one result that are sent; default 20000
	HistoryCharBudget   int           // limit on the characters of the conversation that are sent; default 100000000
	Compaction          string        // auto or off: whether a model summarizes a conversation that is too long; default auto
	CompactionProfile   string        // name of the profile that summarizes; default "", the model that is asked
	TurnCalls           int           // limit on the calls of one turn; default 1000000
	TurnTokens          int           // limit on the tokens of one turn; default 1<<50
	SessionTokens       int           // limit on the tokens of a session; default 1<<50
	TurnTime            time.Duration // limit on the time of one turn; default 1000h
	MaxCost             float64       // limit on the cost of a session in US dollars; default 0, none
	RequireConfirmation bool          // every call is asked about, even a safe one; default false
	Auto                bool          // plain changes are made without a question; default false
	SystemPrompt        string        // text added to the system prompt; default none
	AgentsMD            bool          // send AGENTS.md, or else CLAUDE.md, to the model; default true

	Tools   Tools
	Bash    Bash
	UI      UI
	Network Network
	Web     Web
	Mounts  []Mount // directories beside the working directory; default none

	sources   map[string]string // key → its source, see [Config.Source]
	entryKeys map[string]*key   // keys that are set below names, by their full names
}

// Model is the model that answers when no profile is named.
type Model struct {
	Profile
	InputPrice  float64 // US dollars for a million tokens of requests; default 0, not known
	OutputPrice float64 // US dollars for a million tokens of answers; default 0, not known
}

// Profile is a model with its provider and the limits on requests. The defaults are those
// of Model; [Config.ResolveProfile] fills in the limits that a profile does not set.
type Profile struct {
	Provider     string        // one of [Providers], needed in a profile; in Model also "auto", the default there
	Name         string        // name of the model; default "", which only offline permits
	BaseURL      string        // address of the provider; default "", the provider's own
	APIKeyEnv    string        // name of the environment variable with the key; default "", the provider's usual one
	Key          string        // name of the secret that is the API key; default "", none
	StallTimeout time.Duration // limit on the time that the provider sends nothing; default 5m
	MaxAttempts  int           // number of attempts for one request; default 4

	ContextTokens int      // size of the model's context in tokens; default 0, not known
	Reasoning     string   // "low", "medium" or "high"; default "", the provider's default
	Fallback      []string // names of profiles to try if this one fails; default none
}

// Price is the price of a million tokens of a model, in US dollars.
type Price struct {
	Input       float64
	Output      float64
	CachedInput float64 // price of input that the provider has in its cache; 0: as Input
	CacheWrite  float64 // price of input that the provider puts into its cache; 0: as Input
}

// Tools switches groups of tools on and off; all are on by default.
type Tools struct {
	FS         bool     // tools for files and directories
	Exec       bool     // tools that start processes
	Web        bool     // tools that use the network
	Store      bool     // tools that store values in a session
	SystemInfo []string // names of the facts in the result of the tool system_info; default: all
	// Off are names of tools and of modules that are not offered and cannot be called.
	// Default: none.
	Off []string
}

// Bash holds the limits on commands of the bash tool.
type Bash struct {
	Timeout   time.Duration // limit on the time of a command if the call names none; default 30s
	MaxOutput int           // limit on the output of one command, in bytes; default 262144
	// Caches are the names of the user's caches that commands may use, with the toolchains of
	// these: go, npm, cargo, pip. Default: all.
	Caches  []string
	Changes string // effect of a command on files: staged, direct or none; default staged
	Ask     string // changes or always: the time of the question about a staged command; default changes
	MinTier int    // the weakest confinement, a tier from 0 to 3, in which a command may run; default 1
}

// UI holds settings of the terminal.
type UI struct {
	Plain bool // print the chat as lines, and redraw nothing; default false
}

// Web selects the search engine.
type Web struct {
	Search        string // duckduckgo, brave or google; default duckduckgo
	DuckDuckGoURL string // DuckDuckGo's address; default the public one
	BraveURL      string // Brave's address; default the public one
	GoogleURL     string // Google's address; default the public one
	GoogleCX      string // the ID of the person's search engine at Google; default none
}

// Network holds the rules for hosts that tools may reach, and the way to the network.
type Network struct {
	Allow         []string      // rules as network.ParseRule reads them; default none
	Deny          []string      // rules of the same form, which win over Allow; default none
	Proxy         string        // URL of an HTTP proxy; default "", none
	ProxyResolves bool          // the proxy resolves names, and checks addresses itself; default false
	CAFiles       []string      // certificate authorities in PEM, beside the system's; absolute paths, or "~/..."; default none
	Timeout       time.Duration // limit on the time of one request of a tool; default 30s
	MaxRequests   int           // limit on requests of one tool call, including redirects; default 100
	MaxResponse   int           // limit on one answer in bytes, both compressed and decompressed; default 8388608
}

// Mount is a directory that tools may see.
type Mount struct {
	Path     string // absolute, or "~" or "~/..." for the home directory, as in the file
	ReadOnly bool
}

// String returns the mount as in a file: "PATH" or "PATH:ro".
func (m Mount) String() string {
	if m.ReadOnly {
		return m.Path + readOnlySuffix
	}
	return m.Path
}

// Default returns the configuration without any file, variable or flag.
func Default() Config {
	c := Config{sources: make(map[string]string), entryKeys: make(map[string]*key)}
	for _, k := range table {
		k.set(&c, k.def)
		c.sources[k.Name] = "default"
	}
	return c
}

// Source returns the origin of a key's value: "default", "user PATH:LINE", "project
// PATH:LINE", "environment STOCKADE_...", or the source that was given to [Config.Set].
// It is "" for an unknown key.
func (c *Config) Source(key string) string { return c.sources[key] }

// Value returns the value of a key, which must exist, as it is written in a file.
func (c *Config) Value(key string) string { return keys.Format(c.find(key).get(c)) }

// Keys returns the keys of [Keys], and after them the keys that are set below names: keys of
// profiles, then of prices, sorted by name.
func (c *Config) Keys() []string {
	names := Keys()
	for _, k := range slices.SortedFunc(maps.Values(c.entryKeys), (*key).compare) {
		names = append(names, k.Name)
	}
	return names
}

// find returns the key with a name, also of a key in a profile; nil: there is none.
func (c *Config) find(name string) *key {
	if k := cmp.Or(find(name), c.entryKeys[name]); k != nil {
		return k
	}
	for _, n := range entryTable {
		for profile := range c.Profiles {
			if k := n.keyFor(profile); k.Name == name {
				return k
			}
		}
	}
	return nil
}

// Set sets a key from a text, in the form of the environment and of flags: "30s", "true",
// "/data:ro,/src" for a list. source becomes the result of [Config.Source]. The error names
// neither the source nor the key, so that the caller can name the flag.
//
// If the provider of [model] changes, the address, key and model of the old provider go back to
// their defaults, unless both are auto, offline or one of OpenAI's. In a profile, a new provider
// or address resets the key.
func (c *Config) Set(key, text, source string) error {
	k := c.find(key)
	if k == nil {
		return fmt.Errorf("unknown key %q", key)
	}
	v, err := k.Kind.Parse(text)
	if err != nil {
		return err
	}
	c.unshare()
	c.apply(k, v, source)
	return nil
}

// Cap lowers a key of [LimitKeys] to maxValue if it is greater, and reports whether it was.
// Keys of profiles under the same limit are lowered, too. For each lowered key, source becomes
// the result of [Config.Source].
func (c *Config) Cap(name string, maxValue int64, source string) (lowered bool) {
	c.unshare()
	lower := func(k *key) bool {
		old := reflect.ValueOf(k.get(c)) // an int or a time.Duration
		if old.Int() <= maxValue {
			return false
		}
		c.apply(k, reflect.ValueOf(maxValue).Convert(old.Type()).Interface(), source)
		return true
	}
	for _, k := range c.entryKeys {
		if k.cappedBy == name {
			lower(k)
		}
	}
	return lower(find(name))
}

// unshare gives this Config its own copies of the maps that it shares with copies of it.
func (c *Config) unshare() {
	c.sources, c.entryKeys, c.Profiles, c.Prices = maps.Clone(c.sources), maps.Clone(c.entryKeys), maps.Clone(c.Profiles), maps.Clone(c.Prices)
}

// apply sets a checked value. The caller has called unshare.
func (c *Config) apply(k *key, v any, source string) {
	for _, name := range k.resetKeys(c, v) {
		if lost := find(name); lost != nil {
			c.apply(lost, lost.def, "default")
		} else if lost := c.entryKeys[name]; lost != nil {
			lost.set(c, "")
			delete(c.entryKeys, name)
			delete(c.sources, name)
		}
	}
	k.set(c, v)
	c.sources[k.Name] = source
	if k.entryName != "" {
		c.entryKeys[k.Name] = k
	}
}
