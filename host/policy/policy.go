package policy

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/policy/command"
	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/tool"
)

// Options says what the user has opened and answered, and what each layer
// permits. Its zero value opens nothing, and has no ceiling.
type Options struct {
	Mounts []Mount
	// Masked names directories that no guest sees, also where a mount holds
	// them: our own configuration, data, state and cache.
	Masked []string
	Rules  []Rule
	Limits Limits
	// Set says where limits are set, by their key in agent.toml, for a person; not
	// there: nowhere.
	Set map[string]string
	// Network is whom tools that ask for the network may talk to; nil is nobody.
	Network *network.Network
	// ConfirmAll asks before every call, safe ones too.
	ConfirmAll bool
	// Layers are what the administrator, the user, the project, the environment
	// and the flags say. Together they are the ceiling: Mounts, Limits, Network
	// and Rules count as far as it permits.
	Layers []Layer
	// Project is the directory of the workspace, in which answers of scope
	// "project" hold. Empty: there are none.
	Project string
	// Tier says how far a process is confined. Zero: not at all.
	Tier Tier
}

// Policy decides calls. It is safe for concurrent use.
type Policy struct {
	mounts     []Mount
	masked     []string
	limits     Limits
	set        map[string]string
	network    *network.Network // not nil
	confirmAll bool
	ceiling    Ceiling
	project    string
	tier       Tier
	bindings   sync.Map // *tool.Entry to Binding

	mu    sync.RWMutex
	rules []Rule
	index *match.Index // of rules
}

// New returns a policy with these options, which it copies.
func New(opts Options) *Policy {
	ceiling := Meet(opts.Layers)
	p := &Policy{
		masked:     slices.Clone(opts.Masked),
		limits:     opts.Limits.withDefaults().under(ceiling.Limits),
		set:        maps.Clone(opts.Set),
		network:    ceiling.Narrows(opts.Network),
		confirmAll: opts.ConfirmAll,
		ceiling:    ceiling,
		project:    opts.Project,
		tier:       opts.Tier,
		index:      match.NewIndex(),
	}
	if p.network == nil {
		p.network = network.New(nil) // whose denials say what would open it
	}
	for _, m := range opts.Mounts {
		if m, ok, _ := ceiling.PermitsMount(m); ok {
			p.mounts = append(p.mounts, m)
		}
	}
	for _, h := range ceiling.Hidden {
		p.masked = append(p.masked, h.Value)
	}
	for _, r := range slices.Concat(ceiling.Rules, opts.Rules, answers(opts.Layers)) {
		p.Add(r)
	}
	return p
}

// Ceiling is what all layers permit together.
func (p *Policy) Ceiling() Ceiling { return p.ceiling }

// Limits are those of every call, the defaults filled in.
func (p *Policy) Limits() Limits { return p.limits }

// Facts is what is known of a call beside what its caller says.
type Facts struct {
	Earlier int         // calls of the tool that came before it in the session
	Files   []NamedFile // that arguments name, see [PathArgs], with what was found out
}

// NamedFile is a file or directory that an argument names, there or not.
type NamedFile struct {
	Arg   string // its name, or a JSON pointer
	Named string // absolute and clean, as words tell
	// Path is where that is on the host, without links; empty where no mount
	// shows it, or a link leads out of the mount.
	Path         string
	Regular      bool // it is there, and a regular file
	InRepository bool // it belongs to a git repository that is not called .git
}

// Decision is the answer to one call. It is made by [Policy.Decide] only.
type Decision struct {
	policy *Policy
	call   tool.Call
	entry  *tool.Entry
	facts  Facts

	work   *match.Work
	effect Effect
	risk   Risk
	rule   string
	source Source
	origin string
	reason string
	floor  bool      // it asks whatever anybody has answered
	exact  bool      // a flag of this run allows the very command
	danger string    // what is regretted in the command; empty: nothing
	stale  []Rule    // that would have answered, had nothing changed
	inert  []Rule    // that would have answered, if such rules counted
	also   []Decider // that decide the same
	calls  int       // so many are permitted, and used up

	reads, changed []specialPath // that need care, and an answer to this call alone
	change         tool.Hint     // what would change a decision that no rule makes
}

