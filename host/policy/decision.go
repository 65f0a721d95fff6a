package policy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/diff"
	"github.com/stockade-dev/stockade/host/policy/command"
	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/tool"
)

// Facts is what is known of a call beside what its caller says.
type Facts struct {
	EarlierCalls int         // calls of the tool that came before it in the session
	Files        []NamedFile // that arguments name, see [PathArgs], with what was found out
}

// NamedFile is a file or directory that an argument names, there or not.
type NamedFile struct {
	Arg  string // its name, or a JSON pointer
	Name string // absolute and clean, as words tell
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
	access *access // of the tool
	facts  Facts

	work              *match.Work
	effect            Effect
	risk              Risk
	by                Decider
	reason            string
	mustAsk           bool        // it asks whatever anybody has answered
	flagAllowsCommand bool        // a flag of this run allows the very command
	flagAllowsCall    bool        // a flag of this run allows the call
	askAnywayReason   string      // why a process asks whatever rules say; empty: it does not
	execNetwork       bool        // the process asks for the network
	changes           ChangesMode // what becomes of what the process changes
	ruleChanges       ChangesMode // what the rule that decides says of that
	askFirstReason    string      // why it waits for the answer; empty: it does not
	personalAsking    []string    // the rules of the person's own that ask, by identity
	othersAsk         bool        // something else asks, too
	overridden        []string    // the rules that ask which answers of this session win over
	changedDir        string      // the directory of all that the process has changed; empty: none that an answer could name
	stale             []Rule      // that would have answered, had nothing changed
	uncountedRules    []Rule      // that would have answered, if such rules counted
	also              []Decider   // that decide the same

	opensHost string // the host of the call that no rule opens, and that a yes does; empty: none

	diff *diff.Set // the changes as a person is shown them; nil: not known yet

	reads, changed []specialPath // that need care, and an answer to this call alone
	histories      []History     // the histories that it is about; nil: it is about the call
	hint           tool.Hint     // what would change the decision; nil: to take away what decides
}

// Effect is allow, ask or deny.
func (d Decision) Effect() Effect { return d.effect }

// Risk is the tool's.
func (d Decision) Risk() Risk { return d.risk }

// Rule is the text of the rule that decided, or "risk medium" and the like
// where the default did.
func (d Decision) Rule() string { return d.by.Rule }

// Source says where that rule comes from.
func (d Decision) Source() Source { return d.by.Source }

// Reason explains the decision in one clause.
func (d Decision) Reason() string { return d.reason }

// Origin is where that rule is written, such as FILE:LINE; empty where its
// source says it.
func (d Decision) Origin() string { return d.by.Origin }

func (d Decision) args() *match.Arguments {
	args := match.NewArguments(d.call.Args, d.call.Cwd, d.work)
	if c := d.entry.Content; c != nil && c.Patch != "" {
		args.Derive(tool.PatchPath, func() ([]string, bool) {
			there, made, err := c.Files(d.call.Args)
			return slices.Concat(there, made), err == nil
		})
	}
	return args
}

// secretNames are the secrets that the tool asks for, as a rule names them.
func (d Decision) secretNames() string {
	return strings.Join(tool.SecretNames(d.entry.Capabilities.Secrets), ",")
}

// onlyPersonalRulesAsk reports whether nothing asks but rules that the person has written, who
// can say for how long an answer holds.
func (d Decision) onlyPersonalRulesAsk() bool {
	return d.effect == Ask && d.by.Source.isPersonal() && len(d.personalAsking) > 0 && !d.othersAsk
}

