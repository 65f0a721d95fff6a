package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/tool"
)

// Decide decides about a call whose arguments fit the schema. A rule that denies wins over
// every rule that allows. If no rule applies, the risk decides.
//
// Three kinds of calls ask even if a rule allows them. A command asks if it is dangerous, asks
// for the network or uses a secret, unless a flag of this run allows exactly this command. A
// call asks if it would read a file that looks like a secret, unless a rule names the file,
// too; see applySecretReads. A call asks if it needs a host that no rule opens but a yes can.
// A call that, by its text, could only fail is denied. Decide is pure: it reads nothing but
// its arguments and the policy, whose functions Tier and WhyNotStaged it may call.
func (p *Policy) Decide(call tool.Call, entry *tool.Entry, facts Facts) Decision {
	return p.decide(call, entry, facts, Ask)
}

// decide is [Policy.Decide] with least = Ask. With least = Allow, rules and bounds that ask do
// not count: the result is the decision that would be made without them.
func (p *Policy) decide(call tool.Call, entry *tool.Entry, facts Facts, least Effect) Decision {
	d := Decision{policy: p, call: call, entry: entry, access: p.accessOf(entry), facts: facts, work: match.NewWork(), risk: RiskOf(entry), by: byDefault("")}
	args := d.args()
	if arg := entry.Capabilities.ExecNetwork; arg != "" {
		raw, _ := args.Get(arg)
		d.execNetwork = string(raw) == "true"
	}
	if bounds := p.applyCeiling(&d, p.tier); len(bounds) > 0 {
		ruled := d
		p.applyRules(&ruled, args, Ask)
		if ruled.effect == Deny {
			bounds = append(bounds, slices.Concat([]Decider{ruled.by}, ruled.also)...)
		}
		d.also = bounds[1:]
		return d
	}
	if why := d.forbiddenByPlan(p.tier); why != "" {
		d.setOutcome(Deny, byDefault(PlanRule), why)
		d.hint = tool.Advise("the person is planning with you: say what you would change, and they decide when to begin")
		return d
	}
	d.opensHost = p.hostToAsk(&d, args)
	p.applyRules(&d, args, least)
	if len(p.ceiling.Confirm) > 0 && d.effect != Deny && least == Ask {
		var confirm []Decider
		for _, l := range p.ceiling.Confirm {
			by := l.From.decider("require_confirmation")
			if id := lengthPrefixed(by.Rule, []string{by.Origin}); !by.Source.isPersonal() {
				d.othersAsk = true
			} else if slices.Contains(d.overridden, id) {
				continue
			} else {
				d.personalAsking = append(d.personalAsking, id)
			}
			confirm = append(confirm, by)
		}
		switch {
		case len(confirm) == 0:
		case d.mustAsk:
			d.also = append(d.also, confirm...)
		default:
			d.setOutcome(Ask, confirm[0], "every call asks first")
			d.also, d.mustAsk = confirm[1:], true
		}
	}
	d.askAnyway(args)
	p.applySecretReads(&d)
	if p.denyImpossible(&d, args); d.effect == Deny {
		d.opensHost = ""
	}
	return d
}

// askAnyway makes an allowed process ask if its command is dangerous, asks for the network or
// uses a secret, unless a flag allows exactly this command.
func (d *Decision) askAnyway(args *match.Arguments) {
	caps := d.entry.Capabilities
	if d.effect == Deny || caps.Exec == "" {
		return
	}
	var found []string
	for line := range args.Commands(caps.Exec) {
		found = append(found, line.Dangers()...)
	}
	rule := "dangerous command"
	if len(found) == 0 {
		rule = "command with the network or a secret"
	}
	if d.execNetwork {
		found = append(found, "it reaches the network")
	}
	if names := d.secretNames(); names != "" {
		found = append(found, "it uses secrets: "+names)
	}
	d.askAnywayReason = strings.Join(found, ", ")
	switch {
	case d.askAnywayReason == "":
	case d.effect == Ask:
		d.reason += ", and " + d.askAnywayReason
	case !d.flagAllowsCommand:
		reason := fmt.Sprintf("%s; that asks even if a rule allows it, as %q does", d.askAnywayReason, d.by.Rule)
		d.setOutcome(Ask, byDefault(rule), reason)
	}
}