// Effect is allow, ask or deny.
func (d Decision) Effect() Effect { return d.effect }

// Risk is the tool's.
func (d Decision) Risk() Risk { return d.risk }

// Rule is the text of the rule that decided, or "risk medium" and the like
// where the default did.
func (d Decision) Rule() string { return d.rule }

// Source says where that rule comes from.
func (d Decision) Source() Source { return d.source }

// Reason explains the decision in one clause.
func (d Decision) Reason() string { return d.reason }

// Origin is where that rule is written, such as FILE:LINE; empty where its
// source says it.
func (d Decision) Origin() string { return d.origin }

func (d Decision) args() *match.Arguments {
	return match.NewArguments(d.call.Args, d.call.Cwd, d.work)
}

// secretNames are the secrets that the tool asks for, as a rule names them.
func (d Decision) secretNames() string {
	return strings.Join(tool.SecretNames(d.entry.Capabilities.Secrets), ",")
}

// Decide says what happens to a call whose arguments fit the schema. A rule
// that denies wins over every rule that allows; where no rule speaks, the risk
// decides. A command that is easily regretted asks where a rule allows it, but
// for one that names it to the letter on the command line of this run; and so
// does a call that names a file which looks like a secret, but for a rule that
// names it too. What could only fail is denied. It looks at nothing but what it
// is given.
func (p *Policy) Decide(call tool.Call, entry *tool.Entry, facts Facts) Decision {
	return p.decide(call, entry, facts, Ask)
}

// decide leaves rules that ask out where least is Allow: to tell what would be
// without them.
func (p *Policy) decide(call tool.Call, entry *tool.Entry, facts Facts, least Effect) Decision {
	d := Decision{policy: p, call: call, entry: entry, facts: facts, work: match.NewWork(), risk: RiskOf(entry.Capabilities), source: SourceDefault}
	if bounds := p.bounded(&d); len(bounds) > 0 {
		ruled := d
		p.ruled(&ruled, d.args(), Ask)
		if ruled.effect == Deny {
			bounds = append(bounds, slices.Concat([]Decider{ruled.decider()}, ruled.also)...)
		}
		d.also = bounds[1:]
		return d
	}
	args := d.args()
	p.ruled(&d, args, least)
	if len(p.ceiling.Confirm) > 0 && d.effect != Deny && least == Ask {
		var confirm []Decider
		for _, l := range p.ceiling.Confirm {
			confirm = append(confirm, Decider{Rule: "require_confirmation", Source: l.From.Source, Origin: l.From.Origin})
		}
		if d.floor {
			d.also = append(d.also, confirm...)
		} else {
			d.by(Ask, p.ceiling.Confirm[0].From, "require_confirmation", "every call asks first")
			d.also, d.floor = confirm[1:], true
		}
	}
	d.regret(args)
	p.readsSecrets(&d)
	p.bar(&d, args)
	return d
}

// regret asks about a command that is easily regretted, also where a rule
// allows it.
func (d *Decision) regret(args *match.Arguments) {
	if d.effect == Deny || d.entry.Capabilities.Exec == "" {
		return
	}
	var found []string
	for _, text := range args.Texts(d.entry.Capabilities.Exec) {
		found = append(found, command.Parse(text).Dangers()...)
	}
	d.danger = strings.Join(found, ", ")
	switch {
	case d.danger == "":
	case d.effect == Ask:
		d.reason += ", and " + d.danger
	case !d.exact:
		reason := fmt.Sprintf("%s; that asks even where a rule allows it, and %q does", d.danger, d.rule)
		d.by(Ask, From{Source: SourceDefault}, "dangerous command", reason)
	}
}

