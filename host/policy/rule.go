package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/policy/command"
	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/tool"
)

// Source is the layer that a rule or a bound comes from.
type Source string

// The sources. Each but the first four can only narrow what is left; what a
// person answered, or says with --allow, answers a question within that.
const (
	SourceDefault  Source = "default"  // the risk of the tool decides
	SourceFlag     Source = "flag"     // --allow, --deny
	SourceSession  Source = "session"  // answered "turn" or "session" at a prompt
	SourceUser     Source = "user"     // answered "always" or "project" at a prompt, or written by the user
	SourceSettings Source = "settings" // agent.toml
	SourceAdmin    Source = "administrator"
	SourceProject  Source = "project"
	SourceEnv      Source = "environment"

	// SourceAllowance is what a person gave one tool that was added; no rule has it.
	SourceAllowance Source = network.SourceAllowance
)

// authority is the order in which layers are named where several say the same.
var authority = []Source{SourceAdmin, SourceUser, SourceProject, SourceEnv, SourceFlag, SourceSession, SourceDefault}

// mayAllow: nobody but the user answers questions. An administrator's file
// narrows, and so does what came with a project.
func (s Source) mayAllow() bool {
	return s == SourceUser || s == SourceFlag || s == SourceSession
}

// isPersonal reports whether the person has written what comes from there, who so can be asked
// whether it still holds. The environment may be a program's that has started this one.
func (s Source) isPersonal() bool { return s == SourceUser || s == SourceFlag }

// AnyTool is the name that a rule has for every tool. It cannot allow.
const AnyTool = "*"

// Rule answers a question before it is asked, or says that a call is not to be
// made. A rule that denies wins over one that asks, and that over one that
// allows.
type Rule struct {
	Effect Effect
	Tool   string // its name, or AnyTool
	// Except are tools that a rule for AnyTool does not speak of.
	Except []string
	// Where narrows the rule to calls for which all of it holds. Empty: any.
	Where []match.Condition
	// Risks and Callers narrow it to those. Empty: any.
	Risks   []Risk
	Callers []tool.Caller
	// AfterCalls narrows it to calls of the tool after so many of it in the session.
	// It is for rules that deny; 0 is no condition.
	AfterCalls int
	// Secrets are the names of the secrets that the rule allows too, sorted and
	// separated by commas. A rule that allows says nothing of a tool that asks
	// for another one: an answer never covers more than was asked.
	Secrets string
	// Reads are files that look like secrets and that a call which the rule allows
	// may read, besides those that a condition names: absolute, or relative to where
	// the call starts.
	Reads []string
	// Changes is what becomes of what the command changes of which the rule speaks;
	// empty: what holds without the rule.
	Changes ChangesMode
	// Below narrows a rule that allows to calls that change nothing but what is in
	// this directory, and itself: absolute, or relative to where the call starts.
	// It counts when a call has run on a stage. Empty: anywhere.
	Below string
	// HistoryDir makes the rule decide whether commands of the tool may read histories that seem
	// to hold secrets, of the repositories in this directory, absolute or relative to the
	// workspace. Such a rule is not about calls. Empty: it is another rule.
	HistoryDir string
	// OpensHost narrows a rule that allows to calls which would reach this host, which no
	// rule of the network opens, and opens it for them. No text of a rule has it: it is
	// of answers in this session. Empty: the rule opens no host.
	OpensHost string

	// Binding is what the rule was made for; see [Binding].
	Binding Binding
	// Turn and Project are set in rules that hold only there. Turn is its
	// number, Project the directory of the workspace.
	Turn    int
	Project string

	// Overrides are the rules of the person's own that ask, and that an answer of this
	// session was given to: it wins over these and no others. Each is its identity.
	Overrides []string

	Source Source
	Origin string // where it is written: FILE:LINE; empty where the source says it
	Why    string // what whoever wrote it says
}

