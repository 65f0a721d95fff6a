package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/editor"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/prompt"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/transcript"
	"github.com/stockade-dev/stockade/host/session"
)

// desk is a model with a person in front. Time passes only on request.
type desk struct {
	m       *model
	time    time.Time
	above   []string // rows that have scrolled away
	stopped int
	mode    int // how often the mode was changed
	asked   *question
}

func newDesk(width, height int) *desk {
	d := &desk{time: time.Unix(1e9, 0)}
	d.m = newModel(Options{
		Editor: editor.New(editor.Options{}), Transcript: transcript.New(transcript.Options{Live: true, Columns: func() int { return width }}),
		Stop: func() { d.stopped++ }, LeaveHint: func() string { return "come back" },
		NextMode: func() { d.mode++ }, Mode: func() string { return strings.Repeat("another mode", d.mode%2) },
	})
	d.m.now = func() time.Time { return d.time }
	d.m.scroll = func(rows string) tea.Cmd {
		d.above = append(d.above, strings.Split(rows, "\n")...)
		return nil
	}
	d.m.Init()
	d.tell(tea.WindowSizeMsg{Width: width, Height: height})
	return d
}

// tell has the model take messages, and brings to the screen what they print.
func (d *desk) tell(msgs ...tea.Msg) {
	for _, msg := range msgs {
		d.m.Update(msg)
		for d.m.flushing {
			d.m.View()
			d.m.Update(flushed{})
		}
	}
}

// sees is all that is on the screen, above and below.
func (d *desk) sees() string {
	return ansi.Strip(strings.Join(append(d.above, d.m.View().Content), "\n"))
}

var named = map[string]tea.KeyPressMsg{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+d": {Code: 'd', Mod: tea.ModCtrl},
	"ctrl+z": {Code: 'z', Mod: tea.ModCtrl}, "shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift},
}

// does performs actions of the person: a key by its name, typed text, or "wait".
func (d *desk) does(steps ...string) {
	for _, step := range steps {
		switch key, isKey := named[step]; {
		case isKey:
			d.tell(key)
		case step == "wait":
			d.time = d.time.Add(answerDelay)
			d.tell(tick{})
		case step == "ask":
			d.asked = &question{answer: make(chan prompt.Choice, 1), prompt: prompt.New("Keep it?", []prompt.Choice{{Letter: 'y', Label: "yes"}, {Letter: 'n', Label: "no"}},
				func() string { return "  one row" }, func() string { return "  more" })}
			d.tell(happened{d.asked})
		case step == "paste":
			d.tell(tea.PasteMsg{Content: "pasted"})
		case step == "done":
			d.tell(happened{lineDone{}})
		case step == "failed":
			d.tell(happened{lineDone{failed: true}})
		default:
			for _, r := range step {
				d.tell(tea.KeyPressMsg{Code: r, Text: string(r)})
			}
		}
	}
}

