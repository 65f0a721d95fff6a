package config

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/config/keys"
)

// class decides how a project file may change a key. A user file and flags may set any key,
// and the environment may set the keys of all classes but reach, private and userOnly.
type class int

const (
	authority  class = iota // the server that gets the conversation, and text for the model
	preference              // a setting that changes no access
	limit                   // a number or a time that a project may only lower
	switchOff               // a switch that a project may only turn off
	switchOn                // a switch that a project may only turn on
	addOnly                 // a list to which a project may only add
	// reach is the class of the hosts that tools can reach and the files that they see. A
	// project needs trust, as for authority, but the environment cannot set the key: programs
	// that set variables when a person enters a directory read them from the project, and
	// nobody sees them.
	reach
	private  // selects one of the user's secrets; never from a project
	userOnly // confinement of commands, facts of the machine; the network's refusals, proxy and certificates
)

// classNotes explains each class in a few words, for the sample.
var classNotes = [...]string{
	authority:  "authority: a project file can set it once you have trusted that file",
	preference: "preference: a project file can set it",
	limit:      "limit: a project file can only lower it",
	switchOff:  "switch: a project file can only turn it off",
	switchOn:   "switch: a project file can only turn it on",
	addOnly:    "switch: a project file can only add to it",
	reach:      "authority: a project file can set it once you have trusted that file; not from the environment",
	private:    "authority: never from a project file; not from the environment",
	userOnly:   "authority: only your own file can set it; not from the environment",
}

// needsTrust reports whether a project file must be trusted to set the key.
func (c class) needsTrust() bool { return c == authority || c == reach }

// fileOnly reports whether only a file or a flag can set the key, and not the environment.
func (c class) fileOnly() bool { return c == reach || c == private || c == userOnly }

// key is one key of agent.toml: its entry in the file's table, and its accessors. Only table
// and [entryKey] make such keys.
type key struct {
	keys.Key // its Example is the default, except for a key below a name

	class class
	get   func(*Config) any // returns the value in the type of the kind
	set   func(*Config, any)
	def   any

	entryName string // for a key below a name, the name in the file, see [entryKey]; else empty
	cappedBy  string // another key whose administrator's limit also applies to this key; empty: none
}

