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

// The sources. Rules of flags, sessions and users can allow, within the ceiling. Those
// of the other layers can only restrict.
const (
	SourceDefault  Source = "default"  // no layer decides, but the risk of the tool or a check of our own
	SourceFlag     Source = "flag"     // --allow, --deny
	SourceSession  Source = "session"  // answered at a prompt, for this run at most
	SourceUser     Source = "user"     // answered at a prompt and remembered, or written by the user
	SourceSettings Source = "settings" // agent.toml
	SourceAdmin    Source = "administrator"
	SourceProject  Source = "project"
	SourceEnv      Source = "environment"

	// SourceAllowance is the allowance of a tool that was added. No rule has it.
	SourceAllowance Source = network.SourceAllowance
)

// authority lists the layers in the order in which they are named if several decide the same,
// the highest first.
var authority = []Source{SourceAdmin, SourceUser, SourceProject, SourceEnv, SourceFlag, SourceSession, SourceDefault}

// mayAllow reports whether rules of the source can answer questions. Only the user's can:
// an administrator's file and a project's file only restrict.
func (s Source) mayAllow() bool {
	return s == SourceUser || s == SourceFlag || s == SourceSession
}

// isPersonal reports whether the person wrote the rules of this source, in a file or as a
// flag, and so can be asked whether they still hold. The environment is not personal: it may
// come from a program that has started this one.
func (s Source) isPersonal() bool { return s == SourceUser || s == SourceFlag }

// AnyTool stands for every tool in a rule. A rule for it cannot allow.
const AnyTool = "*"

// Rule allows calls, asks about them or denies them. A rule that denies wins over one that
// asks, and one that asks over one that allows, but see Overrides.
type Rule struct {
	Effect Effect
	Tool   string            // the tool's name, or AnyTool
	Except []string          // tools that a rule for AnyTool does not apply to
	Where  []match.Condition // conditions, all of which must hold for a call; empty: none
	// Risks and Callers restrict the rule to calls of these risks and callers. Empty: any.
	Risks   []Risk
	Callers []tool.Caller
	// AfterCalls is the number of calls of the tool in a session after which a rule that
	// denies applies. 0: from the first call on.
	AfterCalls int
	// Secrets holds the names of the secrets that the tool may use under a rule that allows,
	// sorted and separated by commas. Such a rule does not apply to a tool that asks for
	// another secret: an answer never covers more than the question did.
	Secrets string
	// Reads holds secret-looking files that an allowed call may read, besides the files that
	// conditions name. A path is absolute, or relative to the working directory of the call.
	Reads   []string
	Changes ChangesMode // mode for the changes of the command; empty: the rule sets none
	// Below narrows a rule that allows: it then allows only calls that change nothing outside
	// this directory; files at any depth are inside. It is absolute, or relative to the
	// working directory of the call. The changes are known only after a call has run on a
	// stage, so the rule does not count before. Empty: the rule is not narrowed.
	Below string
	// FirstWords narrows a rule with Below, of an answer in this session, to commands with these
	// first words, see [command.FirstWords]. Nil: the rule is not narrowed.
	FirstWords []string
	// HistoryDir makes the rule one about histories: it decides whether commands of the tool
	// may read histories that seem to hold secrets, of the repositories in this directory. It
	// is absolute, or relative to the workspace. Empty: the rule is about calls.
	HistoryDir string
	// OpensHost restricts a rule that allows to calls that would reach this host, and opens
	// the host for them although no network rule does. Only answers in this session have it,
	// and [ParseRule] does not read it. Empty: the rule opens no host.
	OpensHost string

	// Binding holds the tool, or only its module, for which the rule was made. If that has
	// changed, the rule does not apply. Zero: the rule is bound to no module.
	Binding Binding
	// Turn restricts the rule to calls in the turn of this number; 0: any. Project
	// restricts it to calls in this workspace, given by its directory; empty: any.
	Turn    int
	Project string

	// Overrides holds the identities of the person's own rules and bounds that asked when this
	// answer of the session was given. The answer wins over these and no others.
	Overrides []string

	Source Source
	Origin string // place where the rule is written, FILE:LINE; empty: Source names the place
	Why    string // the author's reason for the rule; may be empty
}