// by makes a bound of a layer decide.
func (d *Decision) by(effect Effect, from From, rule, reason string) {
	d.effect, d.rule, d.source, d.origin, d.reason = effect, rule, from.Source, from.Origin, reason
}

// bounded decides what the ceiling forbids whatever the rules say, and returns
// every bound that does.
func (p *Policy) bounded(d *Decision) []Decider {
	mod, c := d.entry.Module, &p.ceiling
	var out []Decider
	deny := func(from From, rule, reason string) {
		if out == nil {
			d.by(Deny, from, rule, reason)
		}
		out = append(out, Decider{Rule: rule, Source: from.Source, Origin: from.Origin})
	}
	facts := moduleFacts{mod.Origin == tool.OriginBuiltin, mod.Digest, mod.Signer, mod.Namespace}
	if ok, why, from := c.mayRun(facts); !ok {
		deny(from, "modules", why)
	}
	exec := d.entry.Capabilities.Exec != ""
	if exec && c.MinTier != nil && int64(p.tier) < c.MinTier.Value {
		deny(c.MinTier.From, "bash.min_tier", fmt.Sprintf("a process would run in %s here, and %d is the least", p.tier, c.MinTier.Value))
	}
	for _, off := range c.Off {
		if does := switchedOff(off.Value, d.entry.Capabilities); does != "" {
			deny(off.From, off.Value, fmt.Sprintf("%s = false, and %s", off.Value, does))
		}
	}
	if !exec || d.entry.Name == bashTool { // of bash itself its rules speak
		return out
	}
	for i := range c.Rules {
		if r := &c.Rules[i]; r.Tool == bashTool && r.forbidsProcesses() {
			deny(From{Source: r.Source, Origin: r.Origin}, r.String(),
				fmt.Sprintf("the %s rule %q says deny, which holds for every tool that starts a process", r.Source, r))
		}
	}
	return out
}