func (d *Decision) setOutcome(effect Effect, by Decider, reason string) {
	d.effect, d.by, d.reason = effect, by, reason
}

// applyCeiling denies a call that the ceiling forbids, whatever the rules allow. It returns
// every bound that forbids the call; nil: none does. The bounds on files and hosts are checked
// elsewhere. tier returns the tier of a process.
func (p *Policy) applyCeiling(d *Decision, tier func() Tier) []Decider {
	c := &p.ceiling
	var out []Decider
	deny := func(by Decider, reason string) {
		if out == nil {
			d.setOutcome(Deny, by, reason)
		}
		out = append(out, by)
	}
	if ok, why, from := c.mayRun(d.entry.Module); !ok {
		deny(from.decider("modules"), why)
	}
	exec := d.entry.Capabilities.Exec != ""
	if exec && c.MinTier != nil && int64(tier()) < c.MinTier.Value {
		by := c.MinTier.From.decider(MinTierKey)
		by.tier = tier()
		deny(by, fmt.Sprintf("a process would run in %s here, and %d is the least", tier(), c.MinTier.Value))
	}
	asked := d.entry.Capabilities
	if d.execNetwork {
		asked.Network = tool.NetworkHTTP
	}
	for _, off := range c.DisabledCapabilities {
		if does := switchedOff(off.Value, asked); does != "" {
			deny(off.From.decider(off.Value), fmt.Sprintf("%s = false, and %s", off.Value, does))
		}
	}
	for _, l := range c.DisabledNames {
		if isNamed(l.Value, d.entry) {
			by := l.From.decider(OffKey)
			by.name = l.Value
			deny(by, fmt.Sprintf("%s holds %q", OffKey, l.Value))
		}
	}
	if !exec || d.entry.Name == bashTool { // applyRules applies the rules about bash to bash itself
		return out
	}
	for i := range c.Rules {
		if r := &c.Rules[i]; r.Tool == bashTool && r.forbidsProcesses() {
			deny(r.decider(), fmt.Sprintf("the %s rule %q says deny, which holds for every tool that starts a process", r.Source, r))
		}
	}
	return out
}

