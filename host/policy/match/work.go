package match

// Limits of the work of one decision, in units of at most about 10 ns. Work is counted
// and not timed, so that a decision is the same on every machine. The rules of a
// project's file may come from strangers, and get a smaller share.
const (
	MaxWork        = 64 << 20
	MaxProjectWork = 16 << 20
)

// Work is the account of one decision. Without enough units, the result of a condition is
// Unsure. If the project's share is used up, its rules therefore ask. If the whole account is
// used up, even the administrator's rules are unknown, and no answer may replace them: the
// call is denied.
type Work struct {
	left, projectLeft           int     // remaining units, of all and of the project's share
	rule                        int     // position of the rule that is being checked; noRule: none
	project                     bool    // set if this rule is a project's
	asked                       int     // units that this rule has asked for
	costliest, costliestProject spender // rules with the most units: not of the project, of the project
	exhausted, projectExhausted bool    // set if units were refused
}

// spender is a rule and the units that it asked for.
type spender struct{ rule, units int }

const noRule = -1

// NewWork returns a full account.
func NewWork() *Work {
	return &Work{left: MaxWork, projectLeft: MaxProjectWork, rule: noRule, costliest: spender{rule: noRule}, costliestProject: spender{rule: noRule}}
}

// Begin charges the units from now on to a rule. project is set for a project's rule.
func (w *Work) Begin(rule int, project bool) { w.rule, w.project, w.asked = rule, project, 0 }

// End charges the units from now on to no rule.
func (w *Work) End() { w.Begin(noRule, false) }

// take takes units. It reports whether there were enough; if not, it takes none.
func (w *Work) take(units int) bool {
	costliest := &w.costliest
	if w.project {
		costliest = &w.costliestProject
	}
	if w.asked += units; w.rule != noRule && w.asked > costliest.units {
		*costliest = spender{w.rule, w.asked}
	}
	switch {
	case w.project && units > w.projectLeft:
		w.projectExhausted = true
		return false
	case units > w.left:
		w.exhausted = true
		return false
	case w.project:
		w.projectLeft -= units
	}
	w.left -= units
	return true
}

// Exhausted reports whether the account was too small, and returns the rule that asked for the
// most units; -1: none.
func (w *Work) Exhausted() (rule int, out bool) {
	if w.costliestProject.units > w.costliest.units {
		return w.costliestProject.rule, w.exhausted
	}
	return w.costliest.rule, w.exhausted
}

// ProjectExhausted is [Work.Exhausted] for the share of a project's rules.
func (w *Work) ProjectExhausted() (rule int, out bool) {
	return w.costliestProject.rule, w.projectExhausted
}

// cost returns the units for comparing one value, at most.
func (c *Condition) cost(v *value) int {
	n := len(v.text)
	switch {
	case c.kind == Pattern && n <= maxMatched:
		return (n + 1) * c.steps
	case c.kind == Path:
		return 1 + n/4 + (n+1)*(len(c.value)+1)/4
	case c.kind == Words && !v.didLine:
		return 1 + n*64
	case c.kind == Words:
		return 1 + len(v.line.Commands)*len(c.words.Words())
	}
	return 1 + n/8 + len(c.oneOf)
}
