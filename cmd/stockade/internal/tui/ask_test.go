package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/prompt"
	"github.com/stockade-dev/stockade/host/diff"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// edit returns a question about an edit; warning may be empty.
func edit(warning string) *question {
	q := policy.Question{Call: tool.Call{Caller: tool.CallerAgent}, Tool: "file_edit", Reason: "it changes files", Warning: warning, Scopes: []policy.Scope{policy.ScopeOnce}}
	q.Changes = diff.New(context.Background(), nil, "/ws", nil)
	return &question{answer: make(chan prompt.Choice, 1), prompt: prompt.ForCall(prompt.Question{Question: q})}
}

// TestQuickFingers: a person presses y every 0.4 s while ten edits are asked about, one after
// the other, whatever the time between them. All are answered, by a key that came at least
// 250 ms after its question, and no y reaches the prompt.
func TestQuickFingers(t *testing.T) {
	const step = 10 * time.Millisecond
	for _, between := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond, 390 * time.Millisecond, time.Second, 1900 * time.Millisecond} {
		for offset := time.Duration(0); offset < 400*time.Millisecond; offset += 70 * time.Millisecond {
			t.Run(fmt.Sprint(between, offset), func(t *testing.T) {
				d := newDesk(80, 24)
				d.does("begin", "enter")
				begin := d.time
				next, answered := begin.Add(between), 0
				var q *question
				var shown, pressed time.Time
				for now := begin; answered < 10; now = now.Add(step) {
					if d.time = now; now.Sub(begin) > time.Minute { // the first question comes late, too
						t.Fatalf("%d of 10 are answered after a minute", answered)
					}
					if q == nil && !now.Before(next) {
						q, shown = edit(""), now
						d.tell(happened{q})
					}
					if now.Sub(begin)%(100*time.Millisecond) == 0 {
						d.tell(tick{})
					}
					if since := now.Sub(begin) - offset; since >= 0 && since%(400*time.Millisecond) == 0 {
						d.tell(tea.KeyPressMsg{Code: 'y', Text: "y"})
						pressed = now
					}
					if q != nil && len(q.answer) > 0 {
						if c := <-q.answer; c.Letter != 'y' || pressed.Sub(shown) < 250*time.Millisecond {
							t.Fatalf("%c answers, pressed %v after the question", c.Letter, pressed.Sub(shown))
						}
						q, next, answered = nil, now.Add(between), answered+1
					}
					if typed := d.m.o.Editor.Value(); typed != "" && (q != nil || answered > 0) {
						t.Fatalf("%q is in the prompt after %v", typed, now.Sub(begin))
					}
				}
				// It goes on a little after the last one, and once more alone.
				for range 3 {
					d.does("y")
					d.time = d.time.Add(400 * time.Millisecond)
					d.tell(tick{})
				}
				if typed := d.m.o.Editor.Value(); typed != "" {
					t.Errorf("%q is in the prompt at the end", typed)
				}
				d.time = d.time.Add(time.Minute)
				if d.does("y"); d.m.o.Editor.Value() != "y" {
					t.Error("a y that begins a prompt is lost")
				}
			})
		}
	}
}

