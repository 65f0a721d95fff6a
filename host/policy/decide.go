package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/tool"
)

// Decide says what happens to a call whose arguments fit the schema. A rule
// that denies wins over every rule that allows; where no rule speaks, the risk
// decides. A command that is easily regretted, may reach the network or uses a
// secret asks where a rule allows it, but for one that names it to the letter on
// the command line of this run; and so does a call that names a file which looks
// like a secret, but for a rule that names it too. What could only fail is denied.
// It looks at nothing but what it is given.
func (p *Policy) Decide(call tool.Call, entry *tool.Entry, facts Facts) Decision {
	return p.decide(call, entry, facts, Ask)
}

// decide leaves rules that ask out where least is Allow: to tell what would be
// without them.
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

// askAnyway asks about a process also where a rule allows it: for a command that is
// easily regretted, and for one that could send what it reads or uses a secret.
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
		reason := fmt.Sprintf("%s; that asks even where a rule allows it, and %q does", d.askAnywayReason, d.by.Rule)
		d.setOutcome(Ask, byDefault(rule), reason)
	}
}

// setOutcome makes a rule or a bound decide.
func (d *Decision) setOutcome(effect Effect, by Decider, reason string) {
	d.effect, d.by, d.reason = effect, by, reason
}

// applyCeiling decides what the ceiling forbids whatever the rules say, and returns
// every bound that does. A process would run in the tier.
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
	if !exec || d.entry.Name == bashTool { // of bash itself its rules speak
		return out
	}
	for i := range c.Rules {
		if r := &c.Rules[i]; r.Tool == bashTool && r.forbidsProcesses() {
			deny(r.decider(), fmt.Sprintf("the %s rule %q says deny, which holds for every tool that starts a process", r.Source, r))
		}
	}
	return out
}

// applyRules decides by the rules and, where none speaks, by the risk. Rules that ask
// count unless least is Allow.
func (p *Policy) applyRules(d *Decision, args *match.Arguments, least Effect) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	best, bestEffect, bestTruth := -1, Allow, match.Yes
	var deciding []int // the rules of that effect, unless it allows
	var over []int     // the rules that were answered where others ask
	p.candidates(d, args, func(i int, r *Rule) {
		answers := r.Effect == Allow && r.Source == SourceSession && len(r.Overrides) > 0
		if best >= 0 && (r.Effect > bestEffect && !answers || i == best) {
			return // it could not win
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
	if most, out := d.work.Exhausted(); out && (best < 0 || bestEffect != Deny) {
		r := &p.rules[most]
		d.setOutcome(Deny, Provenance{r.Source, r.Origin}.decider(r.String()),
			fmt.Sprintf("to hold the rules against this call takes more than the %d units of work that a decision may, %s", match.MaxWork, r.tookMost()))
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
		b.WriteString(", and that it does not speak of this call cannot be told from its words")
		if most, out := d.work.ProjectExhausted(); out && r.Source == SourceProject {
			fmt.Fprintf(&b, ": the project's rules may take %d units of work for a decision, and take more, %s", match.MaxProjectWork, p.rules[most].tookMost())
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

// candidates calls try with every rule that could speak of the call; p.mu is
// held. One can come twice.
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
	return fmt.Sprintf("most for the %s rule %.300q (%s)", r.Source, r, r.Origin)
}

// staleForNewSecret reports whether a remembered answer would have spoken of the call if
// the tool had not come to ask for another secret.
func (p *Policy) staleForNewSecret(r *Rule, d *Decision, args *match.Arguments) bool {
	if r.Effect != Allow || r.allowsSecrets(d.entry.Capabilities.Secrets) || p.holds(&r.Binding, d.entry) {
		return false
	}
	before := *r
	before.Secrets = d.secretNames()
	return before.matches(d, args) == match.Yes
}

// maxDeciding is how many rules that decide the same are named.
const maxDeciding = 20

// Decider is a rule or a bound that decides a call.
type Decider struct {
	Rule   string `json:"rule"`
	Source Source `json:"source"`
	Origin string `json:"origin,omitempty"`
	Calls  int    `json:"calls,omitempty"` // so many are permitted, and used up

	tier Tier   // of [MinTierKey]: the one that there is
	name string // of [OffKey]: what it holds
}

func (r *Rule) decider() Decider {
	return Decider{Rule: r.String(), Source: r.Source, Origin: r.Origin, Calls: r.AfterCalls}
}

// byDefault is what decides where no layer says anything.
func byDefault(rule string) Decider { return Decider{Rule: rule, Source: SourceDefault} }

// rank is the place of a source in the order of authority.
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
			d.effect, d.reason = Allow, "it only reads what is mounted, and whoever calls it has named both"
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
	case d.askFirstReason == "": // it is asked about when it does
		d.effect, d.reason = Ask, "it changes files"
	default:
		d.effect, d.reason = Ask, "it starts a process"
	}
}
