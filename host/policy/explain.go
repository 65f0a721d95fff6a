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
	// Change is the smallest change that would allow the call, in words.
	Change string `json:"change,omitempty"`
	// Hint is Change, not in words yet.
	Hint tool.Hint `json:"-"`
	// Allow is the rule that would; empty where none does.
	Allow string `json:"allow,omitempty"`
	// Tier is how far the process would be confined; nil where the tool starts none.
	Tier *Tier `json:"tier,omitempty"`
	// Changes is what becomes of what the process changes; empty where the tool
	// starts none. First is why it is asked about before it runs, if it asks.
	Changes Changes `json:"changes,omitempty"`
	First   string  `json:"first,omitempty"`
	// Given is what a person lets a tool have that was added, and what is left of
	// that under the layers; nil for any other tool.
	Given []string `json:"given,omitempty"`
}

// Explain returns the decision as data.
func (d Decision) Explain() Explanation {
	x := Explanation{
		Effect: d.effect.String(), Risk: d.risk.String(), Rule: d.by.Rule, Source: d.by.Source, Origin: d.by.Origin, Reason: d.reason,
		Also: d.also, Allow: d.allow(), Tier: d.Tier(), Changes: d.changes, First: d.first,
	}
	if d.policy != nil {
		x.Given = d.policy.given(d.entry)
	}
	switch {
	case d.effect == Allow:
	case x.Allow != "":
		x.Hint = tool.Advise("answer yes, or add ").And(tool.Do(tool.HintAllow, x.Allow))
	case d.change != nil:
		x.Hint = d.change
	case d.effect == Ask && (len(d.special()) > 0 || d.by.Source == SourceDefault):
		x.Hint = tool.Advise("answer yes")
	case d.effect == Ask:
		x.Hint = tool.Advise("answer yes; ").And(d.unasked())
	default:
		x.Hint = d.takeAway()
	}
	x.Change = x.Hint.String()
	return x
}

// Tier is how far the process would be confined; nil where the tool starts none.
func (d Decision) Tier() *Tier {
	if d.policy == nil || d.entry.Capabilities.Exec == "" {
		return nil
	}
	return new(d.policy.tier())
}

// unasked says how not to be asked about such a call any more.
func (d Decision) unasked() tool.Hint {
	if d.by.Source == SourceAdmin {
		return tool.Advise("that it asks is the administrator's: %s", d.by.Origin)
	}
	without := d.policy.decide(d.call, d.entry, d.facts, Allow)
	switch {
	case without.effect == Allow:
		return tool.Advise("to be asked no more, ").And(d.takeAway())
	case len(d.also) == 0:
		return tool.Advise("without %s it would ask all the same: %s", d.by, without.reason)
	}
	return tool.Advise("without the rules that ask it would ask all the same: %s", without.reason)
}

// takeAway says what to do about every rule and bound that decides.
func (d Decision) takeAway() tool.Hint {
	out := d.by.takeAway()
	said := []string{out.String()}
	for _, o := range d.also {
		if c := o.takeAway(); !slices.Contains(said, c.String()) {
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

// takeAway says what to change so that the rule does not decide.
func (r Decider) takeAway() tool.Hint {
	switch {
	case r.Rule == MinTierKey:
		further := tool.Advise("confine processes further (").And(tool.Do(tool.HintConfine, ""))
		if r.Source == SourceSettings {
			return further.And(tool.Advise("), or set %s = %d in ", MinTierKey, r.tier), tool.Do(tool.HintSettings, ""))
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
		return tool.Advise("leave out ").And(tool.Do(tool.HintUndeny, r.Rule))
	case r.Origin != "":
		return tool.Advise("take the rule %q away: %s", r.Rule, r.Origin)
	}
	return tool.Advise("take the rule %q of the layer %s away", r.Rule, r.Source)
}

// answer is the smallest rule about the call.
func (d Decision) answer() Rule {
	r := Rule{Effect: Allow, Tool: d.entry.Name, Secrets: d.secretNames(), Source: SourceFlag}
	if arg := d.entry.Capabilities.Exec; arg != "" {
		text, _ := d.args().Text(arg)
		name := arg
		if strings.ContainsAny(arg, ":=!/~") {
			name = match.Pointer(arg)
		}
		if c, err := match.NewCondition(match.Is, name, text, false); err == nil {
			r.Where = []match.Condition{c}
		}
	}
	return r
}

// allow is the text of the smallest rule that would allow the call; empty where no
// rule can, or none that could be typed.
func (d Decision) allow() string {
	if d.policy == nil || d.effect != Ask || d.floor || d.opens != "" {
		return ""
	}
	r := d.answer()
	if len(d.special()) > 0 {
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