// String returns the form that [ParseRule] reads, if the rule has at most one condition and
// nothing that this form lacks.
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
	if len(r.FirstWords) > 0 {
		text += " beginning " + strings.Join(r.FirstWords, " ")
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

// The words that introduce each clause after the condition, in the text of a rule.
const (
	secretsClause = " with "
	readsClause   = " reads "
	changesClause = " changes "
	belowClause   = " below "
	historyClause = " history "
)

// ParseRule parses a rule that allows: TOOL or TOOL(CONDITION), see [match.ParseCondition].
// It may be followed by " with NAME,NAME" for secrets, then by " reads PATH, PATH" for
// files, and last by " changes CHANGES" or " below DIR". The form TOOL history DIR is a
// rule about histories. The value of a condition ends at the last parenthesis, and a path
// after " reads " holds no comma.
func ParseRule(s string) (Rule, error) { return parseRule(s, Allow) }

// ParseDenial parses a rule that denies, in the form of [ParseRule], but without the
// clauses reads, changes and below. It can be about [AnyTool], and about any command. A literal
// value with a "*" is an error: its author meant a pattern, and the rule would deny nothing.
func ParseDenial(s string) (Rule, error) { return parseRule(s, Deny) }

func parseRule(text string, effect Effect) (Rule, error) {
	s, historyDir, ofHistory := cutLast(text, historyClause)
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
	if r.HistoryDir = historyDir; ofHistory && historyDir == "" {
		return Rule{}, fmt.Errorf("rule %q: it names no directory; want 'TOOL history DIR'", text)
	}
	switch r.Changes = ChangesMode(changes); {
	case chosen && !slices.Contains(changesModes, r.Changes):
		return Rule{}, fmt.Errorf("rule %q: %q is none of %q", text, changes, changesModes)
	case chosen && (effect == Deny || within):
		return Rule{}, fmt.Errorf("rule %q: a rule with \"changes\" asks or allows, and names no directory with \"below\": those changes are always staged", text)
	}
	return r, r.Check()
}

// cutLast cuts a rule at the last sep. A value may hold sep, but it ends with a parenthesis,
// and no clause does.
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

// errTooWide is wrapped by the error of a rule whose pattern lets its program run any command.
var errTooWide = errors.New("runs what its arguments say, so a rule for any of them allows everything; write the words to the letter")

// Check returns an error if the rule is malformed, or allows more than its text suggests.
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
		return errors.New("a rule that allows names its tool: no rule allows all tools")
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

// holdsPath reports whether the text of a rule can hold this path in a clause after the
// condition, and be parsed again.
func (r Rule) holdsPath(name string) bool {
	return name != "" && strings.TrimSpace(name) == name && !strings.HasSuffix(name, ")") && !strings.ContainsRune(name, 0) &&
		!slices.ContainsFunc([]string{secretsClause, readsClause, changesClause, belowClause, historyClause}, func(word string) bool { return strings.Contains(name, word) })
}

// InWords returns the meaning of the rule, for a person who has to agree to it.
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
	if len(r.FirstWords) > 0 {
		fmt.Fprintf(&b, " that begins with %q", strings.Join(r.FirstWords, " "))
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
	b.WriteString(map[ChangesMode]string{
		ChangesDirect: ", which changes files while it runs", ChangesStaged: ", which changes files when it has run", ChangesNone: ", which can change no file",
	}[r.Changes])
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
		b.WriteString(", overriding the rules of yours that ask about this call")
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

func each[T any](values []T, text func(T) string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = text(v)
	}
	return out
}

// remembered reports whether the rule allows and comes from no flag. An answer for this
// session counts as remembered, too.
func (r *Rule) remembered() bool { return r.Effect == Allow && r.Source != SourceFlag }

// matches reports whether the rule applies to the call, and counts. A rule with Below never
// does: see [Decision.applyDirRules].
func (r *Rule) matches(d *Decision, args *match.Arguments) match.Truth {
	if r.Below != "" {
		return match.No
	}
	return r.matchesIgnoringBelow(d, args)
}

// matchesIgnoringBelow is like matches, but ignores Below.
func (r *Rule) matchesIgnoringBelow(d *Decision, args *match.Arguments) match.Truth {
	if r.Effect == Allow && d.entry.Capabilities.Exec != "" && r.Tool == d.entry.Name && !r.mayStart(d.policy, d.entry) {
		return match.No
	}
	return r.matchesConditions(d, args)
}

// matchesConditions reports whether the rule applies to the call, even if it does not count.
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
	if len(r.FirstWords) > 0 && !slices.Equal(r.FirstWords, d.firstWords(args)) {
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

// firstWords returns the first words of the command of the call, see [command.FirstWords]. Nil:
// it has none, or is more than one program and its literal arguments.
func (d *Decision) firstWords(args *match.Arguments) []string {
	text, _ := args.Text(d.entry.Capabilities.Exec)
	line := command.Parse(text)
	if d.entry.Capabilities.Exec == "" || !line.Literal {
		return nil
	}
	return command.FirstWords(line.Commands[0])
}

// isExactFlag reports whether the rule comes from a flag of this run and has the literal
// command in the argument arg.
func (r *Rule) isExactFlag(arg string) bool {
	return r.Source == SourceFlag && slices.ContainsFunc(r.Where, func(c match.Condition) bool { return c.Arg() == arg && c.Kind() == match.Equal && !c.Not() })
}

// mayStart reports whether a rule that allows a process counts. A remembered rule counts only
// if its command may be remembered, see [checkRememberable]. Below [TierConfined], the rule
// must also name the command, and come from a flag.
func (r *Rule) mayStart(p *Policy, e *tool.Entry) bool {
	exec := e.Capabilities.Exec
	return r.checkRemembered(exec) == nil && (r.namesCommand(exec) && !r.remembered() || p.tier() >= TierConfined)
}

// checkRemembered returns an error, with the reason, if the rule was remembered and its
// command must not be. arg is the argument with the command.
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

// checkRememberable returns an error, with the reason, if the command must not be remembered:
// its words would allow more than one program, or another one tomorrow.
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

// namesCommand reports whether a condition of the rule names the command in arg.
func (r *Rule) namesCommand(arg string) bool {
	return slices.ContainsFunc(r.Where, func(c match.Condition) bool { return namesCommand(c, arg) })
}

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

// CheckExamples returns an error unless the rule's conditions hold for each example in fit,
// and do not surely hold for any in unfit. An example is the arguments of a call, as a JSON
// object. Examples belong to the rule, so that anyone who changes it learns what else changes.
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
