package policyfile

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/config/keys"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/tool"
)

// key is one key of policy.toml: its entry in the file's table, and the function that applies
// a setting of the key to the layer. Only table holds such keys.
type key struct {
	keys.Key
	apply func(*reader, setting)
}

// setting is a key that a file sets, with its value and its origin.
type setting struct {
	keys.Setting
	from policy.Provenance
}

func (s setting) bool() bool      { return s.Value.(bool) }
func (s setting) int() int        { return s.Value.(int) }
func (s setting) text() string    { return s.Value.(string) }
func (s setting) texts() []string { return s.Value.([]string) }

const anything = "not there: anything"

// table holds every key, in the order of the sample.
var table = slices.Concat(ceilingKeys, limitKeys(), toolKeys, ruleKeys)

var ceilingKeys = []key{
	boolean("require_confirmation", false,
		"When true, every call asks a person, and no remembered answer and no --allow counts.",
		ceilingSetting(true, func(c *policy.Ceiling) *[]policy.Setting { return &c.Confirm })),

	boolean("auto", true,
		"When false, no chat and no run makes changes without a question that would be asked: there is no auto, and no answer for all changes below a directory.",
		ceilingSetting(false, func(c *policy.Ceiling) *[]policy.Setting { return &c.NoAuto })),

	list("files.directories", `"PATH" or "PATH:ro"`, anything, `["/home/*/src", "/usr/share/doc:ro"]`, checkDirectory,
		"Directories that may be shown to tools, each with all that is in it; * stands for any letters of one name. A workspace or a mount outside is not shown. An empty list permits none. A process that bash starts sees only these and the system's, but with bash.min_tier = 0 it sees all if nothing confines it.",
		ceilingList(func(c *policy.Ceiling) *[]policy.List { return &c.Directories })),
	list("files.hidden", "paths", "none", `["/srv/payroll"]`, checkPlainPath,
		"Files and directories that no tool sees, also where a mount holds them. A process that bash starts does not see them, and in tier 1, which cannot hide what is in a mount, it is not started. With bash.min_tier = 0 it sees them if nothing confines it.",
		(*reader).hide),

	list("network.hosts", `"NAME", "*.NAME" or an address`, anything, `["api.example.com", "*.internal.example.com"]`, checkHostPattern,
		"Hosts that may be talked to. *.NAME is every name below NAME, and not NAME. An address that is not public has to be listed itself, also for a name that leads to it. An empty list permits none.",
		ceilingList(func(c *policy.Ceiling) *[]policy.List { return &c.Hosts })),
	newKey("network.proxy", config.Key("network.proxy").Kind, "not there: each user's own choice", `"http://proxy.example:3128"`,
		"In the administrator's file only: the HTTP proxy through which tools and the client of the provider reach the internet. It replaces every user's own proxy, and nobody can do without it. Addresses that are not public are reached directly, if they are permitted.",
		(*reader).proxy),
	boolean("network.proxy_resolves", false,
		"With network.proxy: when true, the proxy gets names instead of addresses, and has to refuse private addresses itself.",
		func(r *reader, s setting) {
			r.proxyResolves = &s
			r.requireAdmin(s)
		}),
	list("network.ca_files", "paths", "none", `["/etc/stockade/ca.pem"]`, checkCleanPath,
		"In the administrator's file only: files with certificate authorities in PEM that are trusted beside the system's and each user's own. What holds for the administrator's file holds for them: they and every directory above belong to root and can be written by nobody else, and no link leads there. If one of them is not so, or is broken, nothing reaches the network.",
		(*reader).authorities),

	list("models.providers", "words", anything, `["openai", "offline"]`, checkWord,
		"Providers that may be asked, by the names that model.provider of agent.toml takes.",
		ceilingList(func(c *policy.Ceiling) *[]policy.List { return &c.Providers })),
	list("models.base_urls", "addresses", anything, `["https://llm.example.com/v1"]`, checkBaseURL,
		`Addresses, to the letter, at which a provider may be reached; "" is each provider's own, which may also stand here itself.`,
		ceilingList(func(c *policy.Ceiling) *[]policy.List { return &c.BaseURLs })),

	boolean("modules.unsigned", true,
		"When false, a module without a verified signature does not run, not even to describe itself, is not compiled, and cannot be added. Built-in modules do run. A signature counts if it is by a key that trust.toml knows.",
		ceilingSetting(false, func(c *policy.Ceiling) *[]policy.Setting { return &c.SignedOnly })),
	boolean("modules.add", true,
		"When false, nobody adds a module, none is updated, and none runs that a person names by a path. What was added before runs as far as the other keys permit; with an empty list of digests nothing but the built-in modules does.",
		ceilingSetting(false, func(c *policy.Ceiling) *[]policy.Setting { return &c.ModulesClosed })),
	list("modules.registries", "HOST or HOST/PATH", anything, `["ghcr.io/example", "registry.example.com:5000"]`, checkRegistry,
		"Places in the network from which modules may be added, with all that is below them. With such a list a file on this machine is no such place, and does not run by its path either. It does not stop a module that was added before. An empty list permits none.",
		ceilingList(func(c *policy.Ceiling) *[]policy.List { return &c.Registries })),
	list("modules.digests", "sha256:HEX", anything, `["sha256:`+strings.Repeat("0", 64)+`"]`, checkDigest,
		"Modules that may run beside the built-in ones, by their digest. Digests, signers and namespaces are one list: a module has to be in one of the three.",
		func(r *reader, s setting) {
			l := r.modules()
			for _, d := range sorted(s.texts()) {
				l.Digests = append(l.Digests, strings.TrimPrefix(d, "sha256:"))
			}
		}),
	list("modules.signers", "words", anything, `["release@example.com"]`, checkWord,
		"Modules that may run, by their signers.",
		func(r *reader, s setting) { r.modules().Signers = sorted(s.texts()) }),
	list("modules.namespaces", "words", anything, `["example.com/tools"]`, checkWord,
		"Modules that may run, by the namespace in which their verified signer publishes.",
		func(r *reader, s setting) { r.modules().Namespaces = sorted(s.texts()) }),

	newKey(policy.MinTierKey, keys.Integer(0, int64(policy.MaxTier), ""), "0: each user's own bash.min_tier", "2",
		"The least tier of confinement in which a process may be started; if a machine has less, none is started. 3 is a world of its own, 2 nearly so, 1 bounds its files and its network but hides nothing inside of a mount, 0 is nothing at all. The bash.min_tier of a user's agent.toml counts where it is higher.",
		func(r *reader, s setting) {
			if s.int() > 0 {
				r.layer.Ceiling.MinTier = &policy.Limit{Value: int64(s.int()), From: s.from}
			}
		}),

	newKey(policy.ChangesKey, keys.Choice("staged", "direct", "none"), anything, `"staged"`,
		"What a command may do to files, at the widest. \"staged\" keeps its changes apart until they are shown and answered, if the system can, and otherwise asks before the command runs. \"direct\" lets the command change the files at once, after an answer. With \"none\" it can change no file. The bash.changes of a user's agent.toml counts where it is narrower.",
		func(r *reader, s setting) { r.layer.Ceiling.Changes = policy.ChangesMode(s.text()).AtMost(s.from) }),
	newKey(policy.AskKey, keys.Choice("changes", "always"), anything, `"always"`,
		"With \"always\" a person is asked before any command runs. Otherwise a command whose changes are kept apart runs first, and the person is asked only about the changes.",
		ceilingSetting("always", func(c *policy.Ceiling) *[]policy.Setting { return &c.AskFirst })),

	boolean("audit.required", false,
		"When true, no tool runs unless its session is recorded and, where audit.export names a directory, each event is also written there before its effect.",
		func(r *reader, s setting) { r.auditRequired = s.bool() }),
	text("audit.export", "path of a directory", `"": the session log alone`, `"/var/log/stockade"`, orEmpty(checkPlainPath),
		"With audit.required: where each session is exported as lines of JSON, in a file of its own. The directory has to be there, and whoever runs stockade has to be able to make files in it.",
		func(r *reader, s setting) { r.export = &s }),
}