// String gives the form that [ParseRule] reads, if the rule has no more than one
// condition and nothing else to it.
func (r Rule) String() string {
	text := r.Tool
	if len(r.Where) > 0 {
		text = fmt.Sprintf("%s(%s)", r.Tool, strings.Join(each(r.Where, match.Condition.String), " and "))
	}
	if r.Secrets != "" {
		text += secretsClause + r.Secrets
	}
	if len(r.Reads) > 0 {
		text += readsClause + strings.Join(r.Reads, ", ")
	}
	if r.Changes != "" {
		text += changesClause + string(r.Changes)
	}
	if r.Below != "" {
		text += belowClause + r.Below
	}
	if r.HistoryDir != "" {
		text += historyClause + r.HistoryDir
	}
	if r.OpensHost != "" {
		text += " opens " + r.OpensHost
	}
	return text
}

// What stands in front of each thing that a rule names behind its condition.
const (
	secretsClause = " with "
	readsClause   = " reads "
	changesClause = " changes "
	belowClause   = " below "
	historyClause = " history "
)

// ParseRule parses TOOL or TOOL(CONDITION), see [match.ParseCondition]. Behind it may stand
// " with NAME,NAME" for secrets that are allowed, too, then " reads PATH, PATH" for files,
// and last " changes CHANGES" or " below DIR"; or else it parses TOOL history DIR. The
// value of a condition ends at the last parenthesis, and a path of " reads " holds no
// comma. The rule allows.
func ParseRule(s string) (Rule, error) { return parseRule(s, Allow) }

// ParseDenial reads what [ParseRule] does, of a rule that denies. It can be
// about [AnyTool], and about any command. A value to the letter has no "*": whoever
// writes one there means more than that value, and would deny nothing.
func ParseDenial(s string) (Rule, error) { return parseRule(s, Deny) }

func parseRule(text string, effect Effect) (Rule, error) {
	s, past, ofHistory := cutLast(text, historyClause)
	s, dir, within := cutLast(s, belowClause)
	s, changes, chosen := cutLast(s, changesClause)
	s, files, opens := cutLast(s, readsClause)
	s, secrets, withSecrets := cutLast(s, secretsClause)
	r, err := parsePlain(s, effect)
	if err != nil {
		return Rule{}, err
	}
	if withSecrets {
		names := strings.Split(secrets, ",")
		if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
			return Rule{}, fmt.Errorf("rule %q: the secrets are named once each, in the order of the alphabet", text)
		}
		for _, name := range names {
			if !tool.ValidSecretName(name) {
				return Rule{}, fmt.Errorf("rule %q: %q cannot be the name of a secret; want 'TOOL with SECRET,SECRET'", text, name)
			}
		}
		r.Secrets = secrets
	}
	if opens {
		for i, name := range strings.Split(files, ",") {
			if i > 0 {
				name = strings.TrimPrefix(name, " ")
			}
			r.Reads = append(r.Reads, name)
		}
	}
	if r.Below = dir; within && dir == "" {
		return Rule{}, fmt.Errorf("rule %q: it names no directory; want 'TOOL below DIR'", text)
	}
	if r.HistoryDir = past; ofHistory && past == "" {
		return Rule{}, fmt.Errorf("rule %q: it names no directory; want 'TOOL history DIR'", text)
	}
	switch r.Changes = ChangesMode(changes); {
	case chosen && !slices.Contains(changesModes, r.Changes):
		return Rule{}, fmt.Errorf("rule %q: %q is none of %q", text, changes, changesModes)
	case chosen && (effect == Deny || within):
		return Rule{}, fmt.Errorf("rule %q: what becomes of changes is for a rule that asks or allows, and is staged where it names a directory", text)
	}
	return r, r.Check()
}

// cutLast cuts what stands behind a rule. A value ends with a parenthesis, which no
// name does.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 && !strings.HasSuffix(s, ")") {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func parsePlain(s string, effect Effect) (Rule, error) {
	name, rest, narrowed := strings.Cut(s, "(")
	r := Rule{Effect: effect, Tool: name}
	if !tool.ValidName(name) && (effect == Allow || name != AnyTool) {
		return Rule{}, fmt.Errorf("rule %q: want TOOL or 'TOOL(ARGUMENT=VALUE)', for example 'bash(command=make test)'", s)
	}
	if !narrowed {
		return r, nil
	}
	inner, ok := strings.CutSuffix(rest, ")")
	if !ok {
		return Rule{}, fmt.Errorf("rule %q: want 'TOOL(ARGUMENT=VALUE)', for example 'bash(command=make test)'", s)
	}
	c, err := match.ParseCondition(inner)
	if err != nil {
		return Rule{}, fmt.Errorf("rule %q: %w", s, err)
	}
	if effect == Deny && c.Kind() == match.Equal && strings.Contains(c.Value(), "*") {
		return Rule{}, fmt.Errorf(`rule %q: it would deny %q to the letter, and no other value: write path:%s=/DIR/**, words:%[3]s='WORD ...', pattern:%[3]s=REGEXP, or for that text one_of:%[3]s=[%[2]q]`, s, c.Value(), c.Arg())
	}
	r.Where = []match.Condition{c}
	return r, nil
}

