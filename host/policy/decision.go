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

// Facts holds what is known of a call besides the call itself.
type Facts struct {
	EarlierCalls int         // earlier calls of the tool in the session, without those denied before they ran
	Files        []NamedFile // files that the arguments name; of a command's words, only secret-looking ones
}

// NamedFile is a file or directory that an argument names, whether or not it exists.
type NamedFile struct {
	Arg  string // name of the argument, or a JSON pointer; [tool.PatchPath] for a path in a patch
	Name string // path in the argument, made absolute and clean
	// Path is the path on the host, with symbolic links resolved. Empty: no mount shows it, or
	// a link is absolute or leads out of the mount.
	Path         string
	Regular      bool // set if it exists and is a regular file
	InRepository bool // set if the tool may change files, and this may be a closed path of a git directory
}

// Decision is the result for one call. Only methods of [Policy] and Decision make one. Its
// zero value denies.
type Decision struct {
	policy *Policy
	call   tool.Call
	entry  *tool.Entry
	access *access
	facts  Facts

	work              *match.Work
	effect            Effect
	risk              Risk
	by                Decider
	reason            string      // reason of the decision, one clause, for a person
	mustAsk           bool        // set if a rule or bound asks or denies: no rule that allows can answer
	flagAllowsCommand bool        // set if a flag of this run allows exactly this command
	flagAllowsCall    bool        // set if a flag of this run allows the call
	askAnywayReason   string      // reason to ask about a process even if a rule allows the call; empty: none
	execNetwork       bool        // set if the process asks for the network
	changes           ChangesMode // mode for the changes of the process; empty: no process, or not decided
	ruleChanges       ChangesMode // mode that the deciding rule sets; empty: it sets none
	askFirstReason    string      // reason to ask before the process runs; empty: there is none
	personalAsking    []string    // identities of the person's own rules and bounds that ask
	othersAsk         bool        // set if another layer's rule or bound asks, or a rule that denies may apply
	overridden        []string    // identities of rules and bounds that ask, but were answered in this session
	changedDir        string      // directory of all changes of the process; empty: unknown, or no rule can name it
	stale             []Rule      // rules that would allow the call if its tool had not changed
	uncountedRules    []Rule      // rules that allow the call but do not count, see [Rule.whyNeverCounts]
	also              []Decider   // other rules and bounds with the same effect; nil for Allow

	freeDir     string // directory that the answer [ScopeFree] opens; empty: that answer is not offered
	freeRemoves int    // files that the changes remove, if freeDir is set

	ignored map[string]string // topmost path that git ignores, by the path of a change that is in it

	opensHost string // host that no rule opens and that a yes opens; empty: none

	diff *diff.Set // changes as shown to a person; nil: not known yet

	reads, changed []specialPath // secret-looking files to be read; changed paths that need a yes
	histories      []History     // the histories that the decision is about; nil: it is about the call
	hint           tool.Hint     // way to another decision; nil: Explain finds one
}

// Effect returns the effect: [Allow], [Ask] or [Deny].
func (d Decision) Effect() Effect { return d.effect }

// Risk returns the risk of the tool.
func (d Decision) Risk() Risk { return d.risk }

// Rule returns the text of the rule, or the name of the bound, that decided. If none did, it
// returns the name of the default, such as "risk medium".
func (d Decision) Rule() string { return d.by.Rule }

// Source returns the layer that the deciding rule comes from.
func (d Decision) Source() Source { return d.by.Source }

// Reason returns the reason of the decision, in one clause.
func (d Decision) Reason() string { return d.reason }

// Origin returns the place where the deciding rule is written, such as FILE:LINE. Empty:
// Source names the place.
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

// secretNames returns the secrets that the tool asks for, in the form of [Rule.Secrets].
func (d Decision) secretNames() string {
	return strings.Join(tool.SecretNames(d.entry.Capabilities.Secrets), ",")
}

