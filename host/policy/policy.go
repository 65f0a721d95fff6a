package policy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

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
	// Network is whom tools that ask for the network may talk to; nil is nobody.
	Network *Network
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
	network    *Network
	confirmAll bool
	ceiling    Ceiling
	project    string
	tier       Tier
	bindings   sync.Map // *tool.Entry to Binding

	mu    sync.RWMutex
	rules []Rule
	index index // of rules
}

// New returns a policy with these options, which it copies.
func New(opts Options) *Policy {
	ceiling := Meet(opts.Layers)
	p := &Policy{
		masked:     slices.Clone(opts.Masked),
		limits:     opts.Limits.withDefaults().under(ceiling.Limits),
		network:    ceiling.Narrows(opts.Network),
		confirmAll: opts.ConfirmAll,
		ceiling:    ceiling,
		project:    opts.Project,
		tier:       opts.Tier,
		index:      newIndex(),
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

// Decision is the answer to one call. It is made by [Policy.Decide] only.
type Decision struct {
	policy *Policy
	call   tool.Call
	entry  *tool.Entry

	effect Effect
	risk   Risk
	rule   string
	source Source
	origin string
	reason string
	floor  bool   // it asks whatever anybody has answered
	exact  bool   // a flag of this run allows the very command
	danger string // what is regretted in the command; empty: nothing
	stale  []Rule // that would have answered, had nothing changed

	reads, changed []specialPath // that need care, and an answer to this call alone
	closed         bool          // it is denied because of a path
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

func (d Decision) args() *arguments { return &arguments{raw: d.call.Args, cwd: d.call.Cwd} }

// secretNames are the secrets that the tool asks for, as a rule names them.
func (d Decision) secretNames() string {
	return strings.Join(tool.SecretNames(d.entry.Capabilities.Secrets), ",")
}

// Decide says what happens to a call whose arguments fit the schema. A rule
// that denies wins over every rule that allows; where no rule speaks, the risk
// decides. A command that is easily regretted asks where a rule allows it, but
// for one that names it to the letter on the command line of this run; and so
// does a call that names a file which looks like a secret, but for a rule that
// names it too. It looks at nothing but what it is given.
func (p *Policy) Decide(call tool.Call, entry *tool.Entry) Decision {
	d := Decision{policy: p, call: call, entry: entry, risk: RiskOf(entry.Capabilities), source: SourceDefault}
	if p.bounded(&d) {
		return d
	}
	args := d.args()
	p.ruled(&d, args)
	if len(p.ceiling.Confirm) > 0 && d.effect != Deny && !d.floor {
		d.by(Ask, p.ceiling.Confirm[0].From, "require_confirmation", "every call asks first")
		d.floor = true
	}
	d.regret(args)
	p.readsSecrets(&d)
	return d
}

// regret asks about a command that is easily regretted, also where a rule
// allows it.
func (d *Decision) regret(args *arguments) {
	if d.effect == Deny || d.entry.Capabilities.Exec == "" {
		return
	}
	var found []string
	for i, values := 0, args.values(d.entry.Capabilities.Exec).values; i < len(values); i++ {
		found = append(found, values[i].dangers()...)
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

// bounded decides what the ceiling forbids whatever the rules say.
func (p *Policy) bounded(d *Decision) bool {
	mod, c := d.entry.Module, &p.ceiling
	facts := moduleFacts{mod.Origin == tool.OriginBuiltin, mod.Digest, mod.Signer, mod.Namespace}
	if ok, why, from := c.mayRun(facts); !ok {
		d.by(Deny, from, "modules", why)
		return true
	}
	if d.entry.Capabilities.Exec != "" && c.MinTier != nil && int64(p.tier) < c.MinTier.Value {
		d.by(Deny, c.MinTier.From, "bash.min_tier", fmt.Sprintf("a process would run in %s here, and %d is the least", p.tier, c.MinTier.Value))
		return true
	}
	return false
}

// ruled decides by the rules and, where none speaks, by the risk.
func (p *Policy) ruled(d *Decision, args *arguments) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	best, bestEffect, bestTruth := -1, Allow, yes
	p.index.find(d.entry.Name, args, func(i int) {
		r := &p.rules[i]
		if best >= 0 && (r.Effect > bestEffect || i == best) {
			return // it could not win
		}
		t := r.matches(p, &d.call, args, d.entry, d.risk)
		if t == no || t == unsure && r.Effect == Allow {
			if p.outgrown(r, d, args) {
				d.stale = append(d.stale, *r)
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
		if t == unsure {
			effect = Ask
		}
		d.exact = d.exact || effect == Allow && r.exact(d.entry.Capabilities.Exec)
		if best < 0 || effect < bestEffect || effect == bestEffect && rank(r.Source) < rank(p.rules[best].Source) {
			best, bestEffect, bestTruth = i, effect, t
		}
	})
	if best < 0 {
		p.byRisk(d)
		return
	}
	r := &p.rules[best]
	d.effect, d.rule, d.source, d.origin, d.floor = bestEffect, r.String(), r.Source, r.Origin, bestEffect != Allow
	var b strings.Builder
	b.WriteString("the ")
	b.WriteString(string(r.Source))
	b.WriteString(" rule ")
	b.WriteString(strconv.Quote(d.rule))
	b.WriteString(" says ")
	b.WriteString(r.Effect.String())
	if bestTruth == unsure {
		b.WriteString(", and that it does not speak of this call cannot be told from its words")
	}
	if r.Why != "" {
		b.WriteString(": ")
		b.WriteString(r.Why)
	}
	d.reason = b.String()
}

// outgrown reports whether a remembered answer would have spoken of the call if
// the tool had not come to ask for another secret.
func (p *Policy) outgrown(r *Rule, d *Decision, args *arguments) bool {
	if r.Effect != Allow || r.Bound.Module == "" || r.allowsSecrets(d.entry.Capabilities.Secrets) || p.holds(&r.Bound, d.entry) {
		return false
	}
	before := *r
	before.Secrets = d.secretNames()
	return before.matches(p, &d.call, args, d.entry, d.risk) == yes
}

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
		now, _ = p.bindings.LoadOrStore(e, Bind(e))
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
	d := Decision{policy: p, call: tool.Call{Caller: by}, entry: entry, risk: RiskOf(entry.Capabilities)}
	if p.bounded(&d) {
		return true
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, of := range []string{entry.Name, AnyTool} {
		for _, i := range p.index.plain[of] {
			r := &p.rules[i]
			if r.Effect == Deny && len(r.Where) == 0 && r.After == 0 && r.Turn == 0 && (r.Bound.Module == "" || p.holds(&r.Bound, entry)) &&
				r.matches(p, &d.call, d.args(), entry, d.risk) == yes {
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

// Question is what a person is asked.
type Question struct {
	Call    tool.Call
	Tool    string
	Risk    Risk
	Reason  string
	Command string // the exact command that would run; empty when none does
	Dir     string // where it would run
	Says    string // what the caller says that the command does; its word, not a fact
	// Paths are the files that the arguments name, see [PathArgs]: absolute and
	// clean, as far as words can tell. Whoever shows them looks where they lead.
	Paths []string
	// Network is the rules about whom the call could reach, as in
	// [Network.Rules]; nil unless the tool asks for the network.
	Network []string
	// Secrets are those whose placeholders the tool would get; never a value.
	Secrets []tool.Secret
	Changes string // what it would change, as a diff; empty when the call was not tried yet
	Warning string // what the person should know before answering
	Scopes  []Scope
	Rules   map[Scope]string // what an answer of each scope but "once" would allow, in words
	Changed []Change         // since a question about this tool was answered for good
	Allow   string           // the flag that would have allowed it; empty if none would

	Module  string    // the digest of the tool's module
	Session string    // these three by [Question.Put]
	Asked   time.Time // when
	ID      [32]byte  // of the question: what an answer has to name
}

// Unconfined is the warning that goes with every command until the jail
// exists.
const Unconfined = "bash is not confined yet: this command runs with all your rights, on all your files, with the network"

// Exfiltrates is the warning that goes with every tool that reaches the
// network.
const Exfiltrates = "it can send whatever it is given, and whatever it reads, to the hosts that are allowed"

// Warn adds something that the person should know.
func (q *Question) Warn(what string) {
	if q.Warning != "" && what != "" {
		q.Warning += "; "
	}
	q.Warning += what
}

// Question puts an Ask into words.
func (d Decision) Question() Question {
	q := Question{
		Call: d.call, Tool: d.entry.Name, Risk: d.risk, Reason: d.reason, Dir: d.call.Cwd, Allow: d.AllowFlag(),
		Scopes: []Scope{ScopeOnce}, Secrets: cloneSecrets(d.entry.Capabilities.Secrets), Changed: d.changes(), Module: d.entry.Module.Digest,
	}
	if arg := d.entry.Capabilities.Exec; arg != "" {
		q.Command, _ = d.args().str(arg)
		q.Says, _ = d.args().str("description")
		if d.policy != nil && d.policy.tier == TierNone {
			q.Warning = Unconfined
		}
	}
	if q.Warning == "" && d.entry.Capabilities.Network != tool.NetworkNone {
		q.Warning = Exfiltrates
	}
	q.Warn(d.warning())
	q.Paths, q.Network = d.paths(), d.reaches()
	for _, scope := range []Scope{ScopeTurn, ScopeSession, ScopeProject, ScopeAlways} {
		r, err := d.RuleFor(scope)
		if err != nil {
			continue
		}
		if q.Rules == nil {
			q.Rules = map[Scope]string{}
		}
		q.Scopes = append(q.Scopes, scope)
		q.Rules[scope] = r.InWords()
	}
	return q
}

// paths are the files that the arguments name, see [PathArgs].
func (d Decision) paths() (names []string) {
	for _, f := range PathArgs(d.call, d.entry) {
		// What is no path the tool will say.
		if name, _ := cleanPath(f.Path, d.call.Cwd); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// reaches is the network that a grant would give, in words.
func (d Decision) reaches() []string {
	if d.policy == nil || d.entry.Capabilities.Network == tool.NetworkNone {
		return nil
	}
	if rules := d.policy.network.Rules(); len(rules) > 0 {
		return rules
	}
	return []string{"nobody: no rule allows a host"}
}

func (d Decision) changes() []Change {
	var out []Change
	for _, r := range d.stale {
		out = append(out, Change{r.String(), r.Bound, Bind(d.entry)})
	}
	return out
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
	text, _ := d.args().str(d.entry.Capabilities.Exec)
	if line := parseCommand(text); !line.literal {
		return errors.New("an answer for this command holds once: it is more than one program and its literal arguments")
	} else if RunsOthers(line.commands[0]) {
		return fmt.Errorf("an answer for this command holds once: %s runs what its arguments say", line.commands[0][0])
	} else if d.danger != "" {
		return fmt.Errorf("an answer for this command holds once: %s", d.danger)
	} else if written(line.commands[0][0]) {
		return fmt.Errorf("an answer for this command holds once: what %s holds can change", line.commands[0][0])
	}
	return nil
}

// Answer is what a person said to a [Question].
type Answer struct {
	Question [32]byte // the ID of the question that it is to
	Allow    bool
	Scope    Scope
	By       string // "terminal", "no terminal", ...: goes into the record
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
	r := Rule{Effect: Allow, Tool: d.entry.Name, Secrets: d.secretNames(), Bound: Bind(d.entry), Source: SourceUser}
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
		text, _ := d.args().str(arg)
		c, err := literalCommand(arg, parseCommand(text).commands[0])
		if err != nil {
			return Rule{}, err
		}
		r.Where = []Condition{c}
	}
	return r, nil
}

// Add makes a rule hold from now on.
func (p *Policy) Add(r Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.index.add(len(p.rules), &r)
	p.rules = append(p.rules, r)
}

func (d Decision) newGrant() (Grant, error) {
	p, caps := d.policy, d.entry.Capabilities
	g := &grant{
		callID: d.call.ID, tool: d.entry.Name, digest: d.entry.Module.Digest,
		args: d.call.ArgsDigest(), cwd: d.call.Cwd, limits: p.limits, secrets: cloneSecrets(caps.Secrets),
	}
	if caps.Files != tool.FilesNone {
		g.masked = p.masked
		for _, s := range d.reads {
			g.paths.readable = append(g.paths.readable, s.path)
		}
		for _, m := range p.mounts {
			m.Write = m.Write && caps.Files == tool.FilesWrite
			g.mounts = append(g.mounts, m)
		}
	}
	if caps.Network == tool.NetworkHTTP {
		g.network = p.network
		if g.network == nil {
			g.network = NewNetwork(nil) // whose denials say what would open it
		}
	}
	if caps.Exec != "" {
		args := d.args()
		command, ok := args.str(caps.Exec)
		if !ok || command == "" {
			return Grant{}, fmt.Errorf("grant %s: the argument %q holds no command", d.entry.Name, caps.Exec)
		}
		g.execDigest = execDigest(bashArgv(command), d.call.Cwd)
		g.mayExec = true
		timeout := p.limits.ExecTimeout
		if raw, ok := args.get(caps.ExecTimeout); ok && string(raw) != "null" {
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
