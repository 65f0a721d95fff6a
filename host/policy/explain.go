package policy

import (
	"fmt"
	"strings"

	"github.com/stockade-dev/stockade/host/shellword"
)

// Explanation is a decision as data: what a denial carries, what the log keeps
// and what `policy explain` shows.
type Explanation struct {
	Effect string `json:"effect"`
	Risk   string `json:"risk"`
	Rule   string `json:"rule"`
	Source Source `json:"source"`           // the layer
	Origin string `json:"origin,omitempty"` // where in it
	Reason string `json:"reason"`
	// Change is the smallest change that would allow the call, in words.
	Change string `json:"change,omitempty"`
	// Allow is the flag that would; empty where none does.
	Allow string `json:"allow,omitempty"`
}

// Explain returns the decision as data.
func (d Decision) Explain() Explanation {
	x := Explanation{
		Effect: d.effect.String(), Risk: d.risk.String(), Rule: d.rule, Source: d.source, Origin: d.origin, Reason: d.reason,
		Allow: d.AllowFlag(),
	}
	where := d.origin
	switch {
	case d.effect == Allow:
		return x
	case x.Allow != "":
		x.Change = "answer yes, or add " + x.Allow
	case d.effect == Deny && d.closed:
		x.Change = "change it by hand: no answer and no rule allows a tool to"
	case d.effect == Ask && len(d.special()) > 0:
		x.Change = "answer yes"
	case d.source == SourceAdmin:
		x.Change = "only the administrator can: " + where
	case d.effect == Ask && d.policy != nil && d.policy.confirmAll:
		x.Change = "answer yes"
	case d.effect == Ask:
		x.Change = "answer yes; to be asked no more, take the rule away: " + where
	case d.source == SourceFlag:
		x.Change = "leave out --deny " + d.rule
		if word, ok := shellword.Quote(d.rule); ok {
			x.Change = "leave out --deny " + word
		}
	case where != "":
		x.Change = "take it away: " + where
	default:
		x.Change = fmt.Sprintf("take the rule %q of the layer %s away", d.rule, d.source)
	}
	if d.effect == Ask && d.source == SourceAdmin {
		x.Change = "answer yes; that it asks is the administrator's: " + where
	}
	return x
}

// AllowRule is the smallest rule that would allow the call, if a rule can.
func (d Decision) AllowRule() (Rule, bool) {
	if d.policy == nil || d.effect != Ask || d.floor {
		return Rule{}, false
	}
	if len(d.special()) > 0 {
		return d.namedRule()
	}
	return d.answer(), true
}

// answer is the smallest rule about the call.
func (d Decision) answer() Rule {
	r := Rule{Effect: Allow, Tool: d.entry.Name, Secrets: d.secretNames(), Source: SourceFlag}
	if arg := d.entry.Capabilities.Exec; arg != "" {
		text, _ := d.args().str(arg)
		name := arg
		if strings.ContainsAny(arg, ":=!/~") {
			name = "/" + strings.ReplaceAll(strings.ReplaceAll(arg, "~", "~0"), "/", "~1")
		}
		if c, err := NewCondition(Is, name, text, false); err == nil {
			r.Where = []Condition{c}
		}
	}
	return r
}

// AllowFlag is what a person adds to the command line to allow the call; empty
// where no flag can. It is for bash and zsh where the command holds what does not
// show, and else for any shell.
func (d Decision) AllowFlag() string {
	r, ok := d.AllowRule()
	if !ok {
		return ""
	}
	word, ok := shellword.Quote(r.String())
	if !ok {
		return ""
	}
	return "--allow " + word
}
