package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/tool"
)

// Binding is what a remembered rule was made for. When anything of it changes
// the rule answers nothing any more: the question is asked again, and says what
// changed. The zero value binds to nothing.
type Binding struct {
	// Module is "builtin", or "sha256:" and the digest of a module from
	// elsewhere.
	Module string
	// ABI is the version of the interface, of a built-in module: its digest
	// changes with every release.
	ABI string
	// The SHA-256, in hex, of what the tool said of itself.
	Description, Schema, Capabilities string
	// Said is what those are the digests of, so that a change can be shown. It
	// binds nothing.
	Said Said
}

// Said is what a tool said of itself.
type Said struct {
	Description string `toml:"description"`
	Schema      string `toml:"schema"`   // JSON, its keys sorted
	AsksFor     string `toml:"asks_for"` // see [Asks]
}

// bind returns what a rule about a tool is bound to.
func bind(e *tool.Entry) Binding {
	said := Said{e.Description, string(canonical(e.Parameters)), Asks(e.Capabilities)}
	b := Binding{
		Module: moduleID(e.Module), Description: hashText(said.Description), Schema: hashText(said.Schema),
		Capabilities: hashText(said.AsksFor), Said: said,
	}
	if e.Module.Origin == tool.OriginBuiltin {
		b.ABI = e.ABI
	}
	return b
}

// Changed names what is not as it was when the rule was made: "module", "abi",
// "description", "schema", "capabilities". What the rule does not say cannot
// have changed.
func (b Binding) Changed(e *tool.Entry) []string { return b.changed(bind(e)) }

func (b Binding) changed(now Binding) []string {
	var out []string
	for _, part := range []struct{ name, was, is string }{
		{"module", b.Module, now.Module}, {"abi", b.ABI, now.ABI}, {"description", b.Description, now.Description},
		{"schema", b.Schema, now.Schema}, {"capabilities", b.Capabilities, now.Capabilities},
	} {
		if part.was != "" && part.was != part.is {
			out = append(out, part.name)
		}
	}
	return out
}

// Change is what is not as it was when an answer was remembered.
type Change struct {
	Rule     string
	Was, Now Binding
}

// InWords says what changed, a line for each part: what it was and what it is.
// What a tool says of itself stands in it as it is: it is not to be trusted.
func (c Change) InWords() []string {
	out := []string{fmt.Sprintf("the rule %q, which you had remembered, does not hold any more, because this changed:", c.Rule)}
	for _, part := range c.Was.changed(c.Now) {
		was, is := "", ""
		switch part {
		case "module":
			was, is = c.Was.Module, c.Now.Module
		case "abi":
			was, is = c.Was.ABI, c.Now.ABI
		case "description":
			was, is = c.Was.Said.Description, c.Now.Said.Description
		case "schema":
			was, is = c.Was.Said.Schema, c.Now.Said.Schema
		case "capabilities":
			was, is = c.Was.Said.AsksFor, c.Now.Said.AsksFor
		}
		if was == "" {
			was = "(not kept)"
		}
		was, is = difference(was, is)
		out = append(out, fmt.Sprintf("%s was: %s", part, was), fmt.Sprintf("%s is:  %s", part, is))
	}
	return out
}

// difference leaves out most of what two texts begin with, so that what is new
// in a long one is seen.
func difference(was, is string) (string, string) {
	const before = 40
	n := 0
	for n < len(was) && n < len(is) && was[n] == is[n] {
		n++
	}
	if n <= before {
		return was, is
	}
	cut := strings.LastIndexByte(was[:n-before], ' ') + 1
	if cut == 0 {
		return was, is
	}
	return "... " + was[cut:], "... " + is[cut:]
}

func (b Binding) words() string {
	if b.Module == string(tool.OriginBuiltin) {
		return "the built-in modules"
	}
	return "the module " + b.Module
}

func hashText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// canonical writes JSON with its keys sorted: the order in a manifest means
// nothing. What is no JSON stands for itself.
func canonical(raw json.RawMessage) []byte {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}

// Asks says what a tool asks for, in words that change when anything does.
func Asks(c tool.Capabilities) string {
	var out []string
	if c.Files != tool.FilesNone {
		out = append(out, fmt.Sprintf("files=%s", c.Files))
	}
	if c.Exec != "" {
		out = append(out, fmt.Sprintf("exec=%s", c.Exec))
	}
	if c.ExecTimeout != "" {
		out = append(out, fmt.Sprintf("exec_timeout=%s", c.ExecTimeout))
	}
	if c.Network != tool.NetworkNone {
		out = append(out, fmt.Sprintf("network=%s", c.Network))
	}
	var secrets []string
	for _, s := range c.Secrets {
		secrets = append(secrets, "secret="+s.String())
	}
	slices.Sort(secrets)
	if out = append(out, secrets...); out == nil {
		return "nothing"
	}
	return strings.Join(out, " ")
}
