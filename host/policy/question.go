package policy

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/diff"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/tool"
)

// OutputLines is how many lines of output a question has at most.
const OutputLines = 8

// Question is what a person is asked.
type Question struct {
	Call              tool.Call
	Tool              string
	Risk              Risk
	Reason            string
	AskingSource      Source // the layer whose rule asks, one that asks each time before the person's own
	ModuleText        string // which module the tool is of, in words
	Command           string // the exact command that would run; empty when none does
	Dir               string // where it would run
	Output            string // the end of what it has written; empty: nothing, or it has not run
	AskFirstReason    string // why the command is asked about before it runs; empty: it has run, or none does
	CallerDescription string // what the caller says that the command does; its word, not a fact
	// Paths are the files that the arguments name, see [PathArgs], and those that look
	// like secrets and that a command could read: absolute and clean, as far as words
	// can tell. Whoever shows them looks where they lead.
	Paths []string
	// Network is the rules about whom the call could reach, as in
	// [network.Network.Rules]; nil unless the tool, or its command, asks for that.
	Network   []string
	OpensHost string // the one of them that no rule opens, and a yes does; empty: none
	// Secrets are those whose placeholders the tool would get; never a value.
	Secrets []tool.Secret
	// Histories are those that commands could read, if the question is about them: then
	// its answer holds for all commands, and not for the call. Nil: the question is
	// about the call.
	Histories      []History
	Changes        *diff.Set // what it would change; nil when the call was not tried yet
	Failed         bool      // it was tried, and has failed: nothing changes
	Tier           Tier      // how far the command would be confined; zero too when none runs
	Warning        string    // what the person should know before answering
	Scopes         []Scope
	Rules          map[Scope]string // what an answer of each scope but "once" would allow, in words
	BindingChanges []BindingChange  // since a question about this tool was answered for good
	AllowRule      string           // the rule that would have allowed it; empty if none would

	Module  string    // the digest of the tool's module
	Session string    // these three by [Question.Pose]
	AskedAt time.Time // when
	ID      [32]byte  // of the question: what an answer has to name
}

// UnconfinedWarning is the warning that goes with every command in [TierNone].
const UnconfinedWarning = "it is not confined here: it has all your rights, on all your files"

// partlyConfinedWarning is the warning in the tiers between that and [TierConfined].
const partlyConfinedWarning = "it is confined in part here: it can change the times and modes of your other files and see what they are called, " +
	"and read what looks like a secret, or is closed to tools, in the directories that tools are shown, and in the history of git there"

// unconfinedWarning says what a tier below [TierConfined] does not hold; else it is empty.
func (t Tier) unconfinedWarning() string {
	switch {
	case t == TierNone:
		return UnconfinedWarning
	case t < TierConfined:
		return partlyConfinedWarning
	}
	return ""
}

// exfiltrationWarning is the warning that goes with every tool that reaches the
// network.
const exfiltrationWarning = "it can send all that it is given or reads to the hosts that are allowed"

// networkWarning is the warning of a call that reaches the network. Of the tool of others that
// reads files, too, it names what is read and where it could go.
func (d Decision) networkWarning() string {
	if d.opensHost != "" {
		others := ""
		if len(d.access.network.OpenRules()) > 0 {
			others = "the hosts that are allowed, and to "
		}
		return fmt.Sprintf("it can send all that it is given to %s%s, which no rule opens; a yes opens it for this call, and no other host", others, d.opensHost)
	}
	if d.policy == nil || !d.isThirdPartyReader() || len(d.access.mounts) == 0 {
		return exfiltrationWarning
	}
	dirs := each(d.access.mounts, func(m Mount) string { return strconv.Quote(m.Host) })
	return fmt.Sprintf("it can send what it reads in %s to %s", listSome(dirs), listSome(d.access.network.OpenRules()))
}