var table = []key{
	field("max_tool_turns", keys.Integer(1, 10_000, ""), 50, limit,
		"How many steps the model may take in one turn; a step is one answer of the model with the tool calls in it.",
		func(c *Config) *int { return &c.MaxToolTurns }),
	field("max_tool_calls_per_turn", keys.Integer(1, 1000, ""), 15, limit,
		"How many tools the model may call in one step.",
		func(c *Config) *int { return &c.MaxToolCallsPerTurn }),
	field("repeated_calls", keys.Integer(2, 1000, ""), 4, limit,
		"How often the model may make the same call and come to the same result, with nothing new between, before the turn ends. It is told from the second time on.",
		func(c *Config) *int { return &c.RepeatedCalls }),
	field("max_output_size", keys.Integer(1024, 64<<20, "bytes"), 1048576, limit,
		"The largest result of a tool, in bytes. Of more, the head and the tail are kept.",
		func(c *Config) *int { return &c.MaxOutputSize }),
	field("tool_timeout", keys.Duration(time.Second, time.Hour), 30*time.Second, limit,
		"How long one tool call may run. The commands of bash have their own limit, bash.timeout.",
		func(c *Config) *time.Duration { return &c.ToolTimeout }),
	field("tool_memory", keys.Integer(1<<20, 4<<30, "bytes"), 268435456, limit,
		"How much memory one tool call may use, in bytes.",
		func(c *Config) *int { return &c.ToolMemory }),
	field("tool_memory_total", keys.Integer(1<<20, 1<<40, "bytes"), 2147483648, limit,
		"How much memory all tool calls that run at the same time may use together, in bytes.",
		func(c *Config) *int { return &c.ToolMemoryTotal }),
	field("tool_fuel", keys.Integer(1_000_000, 1<<60, "units"), 50000000000, limit,
		"How much fuel one tool call may use. A unit is about one instruction; a second of work is half to five thousand million of them.",
		func(c *Config) *int { return &c.ToolFuel }),
	field("tool_fuel_total", keys.Integer(1_000_000, 1<<60, "units"), 2000000000000, limit,
		"How much fuel all calls of one tool may use in a session.",
		func(c *Config) *int { return &c.ToolFuelTotal }),
	field("session_fuel", keys.Integer(1_000_000, 1<<60, "units"), 10000000000000, limit,
		"How much fuel all tool calls may use in a session.",
		func(c *Config) *int { return &c.SessionFuel }),
	field("tool_store", keys.Integer(4096, 64<<20, "bytes"), 262144, limit,
		"How much the tools of one module may keep in a session, in bytes: keys, values, and 64 bytes for each.",
		func(c *Config) *int { return &c.ToolStore }),
	field("session_store", keys.Integer(4096, 64<<20, "bytes"), 1048576, limit,
		"How much the tools of all modules may keep in a session, in bytes. What they write may take 16 times as much of its log.",
		func(c *Config) *int { return &c.SessionStore }),
	field("tool_token_limit", keys.Integer(100, 100_000_000, "tokens"), 20000, limit,
		"How much of one result the model gets, in tokens, with three characters counted as one: the head and the tail. The model can read the rest with file_read.",
		func(c *Config) *int { return &c.ToolTokenLimit }),
	field("history_char_budget", keys.Integer(1000, NoCharBudget, "characters"), NoCharBudget, limit,
		"How many characters of the conversation are sent to the model at most, whatever its context holds (see model.context_tokens).",
		func(c *Config) *int { return &c.HistoryCharBudget }),
	field("compaction", keys.Choice("auto", "off"), "auto", userOnly,
		"What happens when a conversation is too long for the model and old results alone do not make enough room. \"auto\": the model writes a summary, which replaces its older calls and answers. \"off\": it writes none, and only what stockade has recorded itself replaces them. Your own words are always sent as they are.",
		func(c *Config) *string { return &c.Compaction }),
	field("compaction_profile", profileName, "", userOnly,
		"The profile whose model writes these summaries; it gets the conversation. Empty: the model that is asked.",
		func(c *Config) *string { return &c.CompactionProfile }),
	field("turn_calls", keys.Integer(1, 1_000_000, ""), 1_000_000, limit,
		"How many tools the model may call in one turn.",
		func(c *Config) *int { return &c.TurnCalls }),
	field("turn_tokens", keys.Integer(1000, 1<<50, "tokens"), 1<<50, limit,
		"How many tokens the requests and answers of one turn may have together, as the provider reports them.",
		func(c *Config) *int { return &c.TurnTokens }),
	field("session_tokens", keys.Integer(1000, 1<<50, "tokens"), 1<<50, limit,
		"How many tokens the requests and answers of a session may have together.",
		func(c *Config) *int { return &c.SessionTokens }),
	field("turn_time", keys.Duration(time.Second, 1000*time.Hour), 1000*time.Hour, limit,
		"How long one turn may take, with the time in which a question waits for you.",
		func(c *Config) *time.Duration { return &c.TurnTime }),
	field("max_cost", keys.Amount(1_000_000, "US dollars"), 0.0, userOnly,
		"What a session may cost, in US dollars. It needs a price of the model, see prices. 0: no limit. The flag --max-cost sets it for a single run.",
		func(c *Config) *float64 { return &c.MaxCost }),
	field("require_confirmation", keys.Boolean(), false, switchOn,
		"When true, every tool call asks first, the safe ones too.",
		func(c *Config) *bool { return &c.RequireConfirmation }),
	field("auto", keys.Boolean(), false, userOnly,
		"When true, a chat and a run begin in auto: plain changes of files below the working directory are made without a question. What is special, lost to git, or removed in numbers is still asked about; in a run, the answer is no. See `stockade help policy`.",
		func(c *Config) *bool { return &c.Auto }),
	field("system_prompt", text(64<<10, false), "", authority,
		"Text that is added to the system prompt. The model takes it as your words, so a cloned project cannot set it unasked.",
		func(c *Config) *string { return &c.SystemPrompt }),
	field("agents_md", keys.Boolean(), true, switchOff,
		"When true, the model gets the text of AGENTS.md in the workspace, or of CLAUDE.md if there is none. It gets the text as data, and the text permits nothing.",
		func(c *Config) *bool { return &c.AgentsMD }),
	{
		Key: keys.Key{Name: "mounts", Kind: mounts, Note: classNotes[reach], Example: "[]",
			Doc: `Directories that tools may see beside the working directory: "PATH", or "PATH:ro" for reading only. A path is absolute or begins with "~/". The flag --mount adds others.`},
		class: reach, def: []string(nil),
		get: func(c *Config) any { return mountTexts(c.Mounts) },
		set: func(c *Config, v any) { c.Mounts = parseMounts(v.([]string)) },
	},

	field("profile", profileName, "", authority,
		`The profile that is used, by its name in [profiles.NAME]. Empty, or "model": the model of [model]. The flag --profile chooses one for a single run.`,
		func(c *Config) *string { return &c.Profile }),

	field("model.provider", keys.Choice(append([]string{"auto"}, Providers...)...), "auto", authority,
		`Who answers: "openai" is OpenAI or any service with its chat completions (see model.base_url), "openai-responses" OpenAI's newer interface, "offline" needs no network, "auto" is openai when there is a key or a base URL and offline otherwise. See stockade help models.`,
		func(c *Config) *string { return &c.Model.Provider }),
	field("model.name", text(256, true), "", preference,
		"The name of the model. Every provider but offline needs one.",
		func(c *Config) *string { return &c.Model.Name }),
	field("model.base_url", baseURL, "", authority,
		"The address of the provider, such as \"http://localhost:8080/v1\", with its version if it has one, and with ?api-version= if the server wants that. Empty means the provider's own address. It gets your key and your conversations. An address from the environment (also from OPENAI_BASE_URL and the like, if no file sets one) gets only the key in the provider's usual variable.",
		func(c *Config) *string { return &c.Model.BaseURL }),
	field("model.api_key_env", variable, "", private,
		"The name of the environment variable that holds the provider's key. Empty: the one that the provider's own programs read, such as OPENAI_API_KEY or ANTHROPIC_API_KEY. The key itself is never in a file. No environment variable can set this name: together with one for model.base_url, it could send the value of any variable to any server.",
		func(c *Config) *string { return &c.Model.APIKeyEnv }),
	field("model.key", secretName, "", private,
		"The name of the secret that holds the provider's key, as `stockade secret set NAME` keeps it, in place of a variable. It is sent only to the hosts that the secret is bound to.",
		func(c *Config) *string { return &c.Model.Key }),
	field("model.stall_timeout", keys.Duration(time.Second, time.Hour), 5*time.Minute, limit,
		"How long the provider may be silent before the request counts as failed.",
		func(c *Config) *time.Duration { return &c.Model.StallTimeout }),
	field("model.max_attempts", keys.Integer(1, 20, ""), 4, limit,
		"How often one request is tried, the first time included.",
		func(c *Config) *int { return &c.Model.MaxAttempts }),
	field("model.context_tokens", keys.Integer(0, 100_000_000, "tokens"), 0, preference,
		"How many tokens the context of the model holds. No request is larger: old results are left out first. 0: the server is asked, and if it does not tell, 128,000 are assumed. Ollama is asked for a context of this size.",
		func(c *Config) *int { return &c.Model.ContextTokens }),
	field("model.reasoning", reasoning, "", preference,
		"How much the model thinks before it answers. Empty: the provider's default.",
		func(c *Config) *string { return &c.Model.Reasoning }),
	field("model.fallback", profileNames, nil, authority,
		"The profiles that are asked instead, one after the other, when the provider is overloaded, cannot be reached, or its quota is used up. They get the conversation. Empty: none.",
		func(c *Config) *[]string { return &c.Model.Fallback }),
	field("model.input_price", keys.Amount(1_000_000, "US dollars"), 0.0, preference,
		"The price of a million tokens of requests, so that the cost of each turn is shown. It leaves out the provider's discount for cached tokens: see prices. 0: not known, and no cost is shown.",
		func(c *Config) *float64 { return &c.Model.InputPrice }),
	field("model.output_price", keys.Amount(1_000_000, "US dollars"), 0.0, preference,
		"The price of a million tokens of answers.",
		func(c *Config) *float64 { return &c.Model.OutputPrice }),

	field("tools.fs", keys.Boolean(), true, switchOff,
		"Tools for files and directories. When false, no tool that asks for files runs, also of a module that is called by its path.",
		func(c *Config) *bool { return &c.Tools.FS }),
	field("tools.exec", keys.Boolean(), true, switchOff,
		"Tools that start processes. When false, no tool that may start one runs, also of a module that is called by its path.",
		func(c *Config) *bool { return &c.Tools.Exec }),
	field("tools.web", keys.Boolean(), true, switchOff,
		"Tools that reach the network. When false, no tool that asks for it runs, also of a module that is called by its path.",
		func(c *Config) *bool { return &c.Tools.Web }),

	field("tools.store", keys.Boolean(), true, switchOff,
		"Tools that keep things in a session, such as its list of tasks. When false, no tool that asks for a store runs, also of a module that is called by its path.",
		func(c *Config) *bool { return &c.Tools.Store }),
	field("tools.system_info", systemFacts, factNames, userOnly,
		"What the tool system_info tells the model of this machine: \"os\", \"distribution\", \"arch\", \"cpus\", \"memory\" (how much there is), \"timezone\" (its name), \"tier\" (how far commands are confined) and \"version\" (of stockade). An empty list: nothing.",
		func(c *Config) *[]string { return &c.Tools.SystemInfo }),
	field("tools.off", toolNames, nil, addOnly,
		`Tools that nobody is offered and nobody can call, by their names, such as "web_search", and modules, with all of their tools: "git", "tasks". "stockade tool list" shows both.`,
		func(c *Config) *[]string { return &c.Tools.Off }),

	field("bash.timeout", keys.Duration(time.Second, 300*time.Second), 30*time.Second, limit,
		"How long a command of the bash tool may run when the call does not say; at most 300s.",
		func(c *Config) *time.Duration { return &c.Bash.Timeout }),
	field("bash.max_output", keys.Integer(1024, 64<<20, "bytes"), 262144, limit,
		"How much output of a command is kept, in bytes.",
		func(c *Config) *int { return &c.Bash.MaxOutput }),
	field("bash.caches", caches, cacheNames, userOnly,
		"Your caches that commands may use, with the toolchains of your home that go with them: \"go\", \"npm\", \"cargo\", \"pip\". Only the command sees its changes to them, and later commands in the same directory see some (see stockade help bash); your own caches stay as they are.",
		func(c *Config) *[]string { return &c.Bash.Caches }),

	field("bash.min_tier", keys.Integer(0, 3, ""), 1, userOnly,
		"The least tier of confinement in which a command may run: 3 is a world of its own, 2 nearly so, 1 bounds its files and its network but hides nothing inside of a mount, 0 is nothing at all. If this machine has less, no tool starts a process. 0 allows commands with all your rights if nothing confines them. The administrator's bash.min_tier counts where it is higher.",
		func(c *Config) *int { return &c.Bash.MinTier }),

	field("bash.changes", keys.Choice("staged", "direct", "none"), "staged", userOnly,
		"What a command may do to files. \"staged\": the command runs first, on a stage, and its changes are made when you say yes to them; a command that changes nothing needs no answer. If the system has no stage, you are asked before the command runs. \"direct\": you are asked, then the command changes the files. \"none\": it can change no file. See stockade help bash.",
		func(c *Config) *string { return &c.Bash.Changes }),
	field("bash.ask", keys.Choice("changes", "always"), "changes", userOnly,
		"When you are asked about a staged command. \"changes\": after it has run, if it changes files. \"always\": before it runs, and again only if it changes special paths (see stockade help paths).",
		func(c *Config) *string { return &c.Bash.Ask }),

	field("ui.plain", keys.Boolean(), false, preference,
		"When true, the chat is lines from the top to the bottom: nothing moves or is drawn anew, and answers are shown as they come. Long output is not shown in less, either. For screen readers, and for terminals that draw badly. The flag --plain does the same once.",
		func(c *Config) *bool { return &c.UI.Plain }),

	field("network.allow", rules(`["api.example.com", "*.example.org:8443", "http://127.0.0.1:8080"]`), nil, reach,
		`The hosts that tools may talk to: "[http://]HOST[:PORT]"; without http:// it is https. HOST is a name, "*." and a name for all below it, an address or a prefix. Private and other special addresses have to be named as addresses.`,
		func(c *Config) *[]string { return &c.Network.Allow }),
	field("network.deny", rules(`["*.example.com"]`), nil, userOnly,
		"The hosts that neither tools nor the program may talk to, in the same form; without a port, every port is meant. It wins over everything that is allowed.",
		func(c *Config) *[]string { return &c.Network.Deny }),
	field("network.proxy", proxyURL, "", userOnly,
		"The HTTP proxy through which the internet is reached, such as \"http://proxy.example:3128\". Variables such as HTTPS_PROXY are not read. If the administrator's policy names a proxy, that proxy is used instead.",
		func(c *Config) *string { return &c.Network.Proxy }),
	field("network.proxy_resolves", keys.Boolean(), false, userOnly,
		"When true, the proxy gets names instead of addresses, for networks where only the proxy can look them up. It then has to refuse private addresses itself.",
		func(c *Config) *bool { return &c.Network.ProxyResolves }),
	field("network.ca_files", paths, nil, userOnly,
		`Files with certificate authorities in PEM that are trusted beside the system's. A path is absolute or begins with "~/". SSL_CERT_FILE is not read. Those of the administrator's policy are trusted, too.`,
		func(c *Config) *[]string { return &c.Network.CAFiles }),
	field("network.timeout", keys.Duration(time.Second, time.Hour), 30*time.Second, limit,
		"How long one request of a tool may take, with its redirects.",
		func(c *Config) *time.Duration { return &c.Network.Timeout }),
	field("network.max_requests", keys.Integer(1, 10_000, ""), 100, limit,
		"How many requests one tool call may make; each redirect counts.",
		func(c *Config) *int { return &c.Network.MaxRequests }),
	field("network.max_response", keys.Integer(1024, 64<<20, "bytes"), 8388608, limit,
		"How large the body of one answer to a tool may be, in bytes, as it comes and again when it is decompressed.",
		func(c *Config) *int { return &c.Network.MaxResponse }),

	field("web.search", keys.Choice("duckduckgo", "brave", "google"), "duckduckgo", reach,
		`The search engine of web_search. "brave" and "google" need a key, as a secret: see stockade help network. You are asked about the host of the engine unless network.allow has it.`,
		func(c *Config) *string { return &c.Web.Search }),
	field("web.duckduckgo_url", baseURL, "https://html.duckduckgo.com/html/", reach,
		"The address of DuckDuckGo. It gets the queries.",
		func(c *Config) *string { return &c.Web.DuckDuckGoURL }),
	field("web.brave_url", baseURL, "https://api.search.brave.com/res/v1/web/search", reach,
		"The address of Brave. It gets the queries, and the secret brave_search if that is bound to its host.",
		func(c *Config) *string { return &c.Web.BraveURL }),
	field("web.google_url", baseURL, "https://customsearch.googleapis.com/customsearch/v1", reach,
		"The address of Google. It gets the queries, and the secret google_search if that is bound to its host.",
		func(c *Config) *string { return &c.Web.GoogleURL }),
	field("web.google_cx", text(128, true), "", reach,
		"The ID of a search engine that you have made at programmablesearchengine.google.com, which Google wants with a key.",
		func(c *Config) *string { return &c.Web.GoogleCX }),
}

