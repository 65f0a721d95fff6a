package config

import (
	"fmt"
	"strings"

	"github.com/stockade-dev/stockade/host/internal/keydoc"
)

// Reference returns the manual's page on the keys, in Markdown.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# Configuration keys

Order: defaults, the user's ` + "`agent.toml`" + `, the project's ` + "`agent.toml`" + `, the environment, flags; later ones win. A
project file can come with a repository that somebody else wrote, so what it may set depends on the key: see the last
column. What it may not set is ignored with a warning. ` + "`stockade config trust`" + ` shows what a file asks for beyond that
and lets it have it, with exactly this content.

| key | type | default | what it does | environment | project file |
|---|---|---|---|---|---|
`)
	c := Default()
	for i := range keys {
		k := &keys[i]
		env := "`" + k.env() + "`"
		if k.class.fileOnly() {
			env = "ignored"
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s | %s |\n",
			k.name, keydoc.Cell(k.kind.String()), k.kind.format(k.get(&c)), keydoc.Cell(k.doc), env, k.class)
	}
	b.WriteString("\nDurations are numbers with a unit, such as `\"30s\"` or `\"2m\"`. In the environment, lists are separated by commas, and an\n" +
		"empty variable counts as unset. The provider's key is never in a file: `model.api_key_env` names the variable that\n" +
		"holds it.\n")
	return b.String()
}

// Annotated returns an agent.toml that sets nothing and explains every key, each
// commented out with its default.
func Annotated() string {
	var b strings.Builder
	b.WriteString(`# The configuration of stockade. Every key is shown with its default, commented out.
#
# Yours: $XDG_CONFIG_HOME/stockade/agent.toml. A project's: ./agent.toml.
# Later wins: defaults, user, project, environment, flags. A key's variable in
# the environment is STOCKADE_ and its name: STOCKADE_MODEL_NAME for model.name.
# What a project file may set stands with each key; ` + "`stockade config trust`" + ` shows
# what one asks for.
`)
	table := ""
	c := Default()
	for i := range keys {
		k := &keys[i]
		name := k.name
		if t, word, ok := strings.Cut(k.name, "."); ok {
			if t != table {
				fmt.Fprintf(&b, "\n[%s]\n", t)
				table = t
			}
			name = word
		}
		b.WriteByte('\n')
		keydoc.Comment(&b, k.doc)
		from := ""
		if k.class.fileOnly() {
			from = "; not from the environment"
		}
		keydoc.Comment(&b, fmt.Sprintf("(%s; %s%s)", k.kind, k.class, from))
		fmt.Fprintf(&b, "#%s = %s\n", name, k.kind.format(k.get(&c)))
	}
	return b.String()
}
