package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/tool"
)

// Explanation is a decision as data. A denial carries one, the log stores it, and the command
// policy explain shows it.
type Explanation struct {
	Effect    string    `json:"effect"`
	Risk      string    `json:"risk"`
	Rule      string    `json:"rule"`
	Source    Source    `json:"source"`           // layer of the rule that decided
	Origin    string    `json:"origin,omitempty"` // place in that layer
	Reason    string    `json:"reason"`
	Also      []Decider `json:"also,omitempty"`   // other rules and bounds with the same effect; nil if allowed
	HintText  string    `json:"change,omitempty"` // way to another decision, in words; empty if allowed
	Hint      tool.Hint `json:"-"`                // HintText as a value
	AllowRule string    `json:"allow,omitempty"`  // smallest rule to allow a call that asks; empty: none
	Tier      *Tier     `json:"tier,omitempty"`   // tier in which the process would run; nil: no process
	// Changes is the mode for the changes of the process; empty: no process, or not
	// decided, as the call is denied. AskFirstReason is the reason to ask before it runs;
	// empty: it can run before the answer, or there is no process.
	Changes        ChangesMode `json:"changes,omitempty"`
	AskFirstReason string      `json:"first,omitempty"`
	// Allowance describes the allowance of the tool, and the parts that are not permitted.
	// Nil: the tool has the default access.
	Allowance []string `json:"given,omitempty"`
}

// Explain returns the decision as data.
func (d Decision) Explain() Explanation {
	x := Explanation{
		Effect: d.effect.String(), Risk: d.risk.String(), Rule: d.by.Rule, Source: d.by.Source, Origin: d.by.Origin, Reason: d.reason,
		Also: d.also, AllowRule: d.allowRuleText(), Tier: d.Tier(), Changes: d.changes, AskFirstReason: d.askFirstReason,
	}
	if d.policy != nil {
		x.Allowance = d.policy.describeAllowance(d.entry)
	}
	switch {
	case d.effect == Allow:
	case x.AllowRule != "":
		x.Hint = tool.Advise("answer yes, or add ").And(tool.ActionHint(tool.HintAllow, x.AllowRule))
	case d.hint != nil:
		x.Hint = d.hint
	case d.effect == Ask && (len(d.specialPaths()) > 0 || d.by.Source == SourceDefault):
		x.Hint = tool.Advise("answer yes")
	case d.effect == Ask:
		x.Hint = tool.Advise("answer yes; ").And(d.stopAskingHint())
	default:
		x.Hint = d.removalHint()
	}
	x.HintText = x.Hint.String()
	return x
}

// Tier returns the tier in which the process would run; nil for a tool that starts none.
func (d Decision) Tier() *Tier {
	if d.policy == nil || d.entry.Capabilities.Exec == "" {
		return nil
	}
	return new(d.policy.tier())
}

// stopAskingHint returns the way to be asked about such a call no more, or the reason why
// there is none.
func (d Decision) stopAskingHint() tool.Hint {
	if d.by.Source == SourceAdmin {
		return tool.Advise("the administrator's rule asks: %s", d.by.Origin)
	}
	without := d.policy.decide(d.call, d.entry, d.facts, Allow)
	switch {
	case without.effect == Allow:
		return tool.Advise("to be asked no more, ").And(d.removalHint())
	case len(d.also) == 0:
		return tool.Advise("without %s it would ask all the same: %s", d.by, without.reason)
	}
	return tool.Advise("without the rules that ask it would ask all the same: %s", without.reason)
}

// removalHint returns the ways to remove every rule and bound that decides.
func (d Decision) removalHint() tool.Hint {
	out := d.by.removalHint()
	seen := []string{out.String()}
	for _, o := range d.also {
		if c := o.removalHint(); !slices.Contains(seen, c.String()) {
			seen = append(seen, c.String())
			out = out.And(tool.Advise("; and "), c)
		}
	}
	return out
}

// String returns the rule, its layer and the place where it is written.
func (r Decider) String() string {
	text := fmt.Sprintf("the %s rule %q", r.Source, r.Rule)
	if r.Origin != "" {
		text += ": " + r.Origin
	}
	return text
}

// removalHint returns the change after which the rule or bound no longer decides.
func (r Decider) removalHint() tool.Hint {
	switch {
	case r.Rule == MinTierKey:
		further := tool.Advise("confine processes further (").And(tool.ActionHint(tool.HintConfine, ""))
		if r.Source == SourceSettings {
			return further.And(tool.Advise("), or set %s = %d in ", MinTierKey, r.tier), tool.ActionHint(tool.HintSettings, ""))
		}
		return further.And(tool.Advise("); only the administrator can do without: %s", r.Origin))
	case r.Calls > 0 && r.Source == SourceAdmin:
		return tool.Advise("begin another session; only the administrator can permit more calls: %s", r.Origin)
	case r.Calls > 0:
		return tool.Advise("begin another session, or permit more calls: %s", r.Origin)
	case r.Rule == OffKey:
		return tool.Advise("take %q out of %s: %s", r.name, OffKey, r.Origin)
	case r.Source == SourceSettings:
		return tool.Advise("set %s = true: %s", r.Rule, r.Origin)
	case r.Source == SourceAdmin:
		return tool.Advise("only the administrator can: %s", r.Origin)
	case r.Source == SourceFlag:
		return tool.Advise("leave out ").And(tool.ActionHint(tool.HintUndeny, r.Rule))
	case r.Origin != "":
		return tool.Advise("take the rule %q away: %s", r.Rule, r.Origin)
	}
	return tool.Advise("take the rule %q of the layer %s away", r.Rule, r.Source)
}

// minimalRule returns the smallest rule that allows the call, apart from its special paths.
func (d Decision) minimalRule() Rule {
	r := Rule{Effect: Allow, Tool: d.entry.Name, Secrets: d.secretNames(), Source: SourceFlag}
	if arg := d.entry.Capabilities.Exec; arg != "" {
		text, _ := d.args().Text(arg)
		name := arg
		if strings.ContainsAny(arg, ":=!/~") {
			name = match.Pointer(arg)
		}
		if c, err := match.NewCondition(match.Equal, name, text, false); err == nil {
			r.Where = []match.Condition{c}
		}
	}
	return r
}

// allowRuleText returns the text of the smallest rule that would allow a call that asks.
// Empty: the call does not ask, or no rule that can be typed would allow it.
func (d Decision) allowRuleText() string {
	if d.policy == nil || d.effect != Ask || d.mustAsk || d.opensHost != "" {
		return ""
	}
	r := d.minimalRule()
	if len(d.specialPaths()) > 0 {
		var ok bool
		if r, ok = d.namedRule(); !ok {
			return ""
		}
	}
	if text := r.String(); !strings.Contains(text, "\x00") {
		return text
	}
	return ""
}
