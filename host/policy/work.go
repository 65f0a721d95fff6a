package policy

import "fmt"

// What holding rules against one call may take, in units of about 10 ns at
// worst. It is counted, and not timed, so that a decision is the same on every
// machine. The rules of a project's file can be anybody's, and get a smaller
// share.
const (
	maxWork        = 64 << 20
	maxProjectWork = 16 << 20
)

// work is the account of one decision. What cannot be paid for is not known: a
// project's rule of which it is not known whether it speaks asks, like any other
// of which that cannot be told. Where the whole is used up, nobody knows what the
// administrator's rules say, and no answer may stand in for them: that denies.
type work struct {
	left, projectLeft int
	rule              *Rule // that is held against the call now; nil: none
	asked             int   // units that it asked for
	most, mostProject spender
	out, projectOut   bool
}

// spender is the rule that asked for the most.
type spender struct {
	rule  *Rule
	units int
}

func newWork() *work { return &work{left: maxWork, projectLeft: maxProjectWork} }

// begin says for which rule units are taken from now on.
func (w *work) begin(r *Rule) { w.rule, w.asked = r, 0 }

// take reports whether so many units could be taken.
func (w *work) take(units int) bool {
	most, project := &w.most, w.rule != nil && w.rule.Source == SourceProject
	if project {
		most = &w.mostProject
	}
	if w.asked += units; w.rule != nil && w.asked > most.units {
		*most = spender{w.rule, w.asked}
	}
	switch {
	case project && units > w.projectLeft:
		w.projectOut = true
		return false
	case units > w.left:
		w.out = true
		return false
	case project:
		w.projectLeft -= units
	}
	w.left -= units
	return true
}

// top is the rule that asked for the most of all.
func (w *work) top() spender {
	if w.mostProject.units > w.most.units {
		return w.mostProject
	}
	return w.most
}

func (s spender) String() string {
	return fmt.Sprintf("most for the %s rule %.300q (%s)", s.rule.Source, s.rule, s.rule.Origin)
}

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
