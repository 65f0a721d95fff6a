package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/tool"
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
	// HintText is the smallest change that would allow the call, in words.
	HintText string `json:"change,omitempty"`
	// Hint is Change, not in words yet.
	Hint tool.Hint `json:"-"`
	// AllowRule is the rule that would; empty where none does.
	AllowRule string `json:"allow,omitempty"`
	// Tier is how far the process would be confined; nil where the tool starts none.
	Tier *Tier `json:"tier,omitempty"`
	// Changes is what becomes of what the process changes; empty where the tool
	// starts none. First is why it is asked about before it runs, if it asks.
	Changes        ChangesMode `json:"changes,omitempty"`
	AskFirstReason string      `json:"first,omitempty"`
	// Allowance is what a person lets a tool have that was added, and what is left of
	// that under the layers; nil for any other tool.
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

// Tier is how far the process would be confined; nil where the tool starts none.
func (d Decision) Tier() *Tier {
	if d.policy == nil || d.entry.Capabilities.Exec == "" {
		return nil
	}
	return new(d.policy.tier())
}

// stopAskingHint says how not to be asked about such a call any more.
func (d Decision) stopAskingHint() tool.Hint {
	if d.by.Source == SourceAdmin {
		return tool.Advise("that it asks is the administrator's: %s", d.by.Origin)
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

// removalHint says what to do about every rule and bound that decides.
func (d Decision) removalHint() tool.Hint {
	out := d.by.removalHint()
	said := []string{out.String()}
	for _, o := range d.also {
		if c := o.removalHint(); !slices.Contains(said, c.String()) {
			said = append(said, c.String())
			out = out.And(tool.Advise("; and "), c)
		}
	}
	return out
}

// String names the rule, its layer and where it is written.
func (r Decider) String() string {
	text := fmt.Sprintf("the %s rule %q", r.Source, r.Rule)
	if r.Origin != "" {
		text += ": " + r.Origin
	}
	return text
}

// removalHint says what to change so that the rule does not decide.
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

// minimalRule is the smallest rule about the call.
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

// allowRuleText is the text of the smallest rule that would allow the call; empty where no
// rule can, or none that could be typed.
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