// field returns a key whose value is a field of [Config], to which at points. A test over the
// table proves that the kind returns a T.
func field[T any](name string, k keys.Kind, def T, class class, doc string, at func(*Config) *T) key {
	return key{
		Key: keys.Key{Name: name, Kind: k, Note: classNotes[class], Example: keys.Format(def), Doc: doc}, class: class, def: def,
		get: func(c *Config) any { return *at(c) },
		set: func(c *Config, v any) { *at(c) = v.(T) },
	}
}

// fileKeys holds the keys of both tables, for package keys.
var fileKeys = slices.Concat(keys.TableOf(table, func(k key) keys.Key { return k.Key }), keys.TableOf(entryTable, func(n entryKey) keys.Key { return n.Key }))

// Keys returns the names of the keys with fixed names, in the order of the sample.
func Keys() []string { return fileKeys[:len(table)].Names() }

// LimitKeys returns the names of the keys that an administrator can cap: all keys of class
// limit, in the order of the sample.
func LimitKeys() []string {
	var names []string
	for _, k := range table {
		if k.class == limit {
			names = append(names, k.Name)
		}
	}
	return names
}

// Key returns the entry of the table for a key of [Keys]. Its example is the default.
func Key(name string) keys.Key { return find(name).Key }

// find returns the key with a name; nil: there is none.
func find(name string) *key {
	if i := slices.IndexFunc(table, func(k key) bool { return k.Name == name }); i >= 0 {
		return &table[i]
	}
	return nil
}