func TestKeysAnswerWhatWasSeen(t *testing.T) {
	for name, tt := range map[string]struct {
		does   []string
		answer string // letter; empty: none
		typed  string // is in the editor afterwards
	}{
		"a letter":                    {[]string{"ask", "wait", "y", "wait"}, "y", ""},
		"a letter and Enter":          {[]string{"ask", "wait", "y", "enter"}, "y", ""},
		"the first letter of a word":  {[]string{"ask", "wait", "yell", "wait"}, "", "yell"},
		"a letter and a paste":        {[]string{"ask", "wait", "y", "paste", "wait"}, "", "pasted"},
		"a letter, a paste and Enter": {[]string{"ask", "wait", "y", "paste", "enter"}, "", ""},
		"a word after a pause":        {[]string{"ask", "wait", "x", "wait", "no way", "wait"}, "", "no way"},
		"a digit":                     {[]string{"ask", "wait", "2", "wait"}, "n", ""},
		"Enter alone":                 {[]string{"ask", "wait", "enter"}, "", ""},
		"a key that is none":          {[]string{"ask", "wait", "x"}, "", ""},
		"a key before the question can have been seen":      {[]string{"ask", "y"}, "", ""},
		"a word that was begun before":                      {[]string{"tr", "ask", "wait", "y"}, "", "try"},
		"a word that is begun as it comes":                  {[]string{"ask", "tr", "wait", "y"}, "", "try"},
		"what was typed is sent first":                      {[]string{"go on", "ask", "wait", "enter", "wait", "y", "wait"}, "y", ""},
		"a key at once after what was typed is sent":        {[]string{"go on", "ask", "wait", "enter", "y"}, "", ""},
		"what was typed is set aside, and is there again":   {[]string{"go on", "ask", "wait", "esc", "wait", "n", "wait"}, "n", "go on"},
		"a key at once after what was typed is set aside":   {[]string{"go on", "ask", "esc", "y"}, "", ""},
		"what was set aside stays so for the next question": {[]string{"go on", "ask", "wait", "esc", "wait", "n", "wait", "ask", "wait", "y", "wait"}, "y", "go on"},
		"what somebody has gone on with does not":           {[]string{"go on", "ask", "wait", "esc", "wait", "n", "wait", "!", "ask", "wait", "y"}, "", "go on!y"},
		"more is shown, and the question stays":             {[]string{"ask", "wait", "?"}, "", ""},
		"an answer after more was shown":                    {[]string{"ask", "wait", "?", "wait", "y", "wait"}, "y", ""},
		"what is pasted after more was shown goes on":       {[]string{"ask", "wait", "?", "wait", "paste", "y"}, "", "pastedy"},
		"a key at once after more was shown":                {[]string{"ask", "wait", "?", "y"}, "", ""},
		"another key at once after more was shown":          {[]string{"ask", "wait", "?", "u", "wait", "y", "wait"}, "y", ""},
		"another mode is no answer":                         {[]string{"ask", "wait", "shift+tab", "wait"}, "", ""},
		"another mode at once after an answer":              {[]string{"ask", "wait", "y", "shift+tab", "wait"}, "", ""},
		"an answer after another mode":                      {[]string{"ask", "wait", "shift+tab", "y", "wait"}, "y", ""},
		"a stop is no answer, and what was typed is there":  {[]string{"go on", "ask", "wait", "ctrl+c"}, "", "go on"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(80, 24)
			d.does("begin", "enter")
			d.does(tt.does...)
			answer := ""
			select {
			case c := <-d.asked.answer:
				answer = string(c.Letter)
			default:
			}
			if typed := d.m.o.Editor.Value(); answer != tt.answer || typed != tt.typed {
				t.Errorf("the answer is %q, and %q stands in the editor", answer, typed)
			}
			if shown := strings.Contains(d.sees(), "Keep it?"); shown != (tt.answer == "") {
				t.Errorf("the question is shown: %v", shown)
			}
		})
	}
}

func TestTheModeIsShown(t *testing.T) {
	d := newDesk(80, 24)
	if d.does("half a prompt", "shift+tab"); d.mode != 1 || !strings.Contains(d.sees(), "another mode") || d.m.o.Editor.Value() != "half a prompt" {
		t.Errorf("changed %d times:\n%s", d.mode, d.sees())
	}
	if d.does("shift+tab"); strings.Contains(d.sees(), "another mode") {
		t.Errorf("the usual mode is shown:\n%s", d.sees())
	}
}

