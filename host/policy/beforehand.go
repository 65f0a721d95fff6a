package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/tool"
)

// AnswerError is the error of [ParseAnswer] for a rule that cannot answer questions
// beforehand.
type AnswerError struct {
	Rule    string // text of the rule
	Fault   AnswerFault
	Tool    string    // name of the tool, not an alias; empty for FaultForm and FaultTool
	What    string    // the fault, in words
	Lint    tool.Hint // the fault FaultNeverCounts as a value; nil for other faults
	Instead string    // a rule without the fault, COMMAND standing for a command; empty: none is known
}

func (e *AnswerError) Error() string { return fmt.Sprintf("rule %q: %s", e.Rule, e.What) }

// AnswerFault is the kind of fault of the rule in an [AnswerError].
type AnswerFault int

// The faults, in the order in which they are checked.
const (
	FaultForm        AnswerFault = iota // the rule cannot be parsed, or allows more than its text suggests
	FaultTool                           // there is no such tool
	FaultArgument                       // the tool has no such argument
	FaultAllCommands                    // no condition is about the command, in a tier below TierConfined
	FaultNeverCounts                    // the rule applies to no call, or never counts, see [Rule.Lint]
	FaultSecrets                        // the rule does not name exactly the secrets that the tool uses
)

// ParseAnswer parses a rule of this run that answers questions beforehand, and checks it
// against the tools in the catalog and, where needed, the tier. A rule that never counts is an
// error, too. So is one that allows more than its text suggests, except one for commands in
// [TierConfined] or higher. The error is an *[AnswerError].
func ParseAnswer(text string, catalog *tool.Catalog, tier func() Tier) (Rule, error) {
	r, err := ParseRule(text)
	tooWide := errors.Is(err, errTooWide)
	if err != nil && !tooWide {
		return r, &AnswerError{Rule: text, Fault: FaultForm, What: err.Error()}
	}
	entry, ok := catalog.Find(r.Tool)
	if tooWide && (!ok || entry.Capabilities.Exec == "" || tier() < TierConfined) { // otherwise the whole tool could be allowed, too
		return r, &AnswerError{Rule: text, Fault: FaultForm, What: err.Error()}
	}
	if !ok {
		return r, &AnswerError{Rule: text, Fault: FaultTool, What: fmt.Sprintf("there is no tool %q", r.Tool)}
	}
	r.Tool, r.Source = entry.Name, SourceFlag
	wrong := func(fault AnswerFault, instead, format string, args ...any) (Rule, error) {
		return r, &AnswerError{Rule: text, Fault: fault, Tool: r.Tool, Instead: instead, What: fmt.Sprintf(format, args...)}
	}
	for _, c := range r.Where {
		arg, _, _ := strings.Cut(strings.TrimPrefix(c.Arg(), "/"), "/")
		if !entry.Schema.HasProperty(arg) && arg != entry.Content.Argument() {
			return wrong(FaultArgument, "", "%s has no argument %q", r.Tool, arg)
		}
	}
	exec := entry.Capabilities.Exec
	if r.HistoryDir != "" {
		return r, nil
	}
	if exec != "" && !slices.ContainsFunc(r.Where, func(c match.Condition) bool { return c.Arg() == exec }) && tier() < TierConfined {
		return wrong(FaultAllCommands, fmt.Sprintf("%s(%s=COMMAND)", r.Tool, exec), "%s cannot be allowed as a whole in %s: %s", r.Tool, tier(), tier().unconfinedWarning())
	}
	if fault := r.Lint(tier, catalog); fault != nil {
		return r, &AnswerError{Rule: text, Fault: FaultNeverCounts, Tool: r.Tool, What: fault.String(), Lint: fault}
	}
	if names := tool.SecretNames(entry.Capabilities.Secrets); strings.Join(names, ",") != r.Secrets {
		if len(names) == 0 {
			return wrong(FaultSecrets, "", "%s uses no secrets", r.Tool)
		}
		instead := r
		instead.Secrets = strings.Join(names, ",")
		return wrong(FaultSecrets, instead.String(), "%s uses these secrets: %s", r.Tool, strings.Join(names, ", "))
	}
	return r, nil
}
