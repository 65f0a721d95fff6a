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

// OutputLines limits each stream of a command's output in a question, in lines; earlier lines
// are left out.
const OutputLines = 8

// Question is a question to a person about a call, or about histories.
type Question struct {
	Call              tool.Call
	Tool              string
	Risk              Risk
	Reason            string
	AskingSource      Source // layer that asks; the person's own only if no other asks; or SourceDefault
	ModuleText        string // the tool's module: built in, or its name and signer, or its digest
	Command           string // exact command that would run; empty: none
	Dir               string // working directory of the call
	Output            string // end of the command's output; empty: no output, or it has not run
	AskFirstReason    string // reason to ask before the command runs; empty: it has run, or none runs
	CallerDescription string // the caller's description of the command; a claim, not a fact
	// Paths holds the files that the arguments name, see [PathArgs], and secret-looking files
	// that the command may read after a yes. They are absolute and clean, going by their text
	// only: code that shows them must resolve symbolic links.
	Paths []string
	// Network holds the rules about the hosts that the call could reach, as in
	// [network.Network.Rules], or one text if there are none. Nil: the call does not ask for
	// the network.
	Network   []string
	OpensHost string        // host that no rule opens and that a yes opens; empty: none
	Secrets   []tool.Secret // secrets for which the tool would get placeholders, never values
	// Histories holds the repository histories that the question is about; the answer holds
	// for all commands. Nil: the question is about the call.
	Histories          []History
	Changes            *diff.Set        // changes that the call would make; nil: they are not known
	Failed             bool             // set if the call has run and failed: it changes nothing
	Tier               Tier             // tier in which the command would run; zero also without a command
	Warning            string           // text that the person should know before answering
	Scopes             []Scope          // scopes that the person can choose
	Rules              map[Scope]string // words of the rule that an answer creates, by scope; none for "once"
	CoversLikeCommands bool             // an answer for the session is for the first words of the command, see [Rule.FirstWords]
	BindingChanges     []BindingChange  // remembered rules that no longer apply because the tool has changed
	CallsAfter         int              // calls of the same reply that begin after the end of this one; 0 if some may run beside it
	Tried              bool             // the call was tried on the changes of others in its step: they are answered together, or after an error each by itself, later
	AllowRule          string           // rule that would have allowed the call; empty: none alone would

	Module  string    // digest of the tool's module
	Session string    // session of the question; [Question.Pose] sets this and the next two
	AskedAt time.Time // time of the question; zero: it was not posed
	ID      [32]byte  // digest of the question, which an answer has to name
}

// UnconfinedWarning is the warning for every command in [TierNone].
const UnconfinedWarning = "it is not confined here: it has all your rights, on all your files"

// partlyConfinedWarning is the warning for commands in tiers between [TierNone] and
// [TierConfined].
const partlyConfinedWarning = "it is confined in part here: it can change the times and modes of your other files and see their names; " +
	"in the directories that tools are shown, and in the git history there, it can read secrets and files that are closed to tools"

// unconfinedWarning returns the warning for commands in a tier below [TierConfined]; else "".
func (t Tier) unconfinedWarning() string {
	switch {
	case t == TierNone:
		return UnconfinedWarning
	case t < TierConfined:
		return partlyConfinedWarning
	}
	return ""
}

// exfiltrationWarning is the warning for tools that reach the network.
const exfiltrationWarning = "it can send all that it is given or reads to the hosts that are allowed"

// networkWarning returns the warning for a call that reaches the network. For a third-party
// tool that also reads files, it names the directories and the hosts. If a yes opens a host,
// it names that.
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

// listSome returns the first five of the words, and the number of the rest.
func listSome(words []string) string {
	const maxWords = 5
	switch n := len(words); {
	case n == 0:
		return "nobody yet"
	case n > maxWords:
		return fmt.Sprintf("%s and %d more", strings.Join(words[:maxWords], ", "), n-maxWords)
	}
	return strings.Join(words, ", ")
}

// Warn adds a clause to the warning.
func (q *Question) Warn(clause string) {
	if q.Warning != "" && clause != "" {
		q.Warning += "; "
	}
	q.Warning += clause
}

