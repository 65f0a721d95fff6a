package policyfile

import (
	"fmt"
	"strings"

	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/internal/keydoc"
)

// key is one setting of policy.toml. The table below is what the sample and the
// reference are made of; a test compares it with the structs.
type key struct {
	name    string // with NAME and ARGUMENT where anything can stand
	kind    string
	def     string // in words, where there is no value that means the default
	example string // as TOML; the default where there is one
	doc     string
}

const anything = "not there: anything"

var keys = []key{
	{"require_confirmation", "boolean", "false", "false",
		"When true, every call asks a person, and no remembered answer and no --allow counts."},

	{"files.directories", `list of "PATH" or "PATH:ro"`, anything, `["/home/*/src", "/usr/share/doc:ro"]`,
		"Directories that may be shown to tools, each with all that is in it; * stands for any letters of one name. A workspace or a mount outside is not shown. An empty list permits none. A process that bash starts is not bound by it, as long as nothing confines processes: forbid bash where it has to hold."},
	{"files.hidden", "list of paths", "none", `["/srv/payroll"]`,
		"Files and directories that no tool sees, also where a mount holds them. A process that bash starts sees them, as long as nothing confines processes: forbid bash where it has to hold."},

	{"network.hosts", `list of "NAME", "*.NAME" or an address`, anything, `["api.example.com", "*.internal.example.com"]`,
		"Hosts that may be talked to. *.NAME is every name below NAME, and not NAME. An address that is not public has to be listed itself, also for a name that leads to it. An empty list permits none."},

	{"network.proxy", "URL of a proxy, http or https", "not there: each user's own choice", `"http://proxy.example:3128"`,
		"In the administrator's file only: the HTTP proxy through which tools and the client of the provider reach the internet. Nobody's own proxy is used then, and nobody goes without. What is not public is reached directly, if it is permitted."},
	{"network.proxy_resolves", "boolean", "false", "false",
		"With network.proxy: when true, the proxy gets names instead of addresses, and has to refuse private addresses itself."},
	{"network.ca_files", "list of paths", "none", `["/etc/stockade/ca.pem"]`,
		"In the administrator's file only: files with certificate authorities in PEM that are trusted beside the system's and each user's own. What holds for the administrator's file holds for them: they and every directory above belong to root and can be written by nobody else, and no link leads there. While one is not so, or is broken, nothing reaches the network."},

	{"models.providers", "list of words", anything, `["openai", "offline"]`,
		"Providers that may be asked."},
	{"models.base_urls", "list of addresses", anything, `["https://llm.example.com/v1"]`,
		`Addresses, to the letter, at which a provider may be reached; "" is the provider's own.`},

	{"modules.unsigned", "boolean", "true", "true",
		"When false, a module that carries no verified signature does not run; the built-in ones do. Nothing verifies signatures yet, so false refuses them all."},
	{"modules.digests", "list of sha256:HEX", anything, `["sha256:` + strings.Repeat("0", 64) + `"]`,
		"Modules that may run beside the built-in ones, by their digest. With signers and namespaces one list: a module is to be in any of the three."},
	{"modules.signers", "list of words", anything, `["release@example.com"]`,
		"Modules that may run, by who has signed them."},
	{"modules.namespaces", "list of words", anything, `["example.com/tools"]`,
		"Modules that may run, by the namespace in which their verified signer publishes."},

	{"bash.min_tier", "integer, 0 to 3", "0", "0",
		"The least tier of confinement in which a process may be started; where there is less, none is. Nothing confines processes yet, which is tier 0: anything higher refuses bash."},

	{"audit.required", "boolean", "false", "false",
		"When true, no tool runs unless its session is recorded and, where audit.export names a directory, each event is also written there before its effect."},
	{"audit.export", "path of a directory", `"": the session log alone`, `"/var/log/stockade"`,
		"With audit.required: where each session is exported as lines of JSON, in a file of its own. The directory has to be there, and whoever runs stockade has to be able to make files in it."},

	{"tools.NAME.allow", "boolean", "true", "true",
		`When false, the tool is refused, and the model does not see it. The name "*" is every tool but those that say allow = true. For bash, every tool that may start a process is refused too, whatever its name and wherever its module comes from.`},
	{"tools.NAME.calls", "integer, from 1", anything, "100",
		"How many calls of the tool there may be in a session."},
	{"tools.NAME.args.ARGUMENT.pattern", "regular expression (RE2)", anything, `"[a-z0-9._-]+"`,
		"What the whole value of an argument has to match, if the argument is there. A value of more than 64 KiB asks. A file holds at most 100 patterns, and what all rules may take for one call is bounded: for those of a project's file the call asks then, else it is denied. ARGUMENT is a name, or a JSON pointer such as \"/edits/*/path\"."},
	{"tools.NAME.args.ARGUMENT.one_of", "list of texts", anything, `["GET", "HEAD"]`,
		"The values that an argument may have."},
	{"tools.NAME.args.ARGUMENT.maximum", "number", anything, "2000.0",
		"The most that a number may be."},
	{"tools.NAME.args.ARGUMENT.under", "list of path patterns", anything, `["/home/*/src/**"]`,
		"Patterns of which a path has to match one; where there is none, it is the working directory. ** stands for any number of directories, none included; * for letters of one name. Other patterns (?, [ab], {a,b}) are refused."},
	{"tools.NAME.args.ARGUMENT.hosts", `list of "NAME" or "*.NAME"`, anything, `["*.example.com"]`,
		"Hosts of which one has to be named, by itself or in an address."},

	{"rules.effect", `"deny" or "ask"; in your own file also "allow"`, "needed", `"deny"`,
		"What happens to calls of which the rule speaks. Deny wins over ask, and ask over allow."},
	{"rules.tool", "name", "needed", `"file_write"`,
		`The tool, or "*" for any.`},
	{"rules.where", "list of conditions", "any arguments", `["path:path=/home/*/src/**/migrations/**"]`,
		"Conditions that all hold: ARGUMENT=VALUE to the letter, or path:, host:, words: (of a command), pattern:, one_of: or maximum: before it, and ! before that to turn it around."},
	{"rules.risk", `list of "safe", "medium", "high"`, "any", `["medium"]`,
		"The risk of the tool."},
	{"rules.caller", `list of "agent", "person", "mcp"`, "any", `["agent", "mcp"]`,
		"Who makes the call."},
	{"rules.module", `"builtin" or sha256:HEX`, "any", `"builtin"`,
		"The module that holds the tool."},
	{"rules.why", "text", `""`, `"migrations are written by the team that owns the database"`,
		"What the person and the model are told."},
	{"rules.match", "list of JSON objects", "none", `['{"path":"/home/ada/src/app/migrations/1.sql"}']`,
		"Arguments of calls of which the rule speaks, checked when the file is read."},
	{"rules.not_match", "list of JSON objects", "none", `['{"path":"/home/ada/src/app/main.go"}']`,
		"Arguments of calls of which it does not speak, checked when the file is read."},
}

