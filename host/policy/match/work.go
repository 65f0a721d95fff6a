package match

// What holding rules against one call may take, in units of about 10 ns at
// worst. It is counted, and not timed, so that a decision is the same on every
// machine. The rules of a project's file can be anybody's, and get a smaller
// share.
const (
	MaxWork        = 64 << 20
	MaxProjectWork = 16 << 20
)

// Work is the account of one decision. What cannot be paid for is not known: a
// project's rule of which it is not known whether it speaks asks, like any other
// of which that cannot be told. Where the whole is used up, nobody knows what the
// administrator's rules say, and no answer may stand in for them: that denies.
type Work struct {
	left, projectLeft           int
	rule                        int  // that is held against the call now; noRule: none
	project                     bool // it is a project's
	asked                       int  // units that it asked for
	most, mostProject           spender
	exhausted, projectExhausted bool
}

// spender is the rule that asked for the most.
type spender struct{ rule, units int }

const noRule = -1

// NewWork returns an account of which nothing is used up.
func NewWork() *Work {
	return &Work{left: MaxWork, projectLeft: MaxProjectWork, rule: noRule, most: spender{rule: noRule}, mostProject: spender{rule: noRule}}
}

// Begin says for which rule units are taken from now on, and whether it is a
// project's.
func (w *Work) Begin(rule int, project bool) { w.rule, w.project, w.asked = rule, project, 0 }

// End says that units are taken for no rule from now on.
func (w *Work) End() { w.Begin(noRule, false) }

// take reports whether so many units could be taken.
func (w *Work) take(units int) bool {
	most := &w.most
	if w.project {
		most = &w.mostProject
	}
	if w.asked += units; w.rule != noRule && w.asked > most.units {
		*most = spender{w.rule, w.asked}
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

// Exhausted reports whether units were asked for that were not left, and the rule that
// asked for the most.
func (w *Work) Exhausted() (rule int, out bool) {
	if w.mostProject.units > w.most.units {
		return w.mostProject.rule, w.exhausted
	}
	return w.most.rule, w.exhausted
}

// ProjectExhausted is Out for the share of a project's rules.
func (w *Work) ProjectExhausted() (rule int, out bool) { return w.mostProject.rule, w.projectExhausted }

// cost is what it takes to compare one value, at worst.
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