// errTooWide is wrapped by the error of a rule whose words would stand for anything.
var errTooWide = errors.New("runs what its arguments say, so a rule for any of them allows everything; write the words to the letter")

// Check says what is wrong with a rule: one that allows must not be wider than
// it reads.
func (r Rule) Check() error {
	switch {
	case r.HistoryDir != "":
		return r.checkHistory()
	case r.Tool != AnyTool && !tool.ValidName(r.Tool):
		return fmt.Errorf("rule for %.80q: that is not the name of a tool", r.Tool)
	case len(r.Except) > 0 && r.Tool != AnyTool:
		return fmt.Errorf("rule %s: only a rule for %q has exceptions", r, AnyTool)
	case r.AfterCalls < 0 || r.AfterCalls > 0 && r.Effect != Deny:
		return fmt.Errorf("rule %s: a number of calls is for a rule that denies", r)
	case len(r.Reads) > 0 && r.Effect != Allow:
		return fmt.Errorf("rule %s: only a rule that allows opens files", r)
	case r.Below != "" && r.Effect != Allow:
		return fmt.Errorf("rule %s: only a rule that allows names the directory of changes", r)
	case r.Below != "" && !r.holdsPath(r.Below):
		return fmt.Errorf("rule %s: %q cannot stand for a directory there", r, r.Below)
	case r.Effect != Allow:
		return nil
	case r.Tool == AnyTool:
		return errors.New("a rule that allows names its tool: none allows them all")
	}
	for _, name := range r.Reads {
		if !r.holdsPath(name) || strings.Contains(name, ",") {
			return fmt.Errorf("rule %s: %q cannot stand for a file there; want 'TOOL(ARGUMENT=VALUE) reads PATH, PATH', behind the secrets", r, name)
		}
	}
	for _, c := range r.Where {
		if c.Arg() == "" {
			return fmt.Errorf("rule %s: a condition says nothing", r)
		}
		if words := c.Words(); c.Kind() == match.Words && !c.Not() && command.RunsOthers(words.Words()) && !words.Exact() {
			return fmt.Errorf("rule %s: %s %w", r, words.Words()[0], errTooWide)
		}
	}
	return nil
}

// holdsPath reports whether the text of a rule can hold a path behind its condition.
func (r Rule) holdsPath(name string) bool {
	return name != "" && strings.TrimSpace(name) == name && !strings.HasSuffix(name, ")") && !strings.ContainsRune(name, 0) &&
		!slices.ContainsFunc([]string{secretsClause, readsClause, changesClause, belowClause, historyClause}, func(word string) bool { return strings.Contains(name, word) })
}