// limitKeys returns the keys limits.*, made of the limits of agent.toml.
func limitKeys() (out []key) {
	for _, name := range config.LimitKeys() {
		k := config.Key(name)
		out = append(out, newKey("limits."+name, k.Kind, anything, k.Example, k.Doc+" Nobody can set it higher than this.", (*reader).limit))
	}
	return out
}

var toolKeys = []key{
	boolean("tools.NAME.allow", true,
		`When false, the tool is refused, and the model does not see it. The name "*" is every tool but those that say allow = true. For bash, every tool that may start a process is refused too, whatever its name and wherever its module comes from.`,
		(*reader).allow),
	newKey("tools.NAME.calls", keys.Integer(1, 0, ""), anything, "100",
		"How many calls of the tool there may be in a session. To have none, set allow = false.",
		func(r *reader, s setting) {
			rule := r.denial(s)
			rule.AfterCalls = s.int()
			r.add(s, rule)
		}),
	text("tools.NAME.args.ARGUMENT.pattern", "regular expression (RE2)", anything, `"[a-z0-9._-]+"`, nil,
		"What the whole value of an argument has to match, if the argument is there. A value of more than 64 KiB asks. A file holds at most 100 patterns, and the work of all rules for one call is limited: beyond the limit, a call is denied, or asks if the rules are of a project's file. ARGUMENT is a name, or a JSON pointer such as \"/edits/*/path\".",
		func(r *reader, s setting) {
			if r.countPattern(s) {
				r.denyUnless(s, match.Pattern, s.text())
			}
		}),
	list("tools.NAME.args.ARGUMENT.one_of", "texts", anything, `["GET", "HEAD"]`, nil,
		"The values that an argument may have.",
		(*reader).oneOf),
	newKey("tools.NAME.args.ARGUMENT.maximum", keys.Number(), anything, "2000.0",
		"The most that a number may be.",
		func(r *reader, s setting) {
			r.denyUnless(s, match.Maximum, strconv.FormatFloat(s.Value.(float64), 'g', -1, 64))
		}),
	list("tools.NAME.args.ARGUMENT.under", "path patterns", anything, `["/home/*/src/**"]`, nil,
		"Patterns for a path, which has to match one of them; a call without a path means the working directory. ** stands for any number of directories, none included; * for letters of one name. Other patterns (?, [ab], {a,b}) are refused.",
		func(r *reader, s setting) { r.denyUnless(s, match.Path, s.texts()...) }),
	list("tools.NAME.args.ARGUMENT.hosts", `"NAME" or "*.NAME"`, anything, `["*.example.com"]`, nil,
		"The hosts that the argument may name, by themselves or in an address.",
		func(r *reader, s setting) { r.denyUnless(s, match.Hostname, s.texts()...) }),
}