// EnvVar returns the environment variable of a key: STOCKADE_MODEL_NAME for model.name.
func EnvVar(key string) string {
	return "STOCKADE_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

func (k *key) env() string { return EnvVar(k.Name) }

// projectMay reports whether a project file may replace the value old by v. Trust only matters
// for keys that need it: a trusted file still can only lower a limit.
func (k *key) projectMay(old, v any, trusted bool) bool {
	switch k.class {
	case authority, reach:
		return trusted
	case preference, addOnly:
		return true
	case limit:
		return reflect.ValueOf(v).Int() <= reflect.ValueOf(old).Int() // ints, or durations
	case switchOff:
		return v == false || old == true
	case switchOn:
		return v == true || old == false
	}
	return false
}

// Annotated returns an agent.toml that sets nothing and explains every key, each
// commented out with its default.
func Annotated() string {
	return fileKeys.Sample(keys.Sample{
		Head: `# The configuration of stockade. Every key is shown with its default, commented out.
#
# Yours: $XDG_CONFIG_HOME/stockade/agent.toml. A project's: ./agent.toml.
# Later wins: defaults, user, project, environment, flags. A key's variable in
# the environment is STOCKADE_ and its name: STOCKADE_MODEL_NAME for model.name.
# What a project file may set stands with each key; ` + "`stockade config trust`" + ` shows
# what one asks for.
`,
		Names: map[string]string{profileWord: "work", priceWord: `"gpt-5"`},
	})
}