// InWords says what the rule means, for a person who is to agree to it.
func (r Rule) InWords() string {
	var b strings.Builder
	name := r.Tool
	if name == AnyTool {
		name = "any tool"
	}
	if r.HistoryDir != "" {
		fmt.Fprintf(&b, "%s %s to read what looks like a secret in the history of the repositories in %q", r.Effect, name, r.HistoryDir)
		if r.Source == SourceSession {
			b.WriteString(", until this program ends")
		} else if r.Project != "" {
			fmt.Fprintf(&b, ", in the workspace %s", r.Project)
		}
		return b.String()
	}
	fmt.Fprintf(&b, "%s every call of %s", r.Effect, name)
	if len(r.Except) > 0 {
		fmt.Fprintf(&b, " but %s", strings.Join(r.Except, ", "))
	}
	if r.Binding.Module != "" {
		fmt.Fprintf(&b, " of %s", r.Binding.words())
	}
	for i, c := range r.Where {
		fmt.Fprintf(&b, "%s %s", map[bool]string{true: " where", false: " and"}[i == 0], c.InWords())
	}
	if r.Effect == Allow && r.Secrets != "" {
		fmt.Fprintf(&b, ", with the secrets %s and no others", r.Secrets)
	}
	if r.OpensHost != "" {
		fmt.Fprintf(&b, " to %s, which it opens, and no other host", r.OpensHost)
	}
	if len(r.Reads) > 0 {
		fmt.Fprintf(&b, ", which may read %s", quoted(r.Reads))
	}
	if r.Below != "" {
		fmt.Fprintf(&b, ", if it changes nothing but what is in %s", r.Below)
	}
	switch r.Changes {
	case ChangesDirect:
		b.WriteString(", which changes files while it runs")
	case ChangesStaged:
		b.WriteString(", which changes files when it has run")
	case ChangesNone:
		b.WriteString(", which can change no file")
	}
	if len(r.Risks) > 0 {
		fmt.Fprintf(&b, ", of risk %s", strings.Join(each(r.Risks, Risk.String), " or "))
	}
	if len(r.Callers) > 0 {
		fmt.Fprintf(&b, ", made by %s", strings.Join(each(r.Callers, func(c tool.Caller) string { return string(c) }), " or "))
	}
	if r.AfterCalls > 0 {
		fmt.Fprintf(&b, ", after %d calls in a session", r.AfterCalls)
	}
	if len(r.Overrides) > 0 {
		b.WriteString(", also where the rules of yours ask that ask about this one")
	}
	switch {
	case r.Turn > 0:
		b.WriteString(", in this turn")
	case r.Source == SourceSession:
		b.WriteString(", until this program ends")
	case r.Project != "":
		fmt.Fprintf(&b, ", in the workspace %s", r.Project)
	case r.Source == SourceUser && r.Below == "":
		b.WriteString(", in any workspace")
	}
	return b.String()
}

// each is the text of every value.
func each[T any](values []T, text func(T) string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = text(v)
	}
	return out
}

// remembered: the rule was kept beyond the run in which somebody wrote it.
func (r *Rule) remembered() bool { return r.Effect == Allow && r.Source != SourceFlag }

// matches reports whether the rule speaks of the call that is decided, and counts.
func (r *Rule) matches(d *Decision, args *match.Arguments) match.Truth {
	if r.Below != "" {
		return match.No // before it is known what the call changes
	}
	return r.matchesIgnoringBelow(d, args)
}

// matchesIgnoringBelow reports whether the rule would speak of the call whatever it changes.
func (r *Rule) matchesIgnoringBelow(d *Decision, args *match.Arguments) match.Truth {
	if r.Effect == Allow && d.entry.Capabilities.Exec != "" && r.Tool == d.entry.Name && !r.mayStart(d.policy, d.entry) {
		return match.No
	}
	return r.matchesConditions(d, args)
}

// matchesConditions reports whether the rule speaks of the call that is decided.
func (r *Rule) matchesConditions(d *Decision, args *match.Arguments) match.Truth {
	call, e := &d.call, d.entry
	switch {
	case r.Tool != e.Name && r.Tool != AnyTool,
		slices.Contains(r.Except, e.Name),
		len(r.Risks) > 0 && !slices.Contains(r.Risks, d.risk),
		len(r.Callers) > 0 && !slices.Contains(r.Callers, call.Caller),
		r.AfterCalls > 0 && d.facts.EarlierCalls < r.AfterCalls,
		r.Turn > 0 && call.Turn != r.Turn,
		r.Project != "" && r.Project != d.policy.project,
		r.OpensHost != "" && r.OpensHost != d.opensHost:
		return match.No
	case r.Effect == Allow && (!r.Source.mayAllow() && r.Source != "" || r.Tool == AnyTool):
		return match.No
	}
	if r.Effect == Allow && !r.allowsSecrets(e.Capabilities.Secrets) {
		return match.No
	}
	out := match.Yes
	for i := range r.Where {
		if out = min(out, r.Where[i].Holds(args, r.Effect == Allow)); out == match.No {
			return match.No
		}
	}
	return out
}