var (
	effects = map[string]policy.Effect{"allow": policy.Allow, "ask": policy.Ask, "deny": policy.Deny}
	risks   = map[string]policy.Risk{"safe": policy.RiskSafe, "medium": policy.RiskMedium, "high": policy.RiskHigh}
	callers = map[string]tool.Caller{"agent": tool.CallerAgent, "person": tool.CallerPerson, "mcp": tool.CallerMCP}
)

var ruleKeys = []key{
	text("rules[].effect", `"deny" or "ask"; in your own file also "allow"`, "needed", `"deny"`, keys.OneOf("allow", "ask", "deny"),
		"What happens to calls to which the rule applies. Deny wins over ask, and ask over allow.",
		func(r *reader, s setting) { r.rule(s).effect = s.text() }),
	text("rules[].tool", "name", "needed", `"file_write"`, nil,
		`The tool, or "*" for any.`,
		func(r *reader, s setting) { r.rule(s).Tool = s.text() }),
	ruleList("where", "conditions", "any arguments", `["path:path=/home/*/src/**/migrations/**"]`, nil,
		"Conditions that all hold: ARGUMENT=VALUE to the letter, or path:, host:, words: (of a command), pattern:, one_of: or maximum: before it, and ! before that to turn it around.",
		(*reader).where),
	ruleList("risk", `"safe", "medium", "high"`, "any", `["medium"]`, keys.OneOf("safe", "medium", "high"),
		"The risk of the tool.",
		func(r *reader, s setting) { r.rule(s).Risks = lookupAll(risks, s.texts()) }),
	ruleList("caller", `"agent", "person", "mcp"`, "any", `["agent", "mcp"]`, keys.OneOf("agent", "person", "mcp"),
		"Who makes the call.",
		func(r *reader, s setting) { r.rule(s).Callers = lookupAll(callers, s.texts()) }),
	text("rules[].module", `"builtin" or sha256:HEX`, "any", `"builtin"`, checkModule,
		"The module that holds the tool.",
		func(r *reader, s setting) { r.rule(s).Binding.Module = moduleName(s.text()) }),
	text("rules[].changes", `"staged", "direct", "none"`, "what bash.changes says", `"direct"`, keys.OneOf("staged", "direct", "none"),
		"What a command to which the rule applies may do to files, if the rule asks or allows: see bash.changes. It cannot be wider than a layer permits.",
		func(r *reader, s setting) { r.rule(s).Changes = policy.ChangesMode(s.text()) }),
	text("rules[].why", "text", `""`, `"migrations are written by the team that owns the database"`, nil,
		"What the person and the model are told.",
		func(r *reader, s setting) { r.rule(s).Why = s.text() }),
	ruleList("match", "JSON objects", "none", `['{"path":"/home/ada/src/app/migrations/1.sql"}']`, nil,
		"Arguments of calls to which the rule applies, checked when the file is read.",
		func(r *reader, s setting) { r.rule(s).match = s.texts() }),
	ruleList("not_match", "JSON objects", "none", `['{"path":"/home/ada/src/app/main.go"}']`, nil,
		"Arguments of calls to which it does not apply, checked when the file is read.",
		func(r *reader, s setting) { r.rule(s).notMatch = s.texts() }),
}

