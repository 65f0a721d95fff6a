package tui

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/editor"
)

// typist sends pieces to keys as a terminal does, and writes down what bubbletea and the
// program are told: keys by their names, and pastes in brackets.
type typist struct {
	testing.TB
	*keyReader
	piece string
	told  []string
}

func newTypist(t testing.TB) *typist {
	ty := &typist{TB: t}
	ty.keyReader = &keyReader{in: ty, send: ty.tell, pastes: make(chan string, 256)}
	return ty
}

func (ty *typist) Read(p []byte) (int, error) { return copy(p, ty.piece), nil }

func (ty *typist) tell(msg tea.Msg) {
	switch msg := ty.filter(nil, msg).(type) {
	case tea.KeyPressMsg:
		ty.told = append(ty.told, msg.String())
	case tea.PasteMsg:
		ty.told = append(ty.told, fmt.Sprintf("[%s]", msg.Content))
	}
}

// sends sends pieces. What is returned for each has to be whole: the decoder of bubbletea
// makes something of it by itself.
func (ty *typist) sends(pieces ...string) {
	ty.Helper()
	for _, piece := range pieces {
		ty.piece = piece
		p := make([]byte, 4096)
		n, _ := ty.keyReader.Read(p)
		for p = p[:n]; len(p) > 0; {
			n, event := new(uv.EventDecoder).Decode(p)
			switch event := event.(type) {
			case uv.KeyPressEvent:
				ty.tell(tea.KeyPressMsg(event))
			case uv.PasteStartEvent:
				if !strings.HasPrefix(string(p), "\x1b[200~\x1b[201~") {
					ty.Errorf("a paste is not an empty one: %q", p)
				}
			case uv.PasteEndEvent:
				ty.tell(tea.PasteMsg{})
			default:
				ty.told = append(ty.told, "(no key)")
			}
			p = p[n:]
		}
	}
}

