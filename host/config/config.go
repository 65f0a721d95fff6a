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

// Config is every setting after the layers were merged. The zero value is not
// usable: start from [Default] or [Merge]. Copies are independent.
type Config struct {
	Model    Model
	Profile  string             // the name of the profile that answers; default "", which is Model
	Profiles map[string]Profile // other ways to a model, by name; default none
	Prices   map[string]Price   // by the name of the model; default none

	MaxToolTurns        int           // steps of the model in one turn; default 50
	MaxToolCallsPerTurn int           // tool calls in one step; default 15
	RepeatedCalls       int           // the same call with the same result; default 4
	MaxOutputSize       int           // bytes of a tool's result; default 1048576
	ToolTimeout         time.Duration // of one tool call; default 30s
	ToolMemory          int           // bytes of linear memory of one tool call; default 268435456
	ToolMemoryTotal     int           // bytes of linear memory of all calls at the same time; default 2147483648
	ToolFuel            int           // units of fuel of one tool call; default 50000000000
	ToolFuelTotal       int           // units of fuel of all calls of a tool in a session; default 2000000000000
	SessionFuel         int           // units of fuel of all calls in a session; default 10000000000000
	ToolStore           int           // bytes that the tools of a module keep in a session; default 262144
	SessionStore        int           // bytes that all tools keep in a session; default 1048576
	HistoryCharBudget   int           // characters of the conversation that are sent; default 400000
	RequireConfirmation bool          // ask before every call, safe ones too; default false
	SystemPrompt        string        // text added to the system prompt; default none
	AgentsMD            bool          // the model is told what AGENTS.md says; default true

	Tools   Tools
	Bash    Bash
	UI      UI
	Network Network
	Web     Web
	Mounts  []Mount // directories beside the working directory; default none

	sources   map[string]string // what set a key
	entryKeys map[string]*key   // what is set below names
}

// Model says who answers where no profile is named.
type Model struct {
	Profile
	InputPrice  float64 // US dollars for a million tokens; default 0, not known
	OutputPrice float64 // the same, of answers
}

// Profile says who answers, and how patiently the program waits for it. The defaults
// are those of Model; see [Config.ResolveProfile] for what a profile does not say.
type Profile struct {
	Provider     string        // one of [Providers], of Model also "auto"; default "auto", of a profile none
	Name         string        // of the model; default "", which all but the offline model refuse
	BaseURL      string        // of the provider; default "", the provider's own
	APIKeyEnv    string        // the environment variable that holds the key; default "", the provider's usual one
	Key          string        // the name of the secret that is the key; default "", none
	StallTimeout time.Duration // without a byte of the answer; default 60s
	MaxAttempts  int           // for one request, the first one included; default 4

	ContextTokens int      // of its context; default 0, not known
	Reasoning     string   // "low", "medium" or "high"; default "", the provider's own
	Fallback      []string // profiles that are asked instead where this one fails; default none
}

// Price is what a million tokens cost, in US dollars.
type Price struct {
	Input       float64
	Output      float64
	CachedInput float64 // of the input, what comes from a cache; 0: Input
	CacheWrite  float64 // of the input, what goes to one; 0: Input
}

// Tools switches groups of tools; all are on by default.
type Tools struct {
	FS   bool // files and directories
	Exec bool // processes
	Web  bool // the network
	// Store: those that keep things in a session.
	Store bool
	// SystemInfo names what the tool system_info tells.
	SystemInfo []string
	// Off are names of tools and of modules that nobody is offered and nobody can call.
	// Default: none.
	Off []string
}

// Bash limits the bash tool.
type Bash struct {
	Timeout   time.Duration // of one command; default 30s, at most 300s
	MaxOutput int           // bytes of output of one command; default 262144
	// Caches are the names of the user's caches that commands use, with the toolchains
	// that go with them: go, npm, cargo, pip. Default: all.
	Caches  []string
	Changes string // staged, direct or none: what becomes of what a command changes
	Ask     string // changes or always: when a staged command is asked about
	MinTier int    // of confinement, 0 to 3, below which no command runs; default 1
}

// UI says how the terminal is used.
type UI struct {
	Plain bool // the chat is lines from the top to the bottom; default false
}

// Web says who is asked in a search.
type Web struct {
	Search        string // duckduckgo, brave or google; default duckduckgo
	DuckDuckGoURL string // where each is asked; default its own
	BraveURL      string
	GoogleURL     string
	GoogleCX      string // the ID of a search engine of the person's at Google; default none
}

// Network says whom tools may talk to, and how the network is reached.
type Network struct {
	Allow         []string      // rules as network.ParseRule reads them; default none
	Deny          []string      // the same, and they win; default none
	Proxy         string        // URL of an HTTP proxy; default "", none
	ProxyResolves bool          // the proxy gets names, and checks addresses itself; default false
	CAFiles       []string      // absolute, or "~/...", in PEM, beside the system's; default none
	Timeout       time.Duration // of one request of a tool; default 30s
	MaxRequests   int           // of one tool call, redirects counted; default 100
	MaxResponse   int           // bytes of one answer, as it comes and decompressed; default 8388608
}

// Mount is a directory that tools may see.
type Mount struct {
	Path     string // absolute, or "~" or "~/..." for the home directory, as it was written
	ReadOnly bool
}

// String returns the mount as it is written in a file: "PATH" or "PATH:ro".
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

// Source tells what set a key: "default", "user PATH:LINE", "project
// PATH:LINE", "environment STOCKADE_...", or what was given to [Config.Set].
// It is "" for an unknown key.
func (c *Config) Source(key string) string { return c.sources[key] }

// Value is a key's value as it is written in a file.
func (c *Config) Value(key string) string { return keys.Format(c.find(key).get(c)) }

// Keys are those of [Keys], and behind them what is set below names: of profiles, then
// of prices, by their names.
func (c *Config) Keys() []string {
	names := Keys()
	for _, k := range slices.SortedFunc(maps.Values(c.entryKeys), (*key).compare) {
		names = append(names, k.Name)
	}
	return names
}

// find is the key of a name, also of a profile that there is; nil for an unknown one.
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

// Set sets a key from text, as the environment and flags give it: "30s",
// "true", "/data:ro,/src" for a list. Source is what [Config.Source] returns
// for it afterwards. The error names neither the source nor the key, so that
// the caller can name the flag.
//
// Another provider than before has neither the address nor the key nor the model of the
// one before: these go back to their defaults.
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

// Cap lowers a key of class limit to most, if it is higher, and says whether
// it was; those of profiles that stand for it, too. Source is what [Config.Source]
// returns for it then.
func (c *Config) Cap(name string, most int64, source string) (lowered bool) {
	c.unshare()
	lower := func(k *key) bool {
		old := reflect.ValueOf(k.get(c)) // an int or a time.Duration
		if old.Int() <= most {
			return false
		}
		c.apply(k, reflect.ValueOf(most).Convert(old.Type()).Interface(), source)
		return true
	}
	for _, k := range c.entryKeys {
		if k.cappedBy == name {
			lower(k)
		}
	}
	return lower(find(name))
}

// unshare makes what copies of a Config share this one's own.
func (c *Config) unshare() {
	c.sources, c.entryKeys, c.Profiles, c.Prices = maps.Clone(c.sources), maps.Clone(c.entryKeys), maps.Clone(c.Profiles), maps.Clone(c.Prices)
}

// apply sets a checked value, in a Config that shares nothing.
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