// isExactFlag: the rule was given for this run and is the command in that argument to
// the letter.
func (r *Rule) isExactFlag(arg string) bool {
	return r.Source == SourceFlag && slices.ContainsFunc(r.Where, func(c match.Condition) bool { return c.Arg() == arg && c.Kind() == match.Equal && !c.Not() })
}

// mayStart: where a process is confined, a rule about it counts like any other.
// Else whoever allows one says which command, and only for the run in which that
// is said. Words that would stand for anything are never remembered.
func (r *Rule) mayStart(p *Policy, e *tool.Entry) bool {
	exec := e.Capabilities.Exec
	return r.checkRemembered(exec) == nil && (r.namesCommand(exec) && !r.remembered() || p.tier() >= TierConfined)
}

// checkRemembered says why a rule that was remembered cannot hold for the command that it
// names; nil if it can.
func (r *Rule) checkRemembered(arg string) error {
	if !r.remembered() {
		return nil
	}
	for _, c := range r.Where {
		if !namesCommand(c, arg) {
			continue
		}
		line := command.Line{Commands: [][]string{c.Words().Words()}, Literal: true}
		if c.Kind() == match.Equal {
			line = command.Parse(c.Value())
		}
		if err := checkRememberable(line); err != nil {
			return err
		}
	}
	return nil
}

// checkRememberable says why the words of a command must not be remembered: they would
// stand for more than one program, or for another one tomorrow.
func checkRememberable(line command.Line) error {
	if !line.Literal {
		return errors.New("it is more than one program and its literal arguments")
	}
	words := line.Commands[0]
	switch {
	case command.RunsOthers(words):
		return fmt.Errorf("%s runs what its arguments say", words[0])
	case command.MayBeWritten(words[0]):
		return fmt.Errorf("what %s holds can change", words[0])
	}
	return nil
}

// namesCommand reports whether the rule says which command the argument holds.
func (r *Rule) namesCommand(arg string) bool {
	return slices.ContainsFunc(r.Where, func(c match.Condition) bool { return namesCommand(c, arg) })
}

// namesCommand reports whether a condition says which command the argument holds.
func namesCommand(c match.Condition, arg string) bool {
	return c.Arg() == arg && !c.Not() && (c.Kind() == match.Equal || c.Kind() == match.Words)
}

// allowsSecrets reports whether the rule names every secret that a tool asks for.
func (r *Rule) allowsSecrets(asked []tool.Secret) bool {
	if len(asked) == 0 {
		return true
	}
	allowed := strings.Split(r.Secrets, ",")
	return !slices.ContainsFunc(asked, func(s tool.Secret) bool { return !slices.Contains(allowed, s.Name) })
}

// CheckExamples checks calls that a rule says it is about, and calls that it says it
// is not about, each the arguments of one as JSON. They belong to the rule, so
// that whoever changes it is told what else changes.
func (r Rule) CheckExamples(fit, unfit []string) error {
	paid := match.NewWork()
	paid.Begin(0, r.Source == SourceProject)
	try := func(text string) (match.Truth, error) {
		args := json.RawMessage(text)
		var object map[string]json.RawMessage
		if err := json.Unmarshal(args, &object); err != nil || object == nil {
			return match.No, fmt.Errorf("rule %s: the example %.200q is not a JSON object of arguments", r, text)
		}
		a := match.NewArguments(args, "/", paid)
		out := match.Yes
		for i := range r.Where {
			out = min(out, r.Where[i].Holds(a, r.Effect == Allow))
		}
		_, wholeOut := paid.Exhausted()
		_, shareOut := paid.ProjectExhausted()
		if wholeOut || shareOut {
			return match.No, fmt.Errorf("rule %s: its examples take too much work to check: make them, or its conditions, fewer or simpler", r)
		}
		return out, nil
	}
	for i, text := range slices.Concat(fit, unfit) {
		t, err := try(text)
		switch fits := i < len(fit); {
		case err != nil:
			return err
		case fits && t != match.Yes:
			return fmt.Errorf("rule %s: it does not match its example %s", r, text)
		case !fits && t == match.Yes:
			return fmt.Errorf("rule %s: it matches %s, which it says that it does not", r, text)
		}
	}
	return nil
}
