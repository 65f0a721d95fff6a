package terminal

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal/terminaltest"
	"github.com/stockade-dev/stockade/host/visible"
)

func TestNothingIsPrintedWhileAQuestionIsOpen(t *testing.T) {
	var s Screen
	var shown []string
	show := func(text string) { s.Show(func() { shown = append(shown, text) }) }
	show("before")
	done := s.Hold()
	show("first")
	show("second")
	if !slices.Equal(shown, []string{"before"}) {
		t.Errorf("while the question was open it showed %q", shown)
	}
	done()
	show("after")
	if want := []string{"before", "first", "second", "after"}; !slices.Equal(shown, want) {
		t.Errorf("showed %q, want %q", shown, want)
	}
}

func TestAnAnswerFromBeforeTheQuestionDoesNotCount(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	lines := NewLines(r)
	fmt.Fprint(w, "prompt\ny\ny\n")
	if got, err := lines.Next(t.Context()); got != "prompt" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	moment := lines.Discard()
	answered := make(chan string)
	go func() {
		got, _ := lines.After(t.Context(), moment)
		answered <- got
	}()
	fmt.Fprint(w, "n\n")
	if got := <-answered; got != "n" {
		t.Errorf("the answer was %q", got)
	}
}

func TestVisibleLeavesTextAlone(t *testing.T) {
	for _, text := range []string{
		"plain", "two\nlines\tand a tab", "Grüße, 世界, αβγ, مرحبا, 😀", "`$(x)` \\n", "Vie\u0323\u0302t", "\u26a0\ufe0f careful", "नमस्ते",
	} {
		if got := Visible(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestVisibleShowsWhatHides(t *testing.T) {
	for _, v := range terminaltest.Vectors() {
		e := &terminaltest.Emulator{Columns: 1 << 20}
		fmt.Fprint(e, Visible(v.Text))
		if e.Acts != nil {
			t.Errorf("%s: it did %q", v.Name, e.Acts)
		}
		// In pieces, it is the same.
		var s Escaper
		var pieces strings.Builder
		for rest := v.Text; rest != ""; {
			_, n := utf8.DecodeRuneInString(rest)
			pieces.WriteString(s.Visible(rest[:n]))
			rest = rest[n:]
		}
		if pieces.String() != Visible(v.Text) {
			t.Errorf("%s: in pieces it is %q", v.Name, pieces.String())
		}
	}
}

func TestPipedShowsWhatActs(t *testing.T) {
	for text, want := range map[string]string{
		"a\x1b]0;t\x07\x1b[2Jb":         "a<U+001B>]0;t<U+0007><U+001B>[2Jb",
		"\u009b2J \x9b2J":               "<U+009B>2J <0x9B>2J",
		"a\u202eb\u2066c\u200fd\u061ce": "a<U+202E>b<U+2066>c<U+200F>d<U+061C>e",
		"a\rb\r\nc\td\x00\x7f\r":        "a<U+000D>b\r\nc\td<U+0000><U+007F><U+000D>",
		"1\u00a0000\u3000\ufeffnaïve 👨\u200d👩\u200d👧 \u26a0\ufe0f": "1\u00a0000\u3000\ufeffnaïve 👨\u200d👩\u200d👧 \u26a0\ufe0f",
		"مرحبا नमस्ते \ufffd":                                      "مرحبا नमस्ते \ufffd",
	} {
		if got := EscapeControls(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestRowsFit(t *testing.T) {
	for _, v := range terminaltest.Vectors() {
		for _, columns := range []int{2, 3, 7, 80} {
			line := strings.NewReplacer("\n", "", "\t", "").Replace(Visible(v.Text))
			rows := Rows(line, columns)
			if strings.Join(rows, "") != line {
				t.Errorf("%s: the rows are not the line", v.Name)
			}
			if columns < 6 {
				continue // a character with two marks may take more
			}
			e := &terminaltest.Emulator{Columns: columns, Wide: true}
			fmt.Fprint(e, strings.Join(rows, "\n"))
			if slices.ContainsFunc(e.Rows(), func(r terminaltest.Row) bool { return r.Wrapped }) || e.Acts != nil {
				t.Errorf("%s: in %d columns: %q", v.Name, columns, e.Acts)
			}
		}
	}
}

func TestJSONIsOneLineAndTheSame(t *testing.T) {
	for _, v := range terminaltest.Vectors() {
		plain, err := json.Marshal(v.Text)
		if err != nil {
			t.Fatal(err)
		}
		raw := []byte(`"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(v.Text) + `"`)
		for _, in := range [][]byte{plain, raw} {
			var want, got string
			if json.Unmarshal(in, &want) != nil {
				continue // control characters that JSON does not hold as they are
			}
			out := visible.EscapeJSON(in)
			if err := json.Unmarshal(out, &got); err != nil || got != want {
				t.Errorf("%s: %q became %q (%v)", v.Name, want, got, err)
			}
			if i := strings.IndexFunc(string(out), visible.IsHidden); i >= 0 || !utf8.Valid(out) {
				t.Errorf("%s: %q holds what does not show", v.Name, out)
			}
		}
	}
	if got := string(visible.EscapeJSON([]byte("{\r\n\"a\":\"\u2028\U000e0041\x9b\"}\n"))); got != "{ \n"+`"a":"\u2028\udb40\udc41\ufffd"}`+"\n" {
		t.Errorf("got %s", got)
	}
}