// applyRules decides by the rules or, if no rule applies, by the risk. If the rules need more
// work than they may use, the call is denied. If least is Allow, rules that ask do not count.
func (p *Policy) applyRules(d *Decision, args *match.Arguments, least Effect) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	best, bestEffect, bestTruth := -1, Allow, match.Yes
	var deciding []int // positions of the rules with bestEffect; nil if bestEffect is Allow
	var over []int     // the positions of session answers that win over rules that ask
	p.candidates(d, args, func(i int, r *Rule) {
		answers := r.Effect == Allow && r.Source == SourceSession && len(r.Overrides) > 0
		if best >= 0 && (r.Effect > bestEffect && !answers || i == best) {
			return // it cannot win
		}
		t := r.matches(d, args)
		if t == match.No || t == match.Unsure && r.Effect == Allow {
			if p.staleForNewSecret(r, d, args) {
				d.stale = append(d.stale, *r)
			}
			if r.whyNeverCounts(p.tier, d.entry.Capabilities) != nil && r.matchesConditions(d, args) == match.Yes &&
				!slices.ContainsFunc(d.uncountedRules, func(o Rule) bool { return o.identity() == r.identity() }) {
				d.uncountedRules = append(d.uncountedRules, *r)
			}
			return
		}
		if !p.holds(&r.Binding, d.entry) {
			if r.Effect == Allow {
				d.stale = append(d.stale, *r)
			}
			return
		}
		effect := r.Effect
		if t == match.Unsure {
			effect = Ask
		}
		switch {
		case effect == Ask && least == Allow:
			return
		case effect == Ask && r.Effect == Ask && r.Source.isPersonal():
			if id := r.identity(); !slices.Contains(d.personalAsking, id) {
				d.personalAsking = append(d.personalAsking, id)
			}
		case effect == Ask:
			d.othersAsk = true
		case answers:
			over = append(over, i)
			d.overridden = append(d.overridden, r.Overrides...)
			if best >= 0 && bestEffect < Allow {
				return
			}
		}
		if best >= 0 && effect < bestEffect {
			deciding = nil
		}
		if effect != Allow && (best < 0 || effect <= bestEffect) && len(deciding) < maxDeciding && !slices.Contains(deciding, i) {
			deciding = append(deciding, i)
		}
		d.flagAllowsCommand = d.flagAllowsCommand || effect == Allow && r.isExactFlag(d.entry.Capabilities.Exec)
		d.flagAllowsCall = d.flagAllowsCall || effect == Allow && r.Source == SourceFlag
		if best < 0 || effect < bestEffect || effect == bestEffect && rank(r.Source) < rank(p.rules[best].Source) {
			best, bestEffect, bestTruth = i, effect, t
		}
	})
	if costliest, out := d.work.Exhausted(); out && (best < 0 || bestEffect != Deny) {
		r := &p.rules[costliest]
		d.setOutcome(Deny, Provenance{r.Source, r.Origin}.decider(r.String()),
			fmt.Sprintf("checking the rules for this call takes more than the %d units of work that a decision may use, %s", match.MaxWork, r.tookMost()))
		return
	}
	unanswered := func(id string) bool { return !slices.Contains(d.overridden, id) }
	if best >= 0 && bestEffect == Ask && len(over) > 0 && !d.othersAsk && !slices.ContainsFunc(d.personalAsking, unanswered) {
		best, bestEffect, bestTruth, deciding = over[0], Allow, match.Yes, nil
	}
	if best < 0 {
		p.decideStaging(d, "")
		p.applyRisk(d)
		for i := range d.uncountedRules {
			r := &d.uncountedRules[i]
			d.reason += fmt.Sprintf("; the %s rule %q (%s) would allow it: %s", r.Source, r, r.Origin, r.whyNeverCounts(p.tier, d.entry.Capabilities))
		}
		return
	}
	r := &p.rules[best]
	d.ruleChanges = r.Changes
	p.decideStaging(d, r.Changes)
	for _, i := range deciding {
		if i != best {
			d.also = append(d.also, p.rules[i].decider())
		}
	}
	d.effect, d.by, d.mustAsk = bestEffect, r.decider(), bestEffect != Allow
	var b strings.Builder
	if r.AfterCalls > 0 {
		fmt.Fprintf(&b, "the calls of %s in this session are used up, %d of %d: ", d.entry.Name, r.AfterCalls, r.AfterCalls)
	}
	b.WriteString("the ")
	b.WriteString(string(r.Source))
	b.WriteString(" rule ")
	b.WriteString(strconv.Quote(d.by.Rule))
	if r.AfterCalls > 0 {
		fmt.Fprintf(&b, " permits %d in a session", r.AfterCalls)
	} else {
		b.WriteString(" says ")
		b.WriteString(r.Effect.String())
	}
	if bestTruth == match.Unsure {
		b.WriteString(", and the text of the call does not show whether it applies")
		if costliest, out := d.work.ProjectExhausted(); out && r.Source == SourceProject {
			fmt.Fprintf(&b, ": the project's rules may use %d units of work for a decision and need more, %s", match.MaxProjectWork, p.rules[costliest].tookMost())
		}
	}
	if exec := d.entry.Capabilities.Exec; exec != "" && bestEffect == Allow && (r.remembered() || !r.namesCommand(exec)) {
		fmt.Fprintf(&b, "; it counts because the command is confined, in %s", p.tier())
	}
	if r.Why != "" {
		b.WriteString(": ")
		b.WriteString(r.Why)
	}
	d.reason = b.String()
}