func TestAKeyWithinTheGuardIsDropped(t *testing.T) {
	for name, c := range map[string]struct {
		does   []string
		answer string
		typed  string
	}{
		"alone":                                   {[]string{"ask", "y", "wait"}, "", ""},
		"alone, then in time":                     {[]string{"ask", "y", "wait", "y", "wait"}, "y", ""},
		"with Enter, from habit":                  {[]string{"ask", "y", "enter", "wait"}, "", ""},
		"held down":                               {[]string{"ask", "yyyyyyyyyyyy", "wait"}, "", ""},
		"held down, and then another":             {[]string{"ask", "yyyyyyyyyyyyn", "wait"}, "", ""},
		"held down beyond it":                     {[]string{"ask", "wait", "yyyyyyyyyyyy", "wait"}, "", ""},
		"the beginning of a word":                 {[]string{"ask", "yes but", "wait"}, "", "yes but"},
		"a doubled letter":                        {[]string{"ask", "nnoo", "wait"}, "", "nnoo"},
		"Enter for a draft that was there before": {[]string{"all of", "ask", "enter"}, "", "all of"},
		"a key before the question":               {[]string{"yy", "wait", "ask", "wait"}, "", ""},
		"a word that begins before":               {[]string{"n", "ask", "ever", "wait"}, "", "never"},
		"a word before it":                        {[]string{"yes", "wait", "ask", "wait"}, "", "yes"},
		"a key for the question before":           {[]string{"ask", "wait", "y", "ask again", "wait"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(80, 24)
			d.does("begin", "enter")
			for _, step := range c.does {
				if step == "ask again" { // the first question is withdrawn while its key is held
					d.m.closeQuestion(d.asked)
					step = "ask"
				}
				d.does(step)
			}
			answer := ""
			if len(d.asked.answer) > 0 {
				answer = string((<-d.asked.answer).Letter)
			}
			if typed := d.m.o.Editor.Value(); answer != c.answer || typed != c.typed {
				t.Errorf("the answer is %q, and %q is in the editor", answer, typed)
			}
		})
	}
}

func TestTheGuardIsShorterForTheSameAgain(t *testing.T) {
	after := func(first, second *question, wait time.Duration) bool {
		d := newDesk(80, 24)
		d.does("begin", "enter")
		d.tell(happened{first})
		d.does("wait", "y", "wait")
		d.tell(happened{second})
		d.time = d.time.Add(wait)
		d.does("y")
		d.time = d.time.Add(keyHold)
		d.tell(tick{})
		return len(second.answer) > 0
	}
	for name, c := range map[string]struct {
		first, second *question
		short         bool
	}{
		"the same tool":          {edit(""), edit(""), true},
		"a warning":              {edit(""), edit("look"), false},
		"a warning before":       {edit("look"), edit(""), false},
		"a question of our own":  {newDeskQuestion(), edit(""), false},
		"no call in the second":  {edit(""), newDeskQuestion(), false},
		"neither is about calls": {newDeskQuestion(), newDeskQuestion(), false},
	} {
		if got := after(c.first, c.second, sameAgainDelay); got != c.short {
			t.Errorf("%s: a key after %v counts: %v", name, sameAgainDelay, got)
		}
	}
	if after(edit(""), edit(""), sameAgainDelay-time.Millisecond) || !after(edit(""), edit("look"), answerDelay) {
		t.Error("the guards are other ones")
	}
}

func newDeskQuestion() *question {
	return &question{answer: make(chan prompt.Choice, 1), prompt: prompt.New("Keep it?", []prompt.Choice{{Letter: 'y', Label: "yes"}, {Letter: 'n', Label: "no"}},
		func() string { return "  one row" }, func() string { return "  more" })}
}

