package policy

import (
	"fmt"
	"slices"

	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/sdk/go/nearest"
)

// Lint returns the reason why a rule, as it is written, applies to no call or never counts.
// Nil: no such fault is known. A tool or an argument is known if one of the catalogs has it.
// tier is called only if needed.
func (r Rule) Lint(tier func() Tier, known ...*tool.Catalog) tool.Hint {
	var entries []*tool.Entry
	var names []string
	for _, c := range known {
		names = append(names, c.Names()...)
		for _, name := range c.Names() {
			if e, ok := c.Find(name); ok && (r.Tool == AnyTool || r.Tool == name) {
				entries = append(entries, e)
			}
		}
	}
	if len(entries) == 0 {
		for _, c := range known {
			if e, ok := c.Find(r.Tool); ok {
				return tool.Advise("no tool of the name %q is known here; %q is what it is called in rules", r.Tool, e.Name)
			}
		}
		return tool.Advise("no tool of the name %q is known here%s", r.Tool, didYouMean(r.Tool, names))
	}
	for _, name := range r.Except {
		if !slices.Contains(names, name) {
			return tool.Advise("no tool of the name %q is known here%s", name, didYouMean(name, names))
		}
	}
	for _, c := range r.Where {
		if doubt := lintCondition(c, r.Tool, entries); doubt != "" {
			return tool.Advise("%s", doubt)
		}
	}
	if r.Effect == Allow && !slices.ContainsFunc(entries, func(e *tool.Entry) bool { return r.whyNeverCounts(tier, e.Capabilities) == nil }) {
		return r.whyNeverCounts(tier, entries[0].Capabilities)
	}
	return nil
}

// lintCondition is [Rule.Lint] for one condition of a rule about the tool name. entries are
// the tools that the rule is about. Empty: no fault.
func lintCondition(c match.Condition, name string, entries []*tool.Entry) string {
	arg, one := c.TopArg()
	if !one {
		return ""
	}
	var has []string
	for _, e := range entries {
		properties := e.Schema.Properties()
		if len(properties) == 0 && e.Schema.AllowsUnlisted() || slices.Contains(properties, arg) || arg == e.Content.Argument() {
			return "" // a tool that lists no arguments may take any
		}
		has = append(has, properties...)
	}
	if name == AnyTool {
		name = "any tool"
	}
	return fmt.Sprintf("%s has no argument %q%s", name, arg, didYouMean(arg, has))
}

func didYouMean(word string, known []string) string {
	if near := nearest.Find(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// whyNeverCounts returns the reason why a rule that allows a tool with these capabilities
// never counts. Nil: it can count. Below [TierConfined], a rule for a process counts only if
// it names the command.
func (r *Rule) whyNeverCounts(tier func() Tier, asked tool.Capabilities) tool.Hint {
	if asked.Exec == "" || r.Effect != Allow {
		return nil
	}
	if err := r.checkRemembered(asked.Exec); err != nil {
		return tool.Advise("it never counts: %v", err)
	}
	named := r.namesCommand(asked.Exec)
	switch {
	case named && !r.remembered() || tier() >= TierConfined:
		return nil
	case !named:
		return tool.Advise("it does not count in %s: below %s a rule that allows a process names the command, with %s=COMMAND or words:%s=COMMAND, and no other condition does that",
			tier(), TierConfined, asked.Exec, asked.Exec)
	}
	return tool.Advise("it does not count in %s: below %s only ", tier(), TierConfined).And(tool.ActionHint(tool.HintAllow, ""),
		tool.Advise(" answers for a process, for one run: "), tool.ActionHint(tool.HintAllow, fmt.Sprintf("%s(%s=COMMAND)", r.Tool, asked.Exec)))
}