func TestWhatIsTypedMeanwhileWaits(t *testing.T) {
	d := newDesk(80, 24)
	d.does("first", "enter", "second", "enter", "third", "enter")
	if got := <-d.m.typed; got != "first" {
		t.Errorf("carried out is %q", got)
	}
	if !strings.Contains(d.sees(), "> first") || !strings.Contains(d.sees(), "queued: second") || strings.Contains(d.sees(), "> second") {
		t.Errorf("it shows\n%s", d.sees())
	}
	d.does("done")
	if got := <-d.m.typed; got != "second" {
		t.Errorf("carried out is %q", got)
	}
	d.does("ctrl+d")
	if !strings.Contains(d.sees(), "Ctrl-C stops it; Ctrl-D leaves") || d.m.leaving {
		t.Errorf("Ctrl-D shows\n%s", d.sees())
	}
	d.does("a draft", "ctrl+c", "ctrl+c")
	if got := d.m.o.Editor.Value(); d.stopped != 1 || got != "third\na draft" {
		t.Errorf("stopped %d times, %q stands in the editor", d.stopped, got)
	}
	d.time = d.time.Add(doublePress)
	if !strings.Contains(d.sees(), "It is being stopped. Ctrl-C again") || strings.Contains(d.sees(), "Ctrl-D") {
		t.Errorf("it shows\n%s", d.sees())
	}
	d.does("ctrl+c")
	if d.stopped != 2 {
		t.Errorf("Ctrl-C that is meant stops %d times", d.stopped)
	}
	d.does("done", "ctrl+c")
	if !d.m.o.Editor.Empty() || d.m.leaving {
		t.Error("Ctrl-C does not clear what is typed")
	}
	d.does("ctrl+c")
	if !strings.Contains(d.sees(), "Ctrl-C again leaves. come back") || d.m.leaving {
		t.Errorf("it shows\n%s", d.sees())
	}
	d.does("x", "ctrl+c", "ctrl+c") // another key between
	if d.m.leaving {
		t.Error("it leaves after something else was typed")
	}
	d.does("ctrl+c")
	if !d.m.leaving || !strings.HasSuffix(strings.TrimSpace(d.sees()), "come back") {
		t.Errorf("it stays, and shows\n%s", d.sees())
	}
	d.does("ctrl+c", "x", "ctrl+d")
	if n := strings.Count(d.sees(), "come back"); n != 1 {
		t.Errorf("how to come back is said %d times", n)
	}
}

func TestWhatWaitsForSomethingThatFailsIsGivenBack(t *testing.T) {
	d := newDesk(80, 24)
	d.does("first", "enter", "second", "enter", "a draft", "failed")
	if got := d.m.o.Editor.Value(); got != "second\na draft" || d.m.busy {
		t.Errorf("%q stands in the editor", got)
	}
}

func TestNothingThatMovesIsLeftToTheShell(t *testing.T) {
	d := newDesk(80, 24)
	d.does("begin", "enter", "a draft", "ask", "ctrl+z")
	if v := d.m.View(); v.Content != "" || v.Cursor != nil {
		t.Errorf("it leaves\n%s", v.Content)
	}
	d.tell(tea.SuspendMsg{})
	if shown := d.m.View().Content; !strings.Contains(shown, "Keep it?") || !strings.Contains(shown, "a draft") {
		t.Errorf("back again, it shows\n%s", shown)
	}
}

// TestNothingIsLargerThanTheTerminal: the moving part is never as high as the terminal,
// and scrolled rows come complete and in order. Otherwise the renderer would leave rows
// behind.
func TestNothingIsLargerThanTheTerminal(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}, {20, 5}, {10, 3}, {4, 2}} {
		d := newDesk(size[0], size[1])
		var want []string
		check := func() {
			t.Helper()
			rows := strings.Split(d.m.View().Content, "\n")
			if len(rows) > max(size[1]-1, 1) {
				t.Errorf("%v: %d rows are drawn", size, len(rows))
			}
			for _, row := range rows {
				if ansi.StringWidth(row) > size[0] {
					t.Errorf("%v: a row is %d wide: %q", size, ansi.StringWidth(row), row)
				}
			}
		}
		d.does("begin", "enter")
		check()
		for i := range 50 {
			d.tell(happened{session.Event{Header: session.Header{Type: session.TypeDelta}, Body: fmt.Appendf(nil, `{"text":"word %d 世界 **bold** "}`, i)}})
			check()
		}
		d.does("queued", "enter", "more", "enter", "ask", "wait", "?", "draft")
		check()
		for i := range 200 {
			want = append(want, fmt.Sprint(i))
		}
		before := len(d.above)
		d.tell(happened{textLines(strings.Join(want, "\n"))})
		check()
		all := strings.Join(d.above[before:], "")
		for _, row := range d.above {
			if !utf8.ValidString(row) || ansi.StringWidth(row) > size[0] {
				t.Errorf("%v: the row %q", size, row)
			}
		}
		if !strings.HasSuffix(strings.ReplaceAll(all, " ", ""), strings.Join(want, "")) {
			t.Errorf("%v: rows are missing or in another order: %s", size, all)
		}
	}
}

