package policy

import (
	"fmt"
	"slices"
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
	// Also are the other rules and bounds that decide the same.
	Also []Decider `json:"also,omitempty"`
	// Change is the smallest change that would allow the call, in words.
	Change string `json:"change,omitempty"`
	// Allow is the flag that would; empty where none does.
	Allow string `json:"allow,omitempty"`
}

// Explain returns the decision as data.
func (d Decision) Explain() Explanation {
	x := Explanation{
		Effect: d.effect.String(), Risk: d.risk.String(), Rule: d.rule, Source: d.source, Origin: d.origin, Reason: d.reason,
		Also: d.also, Allow: d.AllowFlag(),
	}
	switch {
	case d.effect == Allow:
	case x.Allow != "":
		x.Change = "answer yes, or add " + x.Allow
	case d.change != "":
		x.Change = d.change
	case d.effect == Ask && len(d.special()) > 0:
		x.Change = "answer yes"
	case d.effect == Ask && d.source == SourceDefault:
		x.Change = "answer yes"
	case d.effect == Ask:
		x.Change = "answer yes; " + d.unasked()
	default:
		x.Change = d.takeAway()
	}
	return x
}

// unasked says how not to be asked about such a call any more.
func (d Decision) unasked() string {
	if d.source == SourceAdmin {
		return "that it asks is the administrator's: " + d.origin
	}
	without := d.policy.decide(d.call, d.entry, d.facts, Allow)
	switch {
	case without.effect == Allow:
		return "to be asked no more, " + d.takeAway()
	case len(d.also) == 0:
		return "without " + d.decider().String() + " it would ask all the same: " + without.reason
	}
	return "without the rules that ask it would ask all the same: " + without.reason
}

// takeAway says what to do about every rule and bound that decides.
func (d Decision) takeAway() string {
	change := []string{d.decider().takeAway()}
	for _, o := range d.also {
		if c := o.takeAway(); !slices.Contains(change, c) {
			change = append(change, c)
		}
	}
	return strings.Join(change, "; and ")
}

// String names the rule, its layer and where it is written.
func (r Decider) String() string {
	text := fmt.Sprintf("the %s rule %q", r.Source, r.Rule)
	if r.Origin != "" {
		text += ": " + r.Origin
	}
	return text
}

// takeAway says what to change so that the rule does not decide.
func (r Decider) takeAway() string {
	switch {
	case r.Calls > 0 && r.Source == SourceAdmin:
		return "begin another session; only the administrator can permit more calls: " + r.Origin
	case r.Calls > 0:
		return "begin another session, or permit more calls: " + r.Origin
	case r.Source == SourceSettings:
		return fmt.Sprintf("set %s = true: %s", r.Rule, r.Origin)
	case r.Source == SourceAdmin:
		return "only the administrator can: " + r.Origin
	case r.Source == SourceFlag:
		if word, ok := shellword.Quote(r.Rule); ok {
			return "leave out --deny " + word
		}
		return "leave out --deny " + r.Rule
	case r.Origin != "":
		return fmt.Sprintf("take the rule %q away: %s", r.Rule, r.Origin)
	}
	return fmt.Sprintf("take the rule %q of the layer %s away", r.Rule, r.Source)
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
