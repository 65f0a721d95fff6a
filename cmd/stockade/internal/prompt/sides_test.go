package prompt

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// TestTheKindsOfNo: each is offered where it means something, and allows nothing.
func TestTheKindsOfNo(t *testing.T) {
	edited := question("file_edit")
	staged := bash(created("a", "x")).Question
	unchanged := bash().Question
	failed := bash(created("a", "x")).Question
	failed.Failed = true
	unasked := policy.Question{Tool: "bash", Command: "ls", Reason: "it starts a process", Scopes: []policy.Scope{policy.ScopeOnce}}
	inStep := question("file_edit")
	inStep.CallsAfter = 2
	histories := policy.Question{Histories: []policy.History{{Repository: "/ws/.git"}}, Scopes: []policy.Scope{policy.ScopeOnce}}
	for name, c := range map[string]struct {
		q    policy.Question
		keys string
	}{
		"an edit":                        {edited, "r"},
		"a command that has changed":     {staged, "rx"},
		"a command that has not":         {unchanged, "r"},
		"a command that has failed":      {failed, "r"},
		"a command that has not run":     {unasked, "r"},
		"a call with others behind it":   {inStep, "rq"},
		"a call of a person":             {staged, "x"},
		"what commands read of the past": {histories, ""},
	} {
		if name != "a call of a person" {
			c.q.Call.Caller = tool.CallerAgent
		}
		p := ForCall(Question{Question: c.q})
		for _, key := range "rxq" {
			choice, ok := p.Answer(View{}, string(key))
			if ok != strings.ContainsRune(c.keys, key) {
				t.Errorf("%s: %c is offered: %v", name, key, ok)
			}
			if a := choice.Policy(); ok && (a.Allow || a.Scope != "" || a.OutputOnly != (key == 'x') || a.RestOfStep != (key == 'q')) {
				t.Errorf("%s: %c is %+v", name, key, a)
			}
			if shown := strings.Contains(lines(p.Keys(View{})), fmt.Sprintf("[%c]", key)); shown != ok {
				t.Errorf("%s: %c is shown: %v", name, key, shown)
			}
		}
	}
	// On a low screen, the keys take one row, and "?" explains them.
	staged.Call.Caller = tool.CallerAgent
	p := ForCall(Question{Question: staged})
	if keys := p.Keys(View{Height: 14}); len(keys) != 1 || !strings.Contains(keys[0], "[r]  [x]") {
		t.Errorf("on 14 rows the keys are\n%s", lines(keys))
	}
	if more := lines(p.Expand(View{}, Choice{Letter: keyDetails, shows: true})); !strings.Contains(more, "[x] only its output: its changes are dropped, and what it has written is") {
		t.Errorf("more is\n%s", more)
	}
}

func TestAReasonForANoOnALine(t *testing.T) {
	for name, c := range map[string]struct {
		typed   []string
		because string
		shows   string
	}{
		"a reason":             {[]string{"r", " use tabs "}, "use tabs", "  no, because: "},
		"none, and a plain no": {[]string{"r", "", "n"}, "", "Keep these changes?"},
		"too long a reason":    {[]string{"r", strings.Repeat("x", maxReasonBytes+1), "r", "short"}, "short", ""},
		"an answer in it":      {[]string{"r", "y"}, "y", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &person{}
			w := asks(t.Context(), desk(p), question("one"))
			p.sees()
			shown := ""
			for _, typed := range c.typed {
				p.typed <- typed
				shown += p.sees()
			}
			if !w.done || w.err != nil || w.answer.Allow || w.answer.Because != c.because || !strings.Contains(shown, c.shows) {
				t.Errorf("%s: %+v, and it shows\n%s", name, w, shown)
			}
		})
	}
}