// TestAnAnswerIsLowWhileTheTerminalShrinks: rows that do not fit into a shrinking
// terminal stay above it for good.
func TestAnAnswerIsLowWhileTheTerminalShrinks(t *testing.T) {
	d := newDesk(80, 24)
	d.does("begin", "enter")
	d.tell(happened{session.Event{Header: session.Header{Type: session.TypeDelta}, Body: fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("word ", 200))}})
	words := func() int { return strings.Count(d.m.View().Content, "word") }
	if n := words(); n != 200 {
		t.Errorf("before, %d words are there", n)
	}
	d.tell(tea.WindowSizeMsg{Width: 81, Height: 24})
	if n := words(); n != 200 {
		t.Errorf("in a larger terminal, %d words are there", n)
	}
	d.tell(tea.WindowSizeMsg{Width: 70, Height: 24})
	if n := words(); n > maxShrinkingRows*70/len("word ") {
		t.Errorf("while it shrinks, %d words are there", n)
	}
	d.time = d.time.Add(resizeDelay)
	if n := words(); n != 200 {
		t.Errorf("afterwards, %d words are there", n)
	}
}

// TestRowsLeaveRoomForWhatIsNotDrawnAnewYet: the renderer draws late. Until then, rows
// that scroll away leave room for the rows that are still on the screen.
func TestRowsLeaveRoomForWhatIsNotDrawnAnewYet(t *testing.T) {
	d := newDesk(80, 24)
	var draws int64
	d.m.region.draws = func() int64 { return draws }
	var took []int // rows at a time
	scroll := d.m.scroll
	d.m.scroll = func(rows string) tea.Cmd {
		took = append(took, strings.Count(rows, "\n")+1)
		return scroll(rows)
	}
	d.does("begin", "enter")
	d.asked = &question{answer: make(chan prompt.Choice, 1), prompt: prompt.New("Keep it?", []prompt.Choice{{Letter: 'y', Label: "yes"}},
		func() string { return strings.Repeat("  a row\n", 15) }, func() string { return "" })}
	d.tell(happened{d.asked})
	draws++
	high := len(strings.Split(d.m.View().Content, "\n"))
	d.does("wait", "y", "wait")
	took = nil
	many := textLines(strings.Repeat(strings.Repeat("more", 30)+"\n", 40)) // each is broken
	d.tell(happened{many})
	if most := slices.Max(took); high < 15 || high+most > 24 {
		t.Errorf("%d rows are shown at once above %d that stand there", most, high)
	}
	draws++ // may still have been what the renderer had then
	d.tell(tick{})
	draws++
	d.tell(tick{})
	took = nil
	d.tell(happened{many})
	if most := slices.Max(took); most < 15 {
		t.Errorf("%d rows are shown at once at most, when the screen is drawn anew", most)
	}
}

// TestAQuestionOnFewRowsNamesWhatItIsAbout: the subject of a question is the last thing
// to be left out.
func TestAQuestionOnFewRowsNamesWhatItIsAbout(t *testing.T) {
	for _, height := range []int{7, 8, 10, 12, 24} {
		d := newDesk(80, height)
		d.does("begin", "enter")
		d.tell(happened{&question{answer: make(chan prompt.Choice, 1), prompt: prompt.New("Keep it?", []prompt.Choice{{Letter: 'y', Label: "yes"}},
			func() string { return "  file_edit notes.md\n" + strings.Repeat("  a row\n", 9) }, func() string { return "" })}})
		shown := ansi.Strip(d.m.View().Content)
		if !strings.Contains(shown, "file_edit notes.md") || !strings.Contains(shown, "[y]1") {
			t.Errorf("on %d rows it shows\n%s", height, shown)
		}
		if whole := strings.Count(shown, "a row") == 9; whole == strings.Contains(shown, "too few rows") {
			t.Errorf("on %d rows it does not say whether that is all:\n%s", height, shown)
		}
	}
}