// Question returns the question of a decision that asks.
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
	q.Rules = map[Scope]string{}
	for _, scope := range []Scope{ScopeTurn, ScopeSession, ScopeProject, ScopeAlways, ScopeBelow, ScopeKeepBelow} {
		r, err := d.RuleFor(scope)
		if err != nil {
			continue
		}
		q.Scopes = append(q.Scopes, scope)
		q.Rules[scope] = r.InWords()
		q.CoversLikeCommands = q.CoversLikeCommands || len(r.FirstWords) > 0
	}
	if d.offersFreedom() {
		q.Scopes, q.Rules[ScopeFree] = append(q.Scopes, ScopeFree), d.freeWords()
	}
	return q
}

// askingSource returns [Question.AskingSource].
func (d Decision) askingSource() Source {
	for _, by := range append([]Decider{d.by}, d.also...) {
		if d.othersAsk && !by.Source.isPersonal() {
			return by.Source
		}
	}
	return d.by.Source
}

// paths returns [Question.Paths].
func (d Decision) paths() (names []string) {
	for _, f := range PathArgs(d.call, d.entry) {
		// An argument that is no path is left out; the tool reports it.
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

// reachesNetwork reports whether the call asks for the network.
func (d Decision) reachesNetwork() bool {
	return d.execNetwork || d.entry.Capabilities.Network != tool.NetworkNone
}

// networkRules returns [Question.Network].
func (d Decision) networkRules() []string {
	if d.policy == nil || !d.reachesNetwork() {
		return nil
	}
	if rules := d.network().Rules(); len(rules) > 0 {
		return rules
	}
	return []string{"nobody: no rule allows a host"}
}

// network returns the hosts that the call may reach, with opensHost if there is one. Nil:
// opensHost cannot be opened.
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

// Answer is a person's answer to a [Question].
type Answer struct {
	Question [32]byte // ID of the question
	Allow    bool
	Scope    Scope
	By       string // way in which it was given, for the record: "terminal", "no terminal", ...
	// Because is the person's reason for a no, for the model; empty: none was given.
	Because string
	// RestOfStep makes a no hold for all later calls of the same reply of the model, too, but for
	// those that run beside this one.
	RestOfStep bool
	// OutputOnly is set with a no to the changes of a command that has run: they are dropped,
	// and the caller gets the output.
	OutputOnly bool
}

// AnswerExpires limits the time from a question to its answer; a later answer is refused. It
// outlasts a lunch but not a night, after which nobody remembers the question.
const AnswerExpires = time.Hour

// Pose returns the question with its session, its time and its ID, so that it can be answered.
// The ID is a digest of the session, the time and everything that would run.
func (q Question) Pose(session string, at time.Time) Question {
	q.Session, q.AskedAt = session, at
	q.ID = q.digest()
	return q
}

// CheckAnswer returns an error unless the answer, a yes or a no, is to exactly this question,
// and in time. An answer to another call, to the same call in another session, or from
// yesterday allows nothing.
func (q Question) CheckAnswer(a Answer, now time.Time) error {
	switch {
	case q.AskedAt.IsZero():
		return errors.New("the question was never asked")
	case a.Question != q.digest():
		return errors.New("the answer is to another question")
	case now.Before(q.AskedAt) || now.Sub(q.AskedAt) > AnswerExpires:
		return fmt.Errorf("the question was not answered within %s", AnswerExpires)
	}
	return nil
}

func (q Question) digest() [32]byte {
	changes := q.Changes.Digest()
	return sha256.Sum256([]byte(lengthPrefixed(q.Session, []string{
		q.Call.ID, q.Tool, string(q.Call.Args), string(q.Call.Caller), q.Call.Cwd, q.Module, q.Command, q.Dir, string(changes[:]), strconv.FormatBool(q.Failed),
		strconv.Itoa(q.Call.Turn), strconv.Itoa(q.Call.Step), strconv.FormatInt(q.AskedAt.UnixNano(), 10),
		q.Tier.String(), q.OpensHost,
	}, q.Paths, q.Network, historyTexts(q.Histories), tool.SecretNames(q.Secrets))))
}
