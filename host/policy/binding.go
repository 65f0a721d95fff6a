package policy

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/stockade-dev/stockade/host/tool"
)

// Binding holds the tool as it was when a rule was made. When a part that it holds changes,
// the rule no longer applies: the question is asked again and names the change. The zero value
// binds to nothing. A rule still applies when the configuration of the module changes: see
// RATIONALE, "Why is what a module is configured with no part of an answer?"
type Binding struct {
	// Module identifies the module: "builtin"; "signer:SIGNER#NAME" for a module with a
	// verified signature; or "sha256:" and the digest. The name is part of it because a
	// signer has many modules.
	Module string
	// ABI is the version of the interface of a built-in module: the digest of such a module
	// changes with every release. Empty for other modules.
	ABI                               string
	Description, Schema, Capabilities string         // SHA-256 in hex of the three texts in Texts
	Texts                             tool.SpecTexts // only to show a change; empty: not kept

	digest string // "sha256:" and the digest of a signed module; empty for others, and if read from a file
}

// bind returns the binding to a tool as it is now.
func bind(e *tool.Entry) Binding {
	texts := e.Texts()
	if a, own := allowance(e); own { // another allowance needs a new answer
		texts.AsksFor = e.Requested.String() + "; given: " + allowanceText(a)
	}
	f := texts.Fingerprint()
	b := Binding{Module: "sha256:" + e.Module.Digest, Description: f.Description, Schema: f.Schema, Capabilities: f.Needs, Texts: texts}
	switch {
	case e.Module.Origin == tool.OriginBuiltin:
		b.Module, b.ABI = string(tool.OriginBuiltin), e.ABI
	case e.Module.Signer != "": // a new version by the same signer keeps the answers
		b.digest = b.Module
		b.Module = "signer:" + e.Module.Signer + "#" + e.Module.Name
	}
	return b
}

// Changed returns the names of the parts that differ from the tool as it is now: "module",
// "abi", "description", "schema", "capabilities". An empty part of the binding never differs,
// nor does the digest of a module that has only been signed since.
func (b Binding) Changed(e *tool.Entry) []string {
	var out []string
	for _, part := range b.changed(bind(e)) {
		out = append(out, part.name)
	}
	return out
}

// changedPart is a part of a binding that differs, with its texts for a person.
type changedPart struct{ name, was, is string }

func (b Binding) changed(now Binding) []changedPart {
	if b.Module != "" && b.Module == now.digest {
		now.Module = b.Module // a rule for a digest still holds when that module gets signed
	}
	var out []changedPart
	for _, part := range []struct {
		was, is string
		shown   changedPart
	}{
		{b.Module, now.Module, changedPart{"module", b.Module, now.Module}},
		{b.ABI, now.ABI, changedPart{"abi", b.ABI, now.ABI}},
		{b.Description, now.Description, changedPart{"description", b.Texts.Description, now.Texts.Description}},
		{b.Schema, now.Schema, changedPart{"schema", b.Texts.Schema, now.Texts.Schema}},
		{b.Capabilities, now.Capabilities, changedPart{"capabilities", b.Texts.AsksFor, now.Texts.AsksFor}},
	} {
		if part.was != "" && part.was != part.is {
			out = append(out, part.shown)
		}
	}
	return out
}

// BindingChange is a remembered rule that no longer applies because the tool has changed,
// with its binding then and now.
type BindingChange struct {
	Rule     string
	Was, Now Binding
}

// InWords returns a heading, then two lines for each change: the old text and the new one, in
// which a long common beginning is shortened. These texts come from the tool and must not be
// trusted.
func (c BindingChange) InWords() []string {
	out := []string{fmt.Sprintf("the rule %q, which you had remembered, does not hold any more, because this changed:", c.Rule)}
	for _, part := range c.Was.changed(c.Now) {
		was, is := TrimCommonStart(cmp.Or(part.was, "(not kept)"), part.is, 40)
		out = append(out, fmt.Sprintf("%s was: %s", part.name, was), fmt.Sprintf("%s is:  %s", part.name, is))
	}
	return out
}

// TrimCommonStart removes a long common beginning of two texts, but for its last keep bytes, so that
// their difference is visible.
func TrimCommonStart(was, is string, keep int) (string, string) {
	n := 0
	for n < len(was) && n < len(is) && was[n] == is[n] {
		n++
	}
	cut := strings.LastIndexByte(was[:max(n-keep, 0)], ' ') + 1
	if cut == 0 {
		return was, is
	}
	return "... " + was[cut:], "... " + is[cut:]
}

func (b Binding) words() string {
	if b.Module == string(tool.OriginBuiltin) {
		return "the built-in modules"
	}
	if signed, ok := strings.CutPrefix(b.Module, "signer:"); ok {
		i := max(strings.LastIndexByte(signed, '#'), 0)
		return fmt.Sprintf("the module %s, signed by %s", strings.TrimPrefix(signed[i:], "#"), signed[:i])
	}
	return "the module " + b.Module
}
