package policy

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/stockade-dev/stockade/host/tool"
)

// Binding is what a remembered rule was made for. When anything of it changes
// the rule answers nothing any more: the question is asked again, and says what
// changed. The zero value binds to nothing. What a module is configured with is no part
// of it: see RATIONALE, "Why is what a module is configured with no part of an answer?"
type Binding struct {
	// Module is "builtin", or of a module from elsewhere "signer:" and whose
	// signature over it was verified, or "sha256:" and its digest.
	//
	// A signer has many modules, so the name of the module follows, behind "#".
	Module string
	// ABI is the version of the interface, of a built-in module: its digest
	// changes with every release.
	ABI string
	// The SHA-256, in hex, of what the tool said of itself.
	Description, Schema, Capabilities string
	// Texts is what those are the digests of, so that a change can be shown. It
	// binds nothing.
	Texts tool.SpecTexts

	digest string // of a module that somebody has signed: "sha256:" and its digest
}

// bind returns what a rule about a tool is bound to.
func bind(e *tool.Entry) Binding {
	said := e.Texts()
	if a, own := allowance(e); own { // a yes to reading one directory is none to sending another
		said.AsksFor = e.Requested.String() + "; given: " + allowanceText(a)
	}
	f := said.Fingerprint()
	b := Binding{Module: "sha256:" + e.Module.Digest, Description: f.Description, Schema: f.Schema, Capabilities: f.Needs, Texts: said}
	switch {
	case e.Module.Origin == tool.OriginBuiltin:
		b.Module, b.ABI = string(tool.OriginBuiltin), e.ABI
	case e.Module.Signer != "": // a fix by the same signer keeps what holds
		b.digest = b.Module
		b.Module = "signer:" + e.Module.Signer + "#" + e.Module.Name
	}
	return b
}

// Changed names what is not as it was when the rule was made: "module", "abi",
// "description", "schema", "capabilities". What the rule does not say cannot
// have changed.
func (b Binding) Changed(e *tool.Entry) []string {
	var out []string
	for _, part := range b.changed(bind(e)) {
		out = append(out, part.name)
	}
	return out
}

// changedPart is what is not as it was, as a person is shown it.
type changedPart struct{ name, was, is string }

func (b Binding) changed(now Binding) []changedPart {
	if b.Module != "" && b.Module == now.digest {
		now.Module = b.Module // a rule that names the bytes speaks of them signed, too
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

// BindingChange is what is not as it was when an answer was remembered.
type BindingChange struct {
	Rule     string
	Was, Now Binding
}

// InWords says what changed, a line for each part: what it was and what it is.
// What a tool says of itself stands in it as it is: it is not to be trusted.
func (c BindingChange) InWords() []string {
	out := []string{fmt.Sprintf("the rule %q, which you had remembered, does not hold any more, because this changed:", c.Rule)}
	for _, part := range c.Was.changed(c.Now) {
		was, is := difference(cmp.Or(part.was, "(not kept)"), part.is)
		out = append(out, fmt.Sprintf("%s was: %s", part.name, was), fmt.Sprintf("%s is:  %s", part.name, is))
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
	if signed, ok := strings.CutPrefix(b.Module, "signer:"); ok {
		i := max(strings.LastIndexByte(signed, '#'), 0)
		return fmt.Sprintf("the module %s, signed by %s", strings.TrimPrefix(signed[i:], "#"), signed[:i])
	}
	return "the module " + b.Module
}