// all is the table with the limits, whose keys are those of agent.toml, before
// the tools.
func all() []key {
	var out []key
	done := false
	for _, k := range keys {
		if strings.HasPrefix(k.name, "tools.") && !done {
			done = true
			for _, name := range config.LimitKeys() {
				kind, def, doc := config.DescribeLimit(name)
				out = append(out, key{"limits." + name, kind, anything, def, doc + " Nobody can set it higher than this."})
			}
		}
		out = append(out, k)
	}
	return out
}

// Keys returns the name of every key, in the order of the reference.
func Keys() []string {
	var out []string
	for _, k := range all() {
		out = append(out, k.name)
	}
	return out
}

// Sample returns a policy.toml with every key commented out: with its default,
// or, where the default is that there is no such bound, with an example.
func Sample() string {
	var b strings.Builder
	b.WriteString(`# The policy of stockade: what it permits at most. Every key is shown, commented
# out, with its default, or with an example where the default is no bound.
#
# The administrator's is ` + "/etc/stockade/policy.toml" + ` (macOS:
# /Library/Application Support/Stockade/policy.toml, Windows:
# Stockade\policy.toml in the ProgramData folder): it and every directory above
# belong to root and can be written by nobody else. Yours is policy.toml beside
# your agent.toml, a project's .stockade/policy.toml. Each narrows what is left
# by those before it; none widens it. A file with a mistake in it stops
# everything. ` + "`stockade policy check FILE`" + ` finds it.
`)
	table := ""
	for _, k := range all() {
		at, name := head(k.name)
		if at != table {
			fmt.Fprintf(&b, "\n#%s\n", at)
			table = at
		}
		b.WriteByte('\n')
		keydoc.Comment(&b, k.doc)
		keydoc.Comment(&b, fmt.Sprintf("(%s; default %s)", k.kind, k.def))
		fmt.Fprintf(&b, "#%s = %s\n", name, k.example)
	}
	return b.String()
}

// head is the table of a key as the sample shows it, and the word in it.
func head(name string) (table, word string) {
	cut := strings.LastIndexByte(name, '.')
	if cut < 0 {
		return "", name
	}
	table, word = name[:cut], name[cut+1:]
	if table == "rules" {
		return "[[rules]]", word
	}
	table = strings.ReplaceAll(strings.ReplaceAll(table, "NAME", "file_read"), "ARGUMENT", "path")
	return "[" + table + "]", word
}

// Reference returns the manual's page on the keys, in Markdown.
func Reference() string {
	var b strings.Builder
	b.WriteString("# Keys of policy.toml\n\n" +
		"What an administrator, a user or a project permits at most. Layers only narrow: administrator, user, project,\n" +
		"environment (`STOCKADE_DENY`, rules separated by line ends), flags (`--deny`). `--allow` and remembered answers answer\n" +
		"questions within what is left. An empty list permits nothing; a list that is not there is no bound.\n\n" +
		"| key | type | default | what it does |\n|---|---|---|---|\n")
	for _, k := range all() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.name, keydoc.Cell(k.kind), keydoc.Cell(k.def), keydoc.Cell(k.doc))
	}
	return b.String()
}
