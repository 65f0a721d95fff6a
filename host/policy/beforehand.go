package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/tool"
)

// AnswerError says why a rule cannot answer questions beforehand.
type AnswerError struct {
	Rule  string // as it was written
	Fault AnswerFault
	Tool  string    // by its own name; empty if there is none, or if the rule cannot be read
	What  string    // is wrong, in words
	Lint  tool.Hint // what is wrong, of FaultDoubt; the words are the program's
	// Instead is the rule that would do, with COMMAND in the place of a command;
	// empty if none is known.
	Instead string
}

func (e *AnswerError) Error() string { return fmt.Sprintf("rule %q: %s", e.Rule, e.What) }

// AnswerFault is what is wrong with a rule.
type AnswerFault int

// The faults, in the order in which they are looked for.
const (
	FaultForm        AnswerFault = iota // it cannot be read
	FaultTool                           // there is no such tool
	FaultArgument                       // the tool has no such argument
	FaultAllCommands                    // it allows all commands
	FaultNeverCounts                    // it speaks of no call, see [Rule.Lint]
	FaultSecrets                        // it does not name the secrets that the tool uses, or names others
)

// ParseAnswer reads a rule of this run that answers questions beforehand, and
// holds it against the tools that there are and, where it matters, the tier. A rule that would never count, or for
// more than it says, is a mistake: the error is an *[AnswerError].
func ParseAnswer(text string, catalog *tool.Catalog, tier func() Tier) (Rule, error) {
	r, err := ParseRule(text)
	open := errors.Is(err, errTooWide)
	if err != nil && !open {
		return r, &AnswerError{Rule: text, Fault: FaultForm, What: err.Error()}
	}
	entry, ok := catalog.Find(r.Tool)
	if open && (!ok || entry.Capabilities.Exec == "" || tier() < TierConfined) { // else it is no wider than the tool as a whole
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
	if doubt := r.Lint(tier, catalog); doubt != nil {
		return r, &AnswerError{Rule: text, Fault: FaultNeverCounts, Tool: r.Tool, What: doubt.String(), Lint: doubt}
	}
	if names := tool.SecretNames(entry.Capabilities.Secrets); strings.Join(names, ",") != r.Secrets {
		if len(names) == 0 {
			return wrong(FaultSecrets, "", "%s uses no secrets", r.Tool)
		}
		with := r
		with.Secrets = strings.Join(names, ",")
		return wrong(FaultSecrets, with.String(), "%s uses these secrets: %s", r.Tool, strings.Join(names, ", "))
	}
	return r, nil
}