// TestANoWithAReason: [r] opens a line of its own; a draft in the editor stays where it is.
func TestANoWithAReason(t *testing.T) {
	for name, c := range map[string]struct {
		does    []string
		because string // reason of the answer; "-": there is no answer
		typed   string // is in the editor afterwards
		shows   string
	}{
		"the line opens":                      {[]string{"r", "wait"}, "-", "", "no, because: Enter sends it to the model, Esc goes back"},
		"Enter sends it":                      {[]string{"r", "wait", "use tabs", "enter"}, "use tabs", "", ""},
		"keys of answers are only text in it": {[]string{"r", "wait", "y", "wait", "n", "wait"}, "-", "", "> yn"},
		"an empty line sends nothing":         {[]string{"r", "wait", "enter", " ", "enter"}, "-", "", "no, because:"},
		"Esc goes back":                       {[]string{"r", "wait", "use", "esc"}, "-", "", "[y]1 yes"},
		"Esc goes back, and y answers":        {[]string{"r", "wait", "use", "esc", "wait", "y", "wait"}, "", "", ""},
		"a key at once after Esc is dropped":  {[]string{"r", "wait", "use", "esc", "y", "wait"}, "-", "", "[y]1 yes"},
		"what is pasted goes to the line":     {[]string{"r", "wait", "paste", "enter"}, "pasted", "", ""},
		"a word that begins with r":           {[]string{"really", "wait"}, "-", "really", "[y]1 yes"},
		"what was set aside is there again":   {[]string{"draft", "esc", "wait", "r", "wait", "so", "enter"}, "so", "draft", ""},
		"a question that ends keeps it":       {[]string{"r", "wait", "use tabs, and never to", "end", "uch vendor"}, "-", "use tabs, and never touch vendor", ""},
		"behind what was set aside":           {[]string{"draft", "esc", "wait", "r", "wait", "use", "end"}, "-", "draft\nuse", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(80, 24)
			d.does("begin", "enter")
			q := edit("")
			d.tell(happened{q})
			d.does("wait")
			for _, what := range c.does {
				if what == "end" {
					d.m.closeQuestion(q)
				} else {
					d.does(what)
				}
			}
			because := "-"
			if len(q.answer) > 0 {
				because = (<-q.answer).Policy().Because
			}
			if typed := d.m.o.Editor.Value(); because != c.because || typed != c.typed || !strings.Contains(d.sees(), c.shows) {
				t.Errorf("the reason is %q, %q is in the editor, and it shows\n%s", because, typed, d.sees())
			}
		})
	}
}

// TestAReasonWithoutAnEditor: a single turn has no line for prompts, but one for a reason.
func TestAReasonWithoutAnEditor(t *testing.T) {
	d := newDesk(80, 24)
	d.m.o.Editor = nil
	q := edit("")
	d.tell(happened{q})
	d.does("wait", "r", "wait", "so", "enter")
	if len(q.answer) == 0 || (<-q.answer).Policy().Because != "so" {
		t.Errorf("it shows\n%s", d.sees())
	}
}

// TestWhatSteersIsTaken: texts for the running turn are taken in their order, up to one that is
// not, and what was not taken yet comes back with Esc, the newest first.
func TestWhatSteersIsTaken(t *testing.T) {
	d := newDesk(80, 24)
	d.m.o.Steers = func(typed string) bool { return !strings.HasPrefix(typed, "/") }
	take := func() string { return strings.Join(d.m.takeQueued(), ",") }
	d.does("begin", "enter", "one", "enter")
	if got := take(); got != "" || !strings.Contains(d.sees(), "queued: one") {
		t.Errorf("taken is %q, before a turn has begun", got)
	}
	d.tell(happened{session.Event{Header: session.Header{Type: session.TypeTurnStarted, Turn: 1}, Body: []byte("{}")}})
	d.does("two", "enter", "/help", "enter", "three", "enter")
	if shown := d.sees(); !strings.Contains(shown, "for its next step (Esc takes it back): one") || !strings.Contains(shown, "queued: /help") {
		t.Errorf("it shows\n%s", shown)
	}
	if got := take(); got != "one,two" {
		t.Errorf("taken is %q", got)
	}
	if got := take(); got != "" {
		t.Errorf("taken is %q, behind a command", got)
	}
	d.does("esc")
	if got := d.m.o.Editor.Value(); got != "three" || len(d.m.queue) != 1 {
		t.Errorf("%q is in the editor, and %q is queued", got, d.m.queue)
	}
	d.does("esc") // the editor is not empty
	if len(d.m.queue) != 1 {
		t.Error("a second text came back")
	}
	d.does("ctrl+c") // stops the turn: everything comes back
	if got := d.m.o.Editor.Value(); got != "/help\nthree" {
		t.Errorf("%q is in the editor", got)
	}
	if got := take(); got != "" {
		t.Errorf("taken is %q", got)
	}
	d.does("done")
	d.m.queue = []string{"next"}
	if got := take(); got != "" || len(d.m.queue) != 1 {
		t.Errorf("taken is %q when nothing runs", got)
	}
}