func lookupAll[T any](meaning map[string]T, words []string) (out []T) {
	for _, w := range words {
		out = append(out, meaning[w])
	}
	return out
}

// newKey returns a key. def describes its default in words, for the sample.
func newKey(name string, kind keys.Kind, def, example, doc string, apply func(*reader, setting)) key {
	return key{keys.Key{Name: name, Kind: kind, Note: "default " + def, Example: example, Doc: doc}, apply}
}

func boolean(name string, def bool, doc string, apply func(*reader, setting)) key {
	words := strconv.FormatBool(def)
	return newKey(name, keys.Boolean(), words, words, doc, apply)
}

func text(name, what, def, example string, check func(string) error, doc string, apply func(*reader, setting)) key {
	return newKey(name, keys.Text(what, "a string in quotes", check), def, example, doc, apply)
}

func list(name, what, def, example string, check func(string) error, doc string, apply func(*reader, setting)) key {
	return newKey(name, keys.List(what, example, 0, check), def, example, doc, apply)
}

// ruleList returns a key of a rule whose value is a list. The list may not be empty.
func ruleList(name, what, def, example string, check func(string) error, doc string, apply func(*reader, setting)) key {
	return list("rules[]."+name, what, def, example, check, doc, func(r *reader, s setting) {
		if len(s.texts()) == 0 {
			r.fail(s, errors.New("it is an empty list, which would mean none; leave it out to mean any"))
			return
		}
		apply(r, s)
	})
}

// ceilingList returns a function that adds the list in a setting to a list of the ceiling. An
// empty list permits nothing.
func ceilingList(of func(*policy.Ceiling) *[]policy.List) func(*reader, setting) {
	return func(r *reader, s setting) {
		lists := of(&r.layer.Ceiling)
		*lists = append(*lists, policy.List{Values: sorted(s.texts()), From: s.from})
	}
}

// ceilingSetting returns a function that notes in the ceiling where a setting has the value when.
func ceilingSetting(when any, of func(*policy.Ceiling) *[]policy.Setting) func(*reader, setting) {
	return func(r *reader, s setting) {
		if s.Value == when {
			*of(&r.layer.Ceiling) = []policy.Setting{{From: s.from}}
		}
	}
}

// fileKeys is table in the form that package keys reads.
var fileKeys = keys.TableOf(table, func(k key) keys.Key { return k.Key })

// Sample returns a policy.toml with every key commented out, with its default, or with an
// example if there is no limit by default.
func Sample() string {
	return fileKeys.Sample(keys.Sample{
		Head: `# The policy of stockade: what it permits at most. Every key is shown, commented
# out, with its default, or with an example where the default is no bound.
#
# The administrator's is ` + "/etc/stockade/policy.toml" + ` (macOS:
# /Library/Application Support/Stockade/policy.toml, Windows:
# Stockade\policy.toml in the ProgramData folder): it and every directory above
# belong to root and can be written by nobody else. Yours is policy.toml beside
# your agent.toml, a project's .stockade/policy.toml. Each narrows what is left
# by those before it; none widens it. A file with a mistake in it stops
# everything. ` + "`stockade policy check FILE`" + ` finds it.
`,
		CommentHeads: true,
		Names:        map[string]string{"NAME": "file_read", "ARGUMENT": "path"},
	})
}