func TestPastesEndAndKeysAreWhole(t *testing.T) {
	const pause, start, end = "(pause)", "\x1b[200~", "\x1b[201~"
	long := strings.Repeat("x", 1000)
	for name, c := range map[string]struct {
		pieces []string
		want   string
	}{
		"a paste":                                    {[]string{"a" + start + "b\r\nc" + end + "d"}, "a [b\r\nc] d"},
		"two pastes":                                 {[]string{start + "a" + end + "x" + start + "b" + end}, "[a] x [b]"},
		"an empty paste":                             {[]string{start + end + "x"}, "x"},
		"keys in a paste":                            {[]string{start + "\x1b[A\x03\x1bx" + end}, "[\x1b[A\x03\x1bx]"},
		"an end that is torn":                        {[]string{start + "a\x1b[20", "1~x"}, "[a] x"},
		"an end that is torn for long":               {[]string{start + "a\x1b[20", pause, "1~", "y"}, "[a] y"},
		"an end of one byte at a time":               {[]string{start + "a\x1b", pause, "[201~", "y"}, "[a] y"},
		"an end that is torn more than once":         {[]string{start + "a\x1b[2", pause, "0", "1", pause, "~", "y"}, "[a] y"},
		"a start that is torn":                       {[]string{"\x1b[20", pause, "0~a" + end + "x"}, "[a] x"},
		"a start that is torn after Escape":          {[]string{"\x1b", "[200~a" + end}, "[a]"},
		"a start that is torn for long after Escape": {[]string{"\x1b", pause, "[200~y\r" + end}, "esc [y\r]"},
		"an end that is lost":                        {[]string{start + "a", pause, "\r"}, "[a] enter"},
		"what comes after an end that is lost":       {[]string{start + "a", pause, "y", "1", "y\r", "\r", "y"}, "[a] [y] [1] [y\r] enter y"},
		"what comes after nothing was pasted":        {[]string{start, pause, "y\r", "y", "\x1b", pause, "y"}, "[] [y\r] [y] esc y"},
		"an end that comes late":                     {[]string{start + "a", pause, "b", "c" + end + "d"}, "[a] [b] [c] d"},
		"a piece of an end that is lost":             {[]string{start + "a\x1b[20", pause, "xyz", "\r"}, "[a] [xyz] enter"},
		"a paste after one whose end is lost":        {[]string{start + "a", pause, start + "y" + end, "x"}, "[a] [y] x"},
		"a paste in one whose end is lost":           {[]string{start + "a", start + "y" + end, "x"}, "[ay] x"},
		"a start that is torn after an end was lost": {[]string{start + "a", pause, "\x1b[20", "0~y\r" + end, "x"}, "[a] [y\r] x"},
		"an arrow after an end that is lost":         {[]string{start + "a", pause, "\x1b[A", "y"}, "[a] up y"},
		"Ctrl-C in a paste":                          {[]string{start + "a", "\x03", "y\r"}, "[a] ctrl+c [y\r]"},
		"Ctrl-C as kitty reports it":                 {[]string{start + "a", "\x1b[99;5u"}, "[a] ctrl+c"},
		"Ctrl-C as xterm reports it":                 {[]string{start + "a\x1b[2", "\x1b[27;5;99~"}, "[a] ctrl+c"},
		"a paste after Ctrl-C":                       {[]string{start, "\x03", start + "a" + end}, "ctrl+c [a]"},
		"an end without a start":                     {[]string{"a" + end + "b"}, "a b"},
		"half a start without an end":                {[]string{"\x1b[20", "a", "b"}, "(no key) b"},
		"a character in two pieces":                  {[]string{"a\xf0\x9f", "\x90\x90b"}, "a 🐐 b"},
		"a character in four":                        {[]string{"\xf0", "\x9f", pause, "\x90", "\x90"}, "🐐"},
		"characters of two and three bytes":          {[]string{"\xc3", "\xa9\xe2", "\x82\xac"}, "é €"},
		"half a character":                           {[]string{"\xc3", "a", "b"}, "(no key) a b"},
		"a character of a paste in two pieces":       {[]string{start + "\xf0\x9f", "\x90\x90" + end}, "[🐐]"},
		"a character of a paste that waits":          {[]string{start + "a\xf0\x9f", pause, "\x90\x90", end}, "[a] [🐐]"},
		"a mark in a piece of its own":               {[]string{"e", "\u0301"}, "e \u0301"},
		"an arrow in pieces":                         {[]string{"\x1b", "[", "A\x1b[1;", pause, "5D"}, "up ctrl+left"},
		"an arrow after Escape":                      {[]string{"\x1b", pause, "[A", "["}, "esc up ["},
		"Escape":                                     {[]string{"\x1b", pause, "x"}, "esc x"},
		"Escape and a key at once":                   {[]string{"\x1b", "x"}, "alt+x"},
		"line ends of CSI u":                         {[]string{start + "a\x1b[13ub\x1b[13;2uc\x1b[27;2;13~d\x1b[106;5ue\x1b[10uf\x1b[109;5ug\x1b[57414u" + end}, "[a\nb\nc\nd\ne\nf\ng\n]"},
		"tabs of CSI u":                              {[]string{start + "\x1b[9u\x1b[9;2u\x1b[105;5u\x1b[27;1;9~" + end}, "[\t\t\t\t]"},
		"characters of CSI u":                        {[]string{start + "\x1b[97;2u\x1b[27;1;98~\x1b[32u\x1b[233u" + end}, "[Ab é]"},
		"line ends of Win32":                         {[]string{start + "\x1b[13;28;13;1;0;1_" + end}, "[\n]"},
		"a line end of CSI u in pieces":              {[]string{start + "a\x1b[1", "3ub" + end}, "[a\nb]"},
		"other keys of CSI u":                        {[]string{start + "\x1b[27u\x1b[3~\x1b[118;5u\x1b[31m" + end}, "[\x1b[27u\x1b[3~\x1b[118;5u\x1b[31m]"},
		"a paste of many pieces":                     {[]string{start, long, long, long + end}, "[" + long + long + long + "]"},
		"a key without an end":                       {[]string{"\x1b[" + strings.Repeat("1", 80), "A"}, "(no key) A"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ty := newTypist(t)
				for _, piece := range c.pieces {
					if piece == pause {
						time.Sleep(2 * pasteTimeout) // in the time of the bubble
						synctest.Wait()
						continue
					}
					ty.sends(piece)
				}
				time.Sleep(2 * pasteTimeout)
				synctest.Wait()
				if got := strings.Join(ty.told, " "); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

// More than a prompt can have is not kept, and what refuses it sees that there was more.
func TestAPasteIsBounded(t *testing.T) {
	ty := newTypist(t)
	ty.sends("\x1b[200~")
	for range 2 * editor.MaxBytes / 1000 {
		ty.sends(strings.Repeat("x", 1000))
	}
	ty.sends("\x1b[201~")
	if n := len(ty.told[0]) - len("[]"); n != editor.MaxBytes+1 {
		t.Errorf("%d bytes were kept", n)
	}
}

// However what was typed is cut, it comes to the same.
func TestPiecesOfAnySizeComeToTheSame(t *testing.T) {
	const typed = "a\x1b[200~b🐐\x1b[13u\x1b[A\x1b[201~\x1b[A\x1b[1;5Dé\x1bxe\u0301\x1b[200~y\r\x1b[201~n"
	want := newTypist(t)
	want.sends(typed)
	for size := 1; size < len(typed); size++ {
		for first := range size {
			ty := newTypist(t)
			ty.sends(typed[:first])
			for rest := typed[first:]; rest != ""; rest = rest[min(size, len(rest)):] {
				ty.sends(rest[:min(size, len(rest))])
			}
			if got, want := strings.Join(ty.told, ""), strings.Join(want.told, ""); got != want {
				t.Fatalf("%d bytes, then %d at a time: got %q, want %q", first, size, got, want)
			}
		}
	}
}