// ruled decides by the rules and, where none speaks, by the risk. Rules that ask
// count unless least is Allow.
func (p *Policy) ruled(d *Decision, args *match.Arguments, least Effect) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	best, bestEffect, bestTruth := -1, Allow, match.Yes
	var deciding []int // the rules of that effect, unless it allows
	p.candidates(d, args, func(i int, r *Rule) {
		if best >= 0 && (r.Effect > bestEffect || i == best) {
			return // it could not win
		}
		t := r.matches(d, args)
		if t == match.No || t == match.Unsure && r.Effect == Allow {
			if p.outgrown(r, d, args) {
				d.stale = append(d.stale, *r)
			}
			if r.inert(p.tier, d.entry.Capabilities) != nil && r.speaks(d, args) == match.Yes &&
				!slices.ContainsFunc(d.inert, func(o Rule) bool { return o.identity() == r.identity() }) {
				d.inert = append(d.inert, *r)
			}
			return
		}
		if r.Bound.Module != "" && !p.holds(&r.Bound, d.entry) {
			if r.Effect == Allow {
				d.stale = append(d.stale, *r)
			}
			return
		}
		effect := r.Effect
		if t == match.Unsure {
			effect = Ask
		}
		if effect == Ask && least == Allow {
			return
		}
		if best >= 0 && effect < bestEffect {
			deciding = nil
		}
		if effect != Allow && (best < 0 || effect <= bestEffect) && len(deciding) < maxDeciding && !slices.Contains(deciding, i) {
			deciding = append(deciding, i)
		}
		d.exact = d.exact || effect == Allow && r.exact(d.entry.Capabilities.Exec)
		if best < 0 || effect < bestEffect || effect == bestEffect && rank(r.Source) < rank(p.rules[best].Source) {
			best, bestEffect, bestTruth = i, effect, t
		}
	})
	if most, out := d.work.Out(); out && (best < 0 || bestEffect != Deny) {
		r := &p.rules[most]
		d.by(Deny, From{r.Source, r.Origin}, r.String(),
			fmt.Sprintf("to hold the rules against this call takes more than the %d units of work that a decision may, %s", match.MaxWork, r.tookMost()))
		return
	}
	if best < 0 {
		p.byRisk(d)
		for i := range d.inert {
			r := &d.inert[i]
			d.reason += fmt.Sprintf("; the %s rule %q (%s) would allow it: %s", r.Source, r, r.Origin, r.inert(p.tier, d.entry.Capabilities))
		}
		return
	}
	r := &p.rules[best]
	for _, i := range deciding {
		if i != best {
			o := &p.rules[i]
			d.also = append(d.also, Decider{o.String(), o.Source, o.Origin, o.After})
		}
	}
	d.effect, d.rule, d.source, d.origin, d.floor, d.calls = bestEffect, r.String(), r.Source, r.Origin, bestEffect != Allow, r.After
	var b strings.Builder
	if r.After > 0 {
		fmt.Fprintf(&b, "the calls of %s in this session are used up, %d of %d: ", d.entry.Name, r.After, r.After)
	}
	b.WriteString("the ")
	b.WriteString(string(r.Source))
	b.WriteString(" rule ")
	b.WriteString(strconv.Quote(d.rule))
	if r.After > 0 {
		fmt.Fprintf(&b, " permits %d in a session", r.After)
	} else {
		b.WriteString(" says ")
		b.WriteString(r.Effect.String())
	}
	if bestTruth == match.Unsure {
		b.WriteString(", and that it does not speak of this call cannot be told from its words")
		if most, out := d.work.ProjectOut(); out && r.Source == SourceProject {
			fmt.Fprintf(&b, ": the project's rules may take %d units of work for a decision, and take more, %s", match.MaxProjectWork, p.rules[most].tookMost())
		}
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

// outgrown reports whether a remembered answer would have spoken of the call if
// the tool had not come to ask for another secret.
func (p *Policy) outgrown(r *Rule, d *Decision, args *match.Arguments) bool {
	if r.Effect != Allow || r.Bound.Module == "" || r.allowsSecrets(d.entry.Capabilities.Secrets) || p.holds(&r.Bound, d.entry) {
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
}

func (d Decision) decider() Decider { return Decider{d.rule, d.source, d.origin, d.calls} }

// rank is the place of a source in the order of authority.
func rank(s Source) int {
	if i := slices.Index(authority, s); i >= 0 {
		return i
	}
	return len(authority)
}

func (p *Policy) holds(b *Binding, e *tool.Entry) bool {
	now, ok := p.bindings.Load(e)
	if !ok {
		now, _ = p.bindings.LoadOrStore(e, bind(e))
	}
	return b.changed(now.(Binding)) == nil
}

func (p *Policy) byRisk(d *Decision) {
	d.rule = "risk " + d.risk.String()
	switch {
	case d.risk == RiskSafe && !p.confirmAll:
		d.effect, d.reason = Allow, "it only reads what is mounted"
		if d.entry.Capabilities.Files == tool.FilesNone {
			d.reason = "it reaches nothing outside itself"
		}
	case d.risk == RiskSafe:
		d.effect, d.reason = Ask, "require_confirmation is set"
	case d.risk == RiskMedium:
		d.effect, d.reason = Ask, "it changes files"
		if names := d.secretNames(); names != "" && d.entry.Capabilities.Files != tool.FilesWrite {
			d.reason = "it uses secrets: " + names
		} else if names != "" {
			d.reason = "it changes files and uses secrets: " + names
		}
	case d.entry.Capabilities.Exec == "":
		d.effect, d.reason = Ask, "it reaches the network"
		if names := d.secretNames(); names != "" {
			d.reason += " and uses secrets: " + names
		}
	default:
		d.effect, d.reason = Ask, "it starts a process"
	}
}

// Hides reports whether no call of a tool by this caller can come to anything,
// whatever its arguments: such a tool need not be shown.
func (p *Policy) Hides(entry *tool.Entry, by tool.Caller) bool {
	d := Decision{policy: p, call: tool.Call{Caller: by}, entry: entry, work: match.NewWork(), risk: RiskOf(entry.Capabilities)}
	if len(p.bounded(&d)) > 0 {
		return true
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, of := range []string{entry.Name, AnyTool} {
		for _, i := range p.index.Plain(of) {
			r := &p.rules[i]
			if r.Effect == Deny && len(r.Where) == 0 && r.After == 0 && r.Turn == 0 && (r.Bound.Module == "" || p.holds(&r.Bound, entry)) &&
				r.matches(&d, d.args()) == match.Yes {
				return true
			}
		}
	}
	return false
}

// Rules lists the rules in force, the newest last.
func (p *Policy) Rules() []Rule {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Clone(p.rules)
}

// rememberable: what asks, and was not decided by a rule. A rule that asks wins
// over one that allows, so it asks every time. Of a process, it is the one
// program that it names, confined.
func (d Decision) rememberable() error {
	switch {
	case d.policy == nil:
		return errors.New("nothing was decided")
	case d.effect != Ask || d.source != SourceDefault:
		return errors.New("an answer here holds once: a rule or a setting asks every time")
	case len(d.special()) > 0:
		return errors.New("an answer about such a path holds once, for this call")
	case d.entry.Capabilities.Exec == "":
		return nil
	case d.policy.tier == TierNone:
		return errors.New("an answer for a command holds once: nothing confines the command yet")
	}
	text, _ := d.args().Text(d.entry.Capabilities.Exec)
	line := command.Parse(text)
	switch {
	case !line.Literal:
		return errors.New("an answer for this command holds once: it is more than one program and its literal arguments")
	case command.RunsOthers(line.Commands[0]):
		return fmt.Errorf("an answer for this command holds once: %s runs what its arguments say", line.Commands[0][0])
	case d.danger != "":
		return fmt.Errorf("an answer for this command holds once: %s", d.danger)
	case command.Written(line.Commands[0][0]):
		return fmt.Errorf("an answer for this command holds once: what %s holds can change", line.Commands[0][0])
	}
	return nil
}

// Grant gives what an allowing decision allows. It fails on any other.
func (d Decision) Grant() (Grant, error) {
	if d.policy == nil || d.effect != Allow {
		return Grant{}, fmt.Errorf("grant %s: the decision is %q", d.call.Tool, d.effect)
	}
	return d.newGrant()
}

// Approve gives what an asking decision would allow, once the answer has been
// recorded. recorded is the sequence number of that record in the session's
// log; without one there is no grant.
func (d Decision) Approve(a Answer, recorded uint64) (Grant, error) {
	switch {
	case d.policy == nil || d.effect != Ask:
		return Grant{}, fmt.Errorf("approve %s: the decision is %q", d.call.Tool, d.effect)
	case !a.Allow:
		return Grant{}, fmt.Errorf("approve %s: the answer was no", d.call.Tool)
	case recorded == 0:
		return Grant{}, fmt.Errorf("approve %s: the answer was not recorded", d.call.Tool)
	}
	return d.newGrant()
}

// CanRehearse reports whether the call can be run before the answer, so that
// the question can show what it changes: a call that reaches nothing but files,
// whose changes are staged. One that uses a secret reaches more, and waits for
// the answer.
func (d Decision) CanRehearse() bool {
	c := d.entry.Capabilities
	return d.policy != nil && d.effect == Ask && c.Files == tool.FilesWrite &&
		c.Exec == "" && c.Network == tool.NetworkNone && len(c.Secrets) == 0
}

// Rehearse gives what a call may do before the answer, see [Grant.Rehearsal].
func (d Decision) Rehearse() (Grant, error) {
	if !d.CanRehearse() {
		return Grant{}, fmt.Errorf("rehearse %s: it cannot be tried without an answer", d.call.Tool)
	}
	grant, err := d.newGrant()
	if err == nil {
		grant.g.rehearsal = true
	}
	return grant, err
}

// OnlyChanges reports whether the changes are all that asks: the same call
// would be allowed if it changed nothing. What a call has read that looks like
// a secret is told only after an answer, as is that it has failed.
func (d Decision) OnlyChanges() bool {
	return d.CanRehearse() && d.source == SourceDefault && len(d.special()) == 0 && !d.policy.confirmAll && len(d.policy.ceiling.Confirm) == 0
}

// RuleFor returns the rule that an answer of that scope makes. It fails for a
// scope that the question did not offer.
func (d Decision) RuleFor(scope Scope) (Rule, error) {
	if err := d.rememberable(); err != nil {
		return Rule{}, err
	}
	r := Rule{Effect: Allow, Tool: d.entry.Name, Secrets: d.secretNames(), Bound: bind(d.entry), Source: SourceUser}
	switch {
	case scope == ScopeTurn && d.call.Turn > 0:
		r.Turn, r.Source = d.call.Turn, SourceSession
	case scope == ScopeSession:
		r.Source = SourceSession
	case scope == ScopeProject && d.policy.project != "":
		r.Project = d.policy.project
	case scope == ScopeAlways:
	default:
		return Rule{}, fmt.Errorf("an answer of scope %q makes no rule here", scope)
	}
	if arg := d.entry.Capabilities.Exec; arg != "" {
		text, _ := d.args().Text(arg)
		words, err := command.Quote(command.Parse(text).Commands[0])
		if err != nil {
			return Rule{}, err
		}
		c, err := match.NewCondition(match.Words, arg, words, false)
		if err != nil {
			return Rule{}, err
		}
		r.Where = []match.Condition{c}
	}
	return r, nil
}

// Add makes a rule hold from now on.
func (p *Policy) Add(r Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.index.Add(len(p.rules), r.Tool, r.Where)
	p.rules = append(p.rules, r)
}

func (d Decision) newGrant() (Grant, error) {
	p, caps := d.policy, d.entry.Capabilities
	g := &grant{
		callID: d.call.ID, tool: d.entry.Name, digest: d.entry.Module.Digest,
		args: d.call.ArgsDigest(), cwd: d.call.Cwd, limits: p.limits, most: p.ceiling.Limits, set: p.set, secrets: cloneSecrets(caps.Secrets),
	}
	if caps.Files != tool.FilesNone {
		g.masked = p.masked
		for _, s := range d.reads {
			g.opened = append(g.opened, s.path)
		}
		for _, m := range p.mounts {
			m.Write = m.Write && caps.Files == tool.FilesWrite
			g.mounts = append(g.mounts, m)
		}
	}
	if caps.Network == tool.NetworkHTTP {
		g.network = p.network
	}
	if caps.Exec != "" {
		args := d.args()
		command, ok := args.Text(caps.Exec)
		if !ok || command == "" {
			return Grant{}, fmt.Errorf("grant %s: the argument %q holds no command", d.entry.Name, caps.Exec)
		}
		g.execDigest = execDigest(bashArgv(command), d.call.Cwd)
		g.mayExec = true
		timeout := p.limits.ExecTimeout
		if raw, ok := args.Get(caps.ExecTimeout); ok && string(raw) != "null" {
			seconds, err := strconv.ParseFloat(string(raw), 64)
			if err != nil || seconds < 1 || seconds != math.Trunc(seconds) {
				return Grant{}, fmt.Errorf("grant %s: %s is %.40s; it is a whole number of seconds, at least 1", d.entry.Name, caps.ExecTimeout, raw)
			}
			timeout = p.limits.ExecTimeoutMax
			if seconds < timeout.Seconds() { // also where so many seconds are no time.Duration
				timeout = time.Duration(seconds) * time.Second
			}
		}
		g.limits.ExecTimeout = min(timeout, p.limits.ExecTimeoutMax)
		g.limits.Timeout = g.limits.ExecTimeout + execMargin
	}
	return Grant{g: g}, nil
}
