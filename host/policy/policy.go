package policy

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/tool"
)

// Options says what the user has opened and answered. Its zero value opens
// nothing.
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
}

// Policy decides calls. It is safe for concurrent use.
type Policy struct {
	mounts     []Mount
	masked     []string
	limits     Limits
	network    *Network
	confirmAll bool

	mu    sync.RWMutex
	rules []Rule
	index index // of rules
}

// index finds the rules that could speak of a call, so that thousands of
// remembered answers cost nothing. What they say is decided by [Rule.matches].
type index struct {
	byText map[ruleKey][]int
	args   map[string][]string // of each tool, those that rules narrow
}

type ruleKey struct{ tool, arg, value string }

func (x *index) add(i int, r Rule) {
	k := ruleKey{r.Tool, r.Arg, r.Value}
	if k.arg == "" {
		k.value = ""
	} else if !slices.Contains(x.args[r.Tool], r.Arg) {
		x.args[r.Tool] = append(x.args[r.Tool], r.Arg)
	}
	x.byText[k] = append(x.byText[k], i)
}

// find yields the positions of the rules for a tool and these arguments.
func (x *index) find(name string, args *arguments) iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, i := range x.byText[ruleKey{tool: name}] {
			if !yield(i) {
				return
			}
		}
		for _, arg := range x.args[name] {
			value, ok := args.text(arg)
			if !ok {
				continue
			}
			for _, i := range x.byText[ruleKey{name, arg, value}] {
				if !yield(i) {
					return
				}
			}
		}
	}
}

// New returns a policy with these options, which it copies.
func New(opts Options) *Policy {
	p := &Policy{
		mounts:     slices.Clone(opts.Mounts),
		masked:     slices.Clone(opts.Masked),
		limits:     opts.Limits.withDefaults(),
		network:    opts.Network,
		confirmAll: opts.ConfirmAll,
		index:      index{byText: map[ruleKey][]int{}, args: map[string][]string{}},
	}
	for _, r := range opts.Rules {
		p.Add(r)
	}
	return p
}

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
	reason string
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

func (d Decision) args() *arguments { return &arguments{raw: d.call.Args} }

// AllowRule is the smallest rule that would allow the call.
func (d Decision) AllowRule() Rule {
	r := Rule{Effect: Allow, Tool: d.entry.Name, Secrets: d.secretNames()}
	if arg := d.entry.Capabilities.Exec; arg != "" {
		r.Arg = arg
		r.Value, _ = d.args().str(arg)
	}
	return r
}

// secretNames are the secrets that the tool asks for, as a rule names them.
func (d Decision) secretNames() string {
	return strings.Join(tool.SecretNames(d.entry.Capabilities.Secrets), ",")
}

// AllowFlag is what a person adds to the command line to allow the call.
func (d Decision) AllowFlag() string { return "--allow " + shellQuote(d.AllowRule().String()) }

// shellQuote makes one word for a POSIX shell.
func shellQuote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Decide says what happens to a call whose arguments fit the schema. A rule
// that denies wins over every rule that allows; where no rule speaks, the risk
// decides.
func (p *Policy) Decide(call tool.Call, entry *tool.Entry) Decision {
	d := Decision{policy: p, call: call, entry: entry, risk: RiskOf(entry.Capabilities), source: SourceDefault}
	d.rule = "risk " + d.risk.String()

	p.mu.RLock()
	defer p.mu.RUnlock()
	best := -1
	args := d.args()
	for i := range p.index.find(entry.Name, args) {
		if r := &p.rules[i]; !r.matches(args, entry) {
			continue
		} else if best < 0 || r.Effect < p.rules[best].Effect { // deny < ask < allow
			best = i
		}
	}
	if best >= 0 {
		r := p.rules[best]
		d.effect, d.rule, d.source = r.Effect, r.String(), r.Source
		d.reason = fmt.Sprintf("the %s rule %q says %s", r.Source, r, r.Effect)
		return d
	}
	switch {
	case d.risk == RiskSafe && !p.confirmAll:
		d.effect, d.reason = Allow, "it only reads what is mounted"
		if entry.Capabilities.Files == tool.FilesNone {
			d.reason = "it reaches nothing outside itself"
		}
	case d.risk == RiskSafe:
		d.effect, d.reason = Ask, "require_confirmation is set"
	case d.risk == RiskMedium:
		d.effect, d.reason = Ask, "it changes files"
		if names := d.secretNames(); names != "" && entry.Capabilities.Files != tool.FilesWrite {
			d.reason = "it uses secrets: " + names
		} else if names != "" {
			d.reason = "it changes files and uses secrets: " + names
		}
	case entry.Capabilities.Exec == "":
		d.effect, d.reason = Ask, "it reaches the network"
		if names := d.secretNames(); names != "" {
			d.reason += " and uses secrets: " + names
		}
	default:
		d.effect, d.reason = Ask, "it starts a process"
	}
	return d
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
	// Secrets are those whose placeholders the tool would get; never a value.
	Secrets []tool.Secret
	Changes string // what it would change, as a diff; empty when the call was not tried yet
	Warning string // what the person should know before answering
	Scopes  []Scope
	Rule    string // what answering "session" or "always" would allow, in words
	Allow   string // the flag that would have allowed it
}