// onlyPersonalRulesAsk reports whether nothing but the person's own rules and bounds asks.
// Then an answer can hold for the turn or the session.
func (d Decision) onlyPersonalRulesAsk() bool {
	return d.effect == Ask && d.by.Source.isPersonal() && len(d.personalAsking) > 0 && !d.othersAsk
}

// rememberable returns an error, with the reason, if an answer can hold for this call only. An
// answer can be remembered if the default asks, or if only the person's own rules do, and the
// call needs no special path. A process must also be confined, not ask anyway (see askAnyway),
// and run a single program with literal words, which words holds. It is nil for a call without
// a process.
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

// Grant returns the grant of a decision that allows. It fails for any other decision, and if
// the arguments hold no valid command or time limit.
func (d Decision) Grant() (Grant, error) {
	if d.policy == nil || d.effect != Allow {
		return Grant{}, fmt.Errorf("grant %s: the decision is %q", d.call.Tool, d.effect)
	}
	return d.newGrant()
}

// Approve returns the grant of a decision that asks, after a yes; it fails without one, and
// for a decision about histories. The caller must have checked that the answer is to this
// question, see [Question.CheckAnswer]. recorded is the sequence number of the answer in the
// session's log; 0 is an error, because nothing is granted without a record.
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

// CanRehearse reports whether the decision asks and the call can run before the answer, so
// that the question can show its changes. Such a call reaches only files, its changes are
// staged or it can make none, and it uses no secret.
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

// Rehearse returns the grant for a run before the answer, see [Grant.Rehearsal]. It fails if
// [Decision.CanRehearse] is false, or the arguments hold no valid command or time limit.
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

// UnchangedRule is recorded as the rule for a call that changed nothing and therefore did not
// ask, see [Decision.AsksOnlyForChanges].
const UnchangedRule = "no changes"

// AsksOnlyForChanges reports whether the call asks only because of its changes, so that it is
// allowed if it changes nothing. It is false if the call reads what looks like a secret, and
// for a third-party tool that reads files: the model gets the result or the failure of such a
// call only after an answer.
func (d Decision) AsksOnlyForChanges() bool { return d.asksForChanges() && !d.isThirdPartyReader() }

// asksForChanges reports whether a rule about changes can answer the question.
func (d Decision) asksForChanges() bool {
	return d.CanRehearse() && d.by.Source == SourceDefault && len(d.specialPaths()) == 0 && !d.policy.confirmAll && len(d.policy.ceiling.Confirm) == 0
}

// RuleFor returns the rule that an answer of this scope creates. It fails for [ScopeOnce],
// which creates none, and for a scope that the question does not offer.
func (d Decision) RuleFor(scope Scope) (Rule, error) {
	if d.histories != nil {
		return Rule{}, errors.New("the answer is not about the call")
	}
	if !d.diff.ShowsAll() {
		return Rule{}, errors.New("some of the changes are not shown, so an answer holds once")
	}
	if scope == ScopeBelow || scope == ScopeKeepBelow {
		if d.changedDir == "" {
			return Rule{}, errors.New("the changes of this call are not known to be in one directory")
		}
		source := SourceUser
		if scope == ScopeBelow {
			source = SourceSession
		}
		return Rule{Effect: Allow, Tool: d.entry.Name, Below: d.changedDir, Binding: bind(d.entry), Source: source}, nil
	}
	if scope == ScopeSession && d.changedDir != "" {
		if first := d.firstWords(d.args()); first != nil {
			return Rule{Effect: Allow, Tool: d.entry.Name, FirstWords: first, Below: d.changedDir, Binding: bind(d.entry), Source: SourceSession}, nil
		}
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
		caps = caps.Restrict(a) // again, in case the catalog did not
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
			if seconds < timeout.Seconds() { // seconds may be too large for a time.Duration
				timeout = time.Duration(seconds) * time.Second
			}
		}
		g.limits.ExecTimeout = min(timeout, p.limits.ExecTimeoutMax)
		g.limits.Timeout = g.limits.ExecTimeout + execMargin
	}
	return Grant{g: g}, nil
}