// TestKeysTakeTwoRows: with all answers of the first row but one to a whole step, and each key
// keeps its digit.
func TestKeysTakeTwoRows(t *testing.T) {
	q := bash(created("a", "x"))
	q.Call.Caller, q.CoversLikeCommands = tool.CallerAgent, true
	q.Scopes = []policy.Scope{policy.ScopeOnce, policy.ScopeSession, policy.ScopeFree}
	p := ForCall(q)
	want := "  Keep these changes?  [y]1  [n]3  [r] no, because  [x] only its output\n" +
		"    this session: [s]2 commands like this  [w] all changes below ./  [?]\n"
	if keys := lines(p.Keys(View{})); keys != want {
		t.Errorf("the keys are\n%s", keys)
	}
	if text := p.InvalidAnswer(View{}); text != "  That is not an answer: type y, s, w, n, r or x; ? shows more." {
		t.Errorf("after another key it says %q", text)
	}
	for typed, scope := range map[string]policy.Scope{"1": policy.ScopeOnce, "2": policy.ScopeSession, "w": policy.ScopeFree, "3": ""} {
		if c, ok := p.Answer(View{}, typed); !ok || c.Policy().Scope != scope {
			t.Errorf("%s is %+v, %v", typed, c, ok)
		}
	}
	for width := range 200 {
		keys := p.Keys(View{Width: width})
		if width >= 80 && len(keys) > 2 {
			t.Errorf("in %d columns the keys are\n%s", width, lines(keys))
		}
		for _, row := range keys {
			if width > 20 && terminal.Width(row) >= width {
				t.Errorf("in %d columns a row is %q", width, row)
			}
		}
	}
	q.Tool, q.Command, q.CallsAfter = "file_write", "", 1
	if keys := ForCall(q).Keys(View{}); len(keys) != 2 {
		t.Errorf("with [q] the keys are\n%s", lines(keys))
	}
}

// TestCallsOfAStepThatWereTried are asked about together if all of each is on the screen, and
// otherwise each by itself, later.
func TestCallsOfAStepThatWereTried(t *testing.T) {
	tried := func(name string, rows int) policy.Question {
		numbers := func(n int) (text string) {
			for i := range n {
				text += fmt.Sprintf("%d\n", i)
			}
			return text
		}
		q := question(name)
		q.Tried, q.Changes = true, set(created(name+".txt", numbers(rows)))
		return q
	}
	for name, c := range map[string]struct {
		rows       int
		answer     string // empty: nobody is asked
		separately bool
		allow      bool
	}{
		"yes":         {1, "y", false, true},
		"no":          {1, "n", false, false},
		"one by one":  {1, "e", true, false},
		"a long text": {60, "", true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &person{}
			u := desk(p)
			var waits []func() (policy.Answer, error)
			for _, name := range []string{"one", "two"} {
				waits = append(waits, u.Approve(t.Context(), tried(name, c.rows)))
			}
			results := make([]*waiting, len(waits))
			for i, wait := range waits {
				results[i] = &waiting{}
				go func() {
					results[i].answer, results[i].err = wait()
					results[i].done = true
				}()
			}
			shown := p.sees()
			if asked := strings.Contains(shown, "2 calls wait"); asked != (c.answer != "") {
				t.Errorf("%s: it shows\n%s", name, shown)
			}
			if c.answer != "" {
				p.typed <- c.answer
			}
			synctest.Wait()
			for i, r := range results {
				if !r.done || errors.Is(r.err, errSeparately) != c.separately || r.answer.Allow != c.allow {
					t.Errorf("%s: call %d: %+v", name, i+1, r)
				}
			}
		})
	}
}

// TestAReasonForANoToAll reaches the model once.
func TestAReasonForANoToAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &person{}
		calls, _ := batched(t, desk(p), p, question("one"), question("two"))
		p.typed <- "r"
		p.typed <- "neither"
		synctest.Wait()
		if !calls[0].done || !calls[1].done || calls[0].answer.Allow || calls[0].answer.Because != "neither" || calls[1].answer.Because != "" {
			t.Errorf("%+v, %+v", calls[0], calls[1])
		}
	})
}