// candidates calls try with every rule that could apply to the call, and its position. It may
// call try more than once for a rule. p.mu is held.
func (p *Policy) candidates(d *Decision, args *match.Arguments, try func(int, *Rule)) {
	begin := func(i int) { d.work.Begin(i, p.rules[i].Source == SourceProject) }
	for _, of := range []string{d.entry.Name, AnyTool} {
		p.index.Find(of, args, begin, func(i int) {
			begin(i)
			try(i, &p.rules[i])
		})
	}
	d.work.End()
}

func (r *Rule) tookMost() string {
	return fmt.Sprintf("most of them for the %s rule %.300q (%s)", r.Source, r, r.Origin)
}

// staleForNewSecret reports whether a remembered answer does not apply to the call only
// because the tool now asks for another secret than when the answer was given.
func (p *Policy) staleForNewSecret(r *Rule, d *Decision, args *match.Arguments) bool {
	if r.Effect != Allow || r.allowsSecrets(d.entry.Capabilities.Secrets) || p.holds(&r.Binding, d.entry) {
		return false
	}
	before := *r
	before.Secrets = d.secretNames()
	return before.matches(d, args) == match.Yes
}

// maxDeciding limits the number of rules that a decision names as its reasons. All of them
// have the effect of the decision; further ones are left out.
const maxDeciding = 20

// Decider is the rule or bound that decides a call, or the default.
type Decider struct {
	Rule   string `json:"rule"`
	Source Source `json:"source"`
	Origin string `json:"origin,omitempty"`
	Calls  int    `json:"calls,omitempty"` // calls that the rule permits, all used up; 0: no such rule

	tier Tier   // tier in which a process would run, if Rule is [MinTierKey]
	name string // name of the tool or module in the list, if Rule is [OffKey]
}

func (r *Rule) decider() Decider {
	return Decider{Rule: r.String(), Source: r.Source, Origin: r.Origin, Calls: r.AfterCalls}
}

// byDefault returns the decider for a decision that no layer made.
func byDefault(rule string) Decider { return Decider{Rule: rule, Source: SourceDefault} }

// rank returns the position of a source in [authority]; other sources come after all of these.
func rank(s Source) int {
	if i := slices.Index(authority, s); i >= 0 {
		return i
	}
	return len(authority)
}

func (p *Policy) applyRisk(d *Decision) {
	d.by.Rule = "risk " + d.risk.String()
	switch {
	case d.risk == RiskSafe && !p.confirmAll:
		d.effect, d.reason = Allow, "it only reads what is mounted"
		if d.entry.Capabilities.Files == tool.FilesNone {
			d.reason = "it reaches nothing outside itself"
		}
	case d.risk == RiskSafe:
		d.effect, d.reason = Ask, "require_confirmation is set"
	case d.risk == RiskMedium && d.entry.Capabilities.Files == tool.FilesRead && d.secretNames() == "":
		d.effect, d.reason = Ask, "others wrote it, and it reads files"
		if !d.isThirdPartyReader() && !p.confirmAll {
			d.effect, d.reason = Allow, "it only reads what is mounted, and the person who runs it has chosen the tool and the mounts"
		}
	case d.risk == RiskMedium:
		d.effect, d.reason = Ask, "it changes files"
		if names := d.secretNames(); names != "" && d.entry.Capabilities.Files != tool.FilesWrite {
			d.reason = "it uses secrets: " + names
			if d.isThirdPartyReader() {
				d.reason = "others wrote it, and it reads files and uses secrets: " + names
			}
		} else if names != "" {
			d.reason = "it changes files and uses secrets: " + names
		}
	case d.entry.Capabilities.Exec == "":
		d.effect, d.reason = Ask, "it reaches the network"
		if d.isThirdPartyReader() {
			d.reason = "others wrote it, and it reads files and reaches the network"
		}
		if names := d.secretNames(); names != "" {
			d.reason += " and uses secrets: " + names
		}
	case d.askFirstReason == "": // it runs first, and asks once its changes are known
		d.effect, d.reason = Ask, "it changes files"
	default:
		d.effect, d.reason = Ask, "it starts a process"
	}
}