// rememberable: what asks, and was not decided by a rule of somebody else's. A rule that
// asks wins over one that allows, so it asks every time, but for an answer of this
// session to the person's own. Of a process, it is the one program that it names,
// confined: words are those of its command.
func (d Decision) rememberable() (words []string, err error) {
	switch {
	case d.policy == nil:
		return nil, errors.New("nothing was decided")
	case d.effect != Ask || d.by.Source != SourceDefault && !d.onlyPersonalRulesAsk():
		return nil, errors.New("an answer here holds once: a rule or a setting asks every time")
	case len(d.specialPaths()) > 0:
		return nil, errors.New("an answer about such a path holds once, for this call")
	case d.entry.Capabilities.Exec == "":
		return nil, nil
	case d.policy.tier() < TierConfined:
		return nil, fmt.Errorf("an answer for a command holds once in %s", d.policy.tier())
	case d.askAnywayReason != "":
		return nil, fmt.Errorf("an answer for this command holds once: %s", d.askAnywayReason)
	}
	text, _ := d.args().Text(d.entry.Capabilities.Exec)
	line := command.Parse(text)
	if err := checkRememberable(line); err != nil {
		return nil, fmt.Errorf("an answer for this command holds once: %w", err)
	}
	return line.Commands[0], nil
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
	case d.histories != nil:
		return Grant{}, fmt.Errorf("approve %s: the answer was not about the call", d.call.Tool)
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
	if d.policy == nil || d.effect != Ask || c.Network != tool.NetworkNone || len(c.Secrets) > 0 {
		return false
	}
	if c.Exec != "" {
		return d.askFirstReason == ""
	}
	return c.Files == tool.FilesWrite
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

// UnchangedRule is the recorded rule of a call that changed nothing, if
// [Decision.AsksOnlyForChanges] holds for it.
const UnchangedRule = "no changes"

// AsksOnlyForChanges reports whether the changes are all that asks: the same call
// would be allowed if it changed nothing. What a call has read that looks like
// a secret is told only after an answer, as is that it has failed, and what the
// tool of others has read.
func (d Decision) AsksOnlyForChanges() bool { return d.asksForChanges() && !d.isThirdPartyReader() }

// asksForChanges reports whether a rule about the changes can answer.
func (d Decision) asksForChanges() bool {
	return d.CanRehearse() && d.by.Source == SourceDefault && len(d.specialPaths()) == 0 && !d.policy.confirmAll && len(d.policy.ceiling.Confirm) == 0
}

// RuleFor returns the rule that an answer of that scope makes. It fails for a
// scope that the question did not offer.
func (d Decision) RuleFor(scope Scope) (Rule, error) {
	if d.histories != nil {
		return Rule{}, errors.New("the answer is not about the call")
	}
	if !d.diff.ShowsAll() {
		return Rule{}, errors.New("an answer about changes of which some are not shown holds once")
	}
	if scope == ScopeBelow || scope == ScopeKeepBelow {
		if d.changedDir == "" {
			return Rule{}, errors.New("it is not known that all that this call changes is in one directory")
		}
		source := SourceUser
		if scope == ScopeBelow {
			source = SourceSession
		}
		return Rule{Effect: Allow, Tool: d.entry.Name, Below: d.changedDir, Binding: bind(d.entry), Source: source}, nil
	}
	words, err := d.rememberable()
	if err != nil {
		return Rule{}, err
	}
	r := Rule{Effect: Allow, Tool: d.entry.Name, Secrets: d.secretNames(), Binding: bind(d.entry), Source: SourceUser}
	if d.onlyPersonalRulesAsk() {
		if r.Overrides, r.Changes = d.personalAsking, d.ruleChanges; scope != ScopeTurn && scope != ScopeSession {
			return Rule{}, errors.New("an answer where a rule of yours asks is not kept: take the rule away")
		}
	}
	if r.OpensHost = d.opensHost; r.OpensHost != "" && scope != ScopeTurn && scope != ScopeSession {
		return Rule{}, errors.New("an answer about a host that no rule opens is not kept: add a rule to network.allow")
	}
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
		text, err := command.Quote(words)
		if err != nil {
			return Rule{}, err
		}
		c, err := match.NewCondition(match.Words, arg, text, false)
		if err != nil {
			return Rule{}, err
		}
		r.Where = []match.Condition{c}
	}
	return r, nil
}

func (d Decision) newGrant() (Grant, error) {
	p, caps := d.policy, d.entry.Capabilities
	if a, own := allowance(d.entry); own {
		caps = caps.Restrict(a) // again: nothing rests on who built the catalog
	}
	g := &grant{
		callID: d.call.ID, tool: d.entry.Name, digest: d.entry.Module.Digest,
		args: d.call.ArgsDigest(), cwd: d.call.Cwd, limits: p.limits, limitCaps: p.ceiling.Limits, limitOrigins: p.limitOrigins, secrets: cloneSecrets(caps.Secrets), hasStore: caps.Store,
		modes: d.entry.Content.Modes(d.call.Args),
	}
	var opened paths.Opened
	for _, s := range d.reads {
		opened = append(opened, s.path)
	}
	if caps.Files != tool.FilesNone {
		g.masked = p.masked
		g.opened = opened
		for _, m := range d.access.mounts {
			m.Write = m.Write && caps.Files == tool.FilesWrite
			g.mounts = append(g.mounts, m)
		}
	}
	if caps.Network == tool.NetworkHTTP {
		if g.network = d.network(); g.network == nil {
			return Grant{}, fmt.Errorf("grant %s: the host %q cannot be opened", d.entry.Name, d.opensHost)
		}
	}
	if caps.Exec != "" {
		args := d.args()
		command, ok := args.Text(caps.Exec)
		if !ok || command == "" {
			return Grant{}, fmt.Errorf("grant %s: the argument %q holds no command", d.entry.Name, caps.Exec)
		}
		g.execDigest = execDigest([]string{"bash", "-c", command}, d.call.Cwd)
		g.mayExec = true
		g.exec = Exec{Tier: p.tier(), Mounts: d.access.mounts, Masked: p.masked, Opened: opened, Changes: d.changes, secrets: len(caps.Secrets) > 0}
		for _, h := range p.ceiling.Hidden {
			g.exec.Hidden = append(g.exec.Hidden, h.Value)
		}
		g.exec.History = func(repository string) Effect { return p.history(d.entry, repository) }
		if d.execNetwork {
			g.exec.Network = d.access.network
		}
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
