package match

import "testing"

func TestAProjectsRulesHaveAShare(t *testing.T) {
	w := NewWork()
	w.Begin(3, true)
	for w.take(MaxProjectWork / 10) {
	}
	if rule, out := w.ProjectExhausted(); !out || rule != 3 || w.left < MaxWork-MaxProjectWork {
		t.Errorf("%d units are left, rule %d took the most, %v", w.left, rule, out)
	}
	if _, out := w.Exhausted(); out {
		t.Error("a project's rules have used up the whole")
	}
	w.Begin(4, false)
	if !w.take(MaxWork - MaxProjectWork) {
		t.Error("the others have less than what a project leaves")
	}
	for w.take(1 << 20) {
	}
	if rule, out := w.Exhausted(); !out || rule != 4 {
		t.Errorf("rule %d took the most, %v", rule, out)
	}
}