// Unconfined is the warning that goes with every command until the jail
// exists.
const Unconfined = "bash is not confined yet: this command runs with all your rights, on all your files, with the network"

// Exfiltrates is the warning that goes with every tool that reaches the
// network.
const Exfiltrates = "it can send whatever it is given, and whatever it reads, to the hosts that are allowed"

// Question puts an Ask into words.
func (d Decision) Question() Question {
	q := Question{
		Call: d.call, Tool: d.entry.Name, Risk: d.risk, Reason: d.reason, Dir: d.call.Cwd, Allow: d.AllowFlag(),
		Scopes: []Scope{ScopeOnce}, Secrets: cloneSecrets(d.entry.Capabilities.Secrets),
	}
	if arg := d.entry.Capabilities.Exec; arg != "" {
		q.Command, _ = d.args().str(arg)
		q.Says, _ = d.args().str("description")
		q.Warning = Unconfined
		return q // a process that nothing confines is asked for every time
	}
	if d.entry.Capabilities.Network != tool.NetworkNone {
		q.Warning = Exfiltrates
	}
	if d.rememberable() {
		q.Scopes = append(q.Scopes, ScopeSession, ScopeAlways)
		q.Rule = fmt.Sprintf("every call of %s of %s, in any workspace; always is kept in allow.toml", d.entry.Name, moduleWords(d.entry.Module))
		if names := d.secretNames(); names != "" {
			q.Rule += ", with the secrets " + names + " and no others"
		}
	}
	return q
}

func moduleWords(m *tool.Module) string {
	if m.Origin == tool.OriginBuiltin {
		return "the built-in module " + m.Name
	}
	return "the module " + ModuleID(m)
}

// rememberable: what asks, is no process, and was not decided by a rule. A rule
// that asks wins over one that allows, so it asks every time.
func (d Decision) rememberable() bool {
	return d.policy != nil && d.effect == Ask && d.source == SourceDefault && d.entry.Capabilities.Exec == ""
}

// Answer is what a person said to a [Question].
type Answer struct {
	Allow bool
	Scope Scope
	By    string // "terminal", "no terminal", ...: goes into the record
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
// would be allowed if it changed nothing.
func (d Decision) OnlyChanges() bool {
	return d.CanRehearse() && d.source == SourceDefault && !d.policy.confirmAll
}

// RuleFor returns the rule that an answer of that scope makes. It fails for a
// scope that the question did not offer.
func (d Decision) RuleFor(scope Scope) (Rule, error) {
	source := map[Scope]Source{ScopeSession: SourceSession, ScopeAlways: SourceUser}[scope]
	switch {
	case d.policy == nil:
		return Rule{}, errors.New("nothing was decided")
	case d.entry.Capabilities.Exec != "":
		return Rule{}, errors.New("an answer for a command holds once: nothing confines the command yet")
	case source == "" || !d.rememberable():
		return Rule{}, fmt.Errorf("an answer of scope %q makes no rule here", scope)
	}
	return Rule{Effect: Allow, Tool: d.entry.Name, Secrets: d.secretNames(), Module: ModuleID(d.entry.Module), Source: source}, nil
}

// Add makes a rule hold from now on.
func (p *Policy) Add(r Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.index.add(len(p.rules), r)
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