// listSome are the first few of many, in words.
func listSome(words []string) string {
	const most = 5
	switch n := len(words); {
	case n == 0:
		return "nobody yet"
	case n > most:
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), n-most)
	}
	return strings.Join(words, ", ")
}

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
		Call: d.call, Tool: d.entry.Name, Risk: d.risk, Reason: d.reason, AskingSource: d.askingSource(), ModuleText: bind(d.entry).words(), Dir: d.call.Cwd, AllowRule: d.allowRuleText(),
		Scopes: []Scope{ScopeOnce}, Changes: d.diff, Secrets: cloneSecrets(d.entry.Capabilities.Secrets), BindingChanges: d.bindingChanges(), Module: d.entry.Module.Digest,
	}
	if arg := d.entry.Capabilities.Exec; arg != "" {
		q.Command, _ = d.args().Text(arg)
		q.CallerDescription, _ = d.args().Text("description")
		if d.policy != nil {
			q.Tier = d.policy.tier()
			q.Warning = q.Tier.unconfinedWarning()
			q.AskFirstReason = d.askFirstReason
		}
	}
	if q.Warning != UnconfinedWarning && d.reachesNetwork() {
		q.Warn(d.networkWarning())
	}
	q.Warn(d.warning())
	if d.histories != nil {
		return d.historyQuestion(q)
	}
	q.Paths, q.Network, q.OpensHost = d.paths(), d.networkRules(), d.opensHost
	for _, scope := range []Scope{ScopeTurn, ScopeSession, ScopeProject, ScopeAlways, ScopeBelow, ScopeKeepBelow} {
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

// askingSource is the layer whose rule asks.
func (d Decision) askingSource() Source {
	for _, by := range append([]Decider{d.by}, d.also...) {
		if d.othersAsk && !by.Source.isPersonal() {
			return by.Source
		}
	}
	return d.by.Source
}

// paths are the files that the arguments name, see [PathArgs], and those that look
// like secrets and that a command could read.
func (d Decision) paths() (names []string) {
	for _, f := range PathArgs(d.call, d.entry) {
		// What is no path the tool will say.
		if name, _ := paths.Clean(f.Name, d.call.Cwd); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if d.entry.Capabilities.Exec != "" {
		for _, s := range d.reads {
			names = append(names, s.path)
		}
	}
	return names
}

// reachesNetwork reports whether the call may talk to others.
func (d Decision) reachesNetwork() bool {
	return d.execNetwork || d.entry.Capabilities.Network != tool.NetworkNone
}

// networkRules is the network that a grant would give, in words.
func (d Decision) networkRules() []string {
	if d.policy == nil || !d.reachesNetwork() {
		return nil
	}
	if rules := d.network().Rules(); len(rules) > 0 {
		return rules
	}
	return []string{"nobody: no rule allows a host"}
}

// network is whom the call may reach: with the host that a yes opens, if it asks for one.
// It is nil if that cannot be opened.
func (d Decision) network() *network.Network {
	if d.opensHost == "" {
		return d.access.network
	}
	opened, ok := d.access.network.WithHost(d.opensHost)
	if !ok {
		return nil
	}
	return opened
}

func (d Decision) bindingChanges() []BindingChange {
	var out []BindingChange
	for _, r := range d.stale {
		out = append(out, BindingChange{r.String(), r.Binding, bind(d.entry)})
	}
	return out
}

// Answer is what a person said to a [Question].
type Answer struct {
	Question [32]byte // the ID of the question that it is to
	Allow    bool
	Scope    Scope
	By       string // "terminal", "no terminal", ...: goes into the record
}

// AnswerExpires is how long a question can be answered. It outlasts a lunch and
// not a night, after which nobody remembers what the question was about.
const AnswerExpires = time.Hour

// Pose makes the question one that can be answered: of this session, asked at
// this moment. Its ID covers both, and all that would run.
func (q Question) Pose(session string, at time.Time) Question {
	q.Session, q.AskedAt = session, at
	q.ID = q.digest()
	return q
}

// CheckAnswer returns nil if the answer is to this very question, in time. An
// answer to any other call, to the same call of another session, or from
// yesterday allows nothing.
func (q Question) CheckAnswer(a Answer, now time.Time) error {
	switch {
	case q.AskedAt.IsZero():
		return errors.New("the question was never put")
	case a.Question != q.digest():
		return errors.New("the answer is to another question")
	case now.Before(q.AskedAt) || now.Sub(q.AskedAt) > AnswerExpires:
		return fmt.Errorf("the question was not answered within %s", AnswerExpires)
	}
	return nil
}

// digest identifies what was asked.
func (q Question) digest() [32]byte {
	changes := q.Changes.Digest()
	return sha256.Sum256([]byte(lengthPrefixed(q.Session, []string{
		q.Call.ID, q.Tool, string(q.Call.Args), string(q.Call.Caller), q.Call.Cwd, q.Module, q.Command, q.Dir, string(changes[:]), strconv.FormatBool(q.Failed),
		strconv.Itoa(q.Call.Turn), strconv.Itoa(q.Call.Step), strconv.FormatInt(q.AskedAt.UnixNano(), 10),
		q.Tier.String(), q.OpensHost,
	}, q.Paths, q.Network, historyTexts(q.Histories), tool.SecretNames(q.Secrets))))
}
