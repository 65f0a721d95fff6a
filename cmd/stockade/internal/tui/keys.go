package tui

import (
	"cmp"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/editor"
)

// silence ends a paste whose end does not come, and alone makes Escape a key.
const silence, alone = time.Second, 50 * time.Millisecond

// keys is the terminal that a person types on. It returns whole characters and keys, and of
// a paste, which bubbletea does not end by itself, the marks of an empty one, to which filter
// gives the text. Text after a paste whose end is lost is pasted too, and so answers nothing,
// until the end comes or a key that is no text is pressed by itself.
type keys struct {
	*os.File
	in     io.Reader
	send   func(tea.Msg) // to the program
	pastes chan string   // of marks that were returned

	mu                    sync.Mutex
	pieces                int    // that were read
	held                  string // the beginning of a character or a key
	escape, pasting, lost bool   // held was sent as Escape; a paste has begun; its end is lost
	text                  []byte // of the paste
}

// Read implements io.Reader. It may return nothing.
func (k *keys) Read(p []byte) (int, error) {
	n, err := k.in.Read(p[:len(p)/4]) // what is returned is twice as long at most
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pieces++
	out, pieces := k.take(string(p[:n])), k.pieces
	if k.pasting && !k.lost {
		time.AfterFunc(silence, func() { k.expire(pieces) })
	} else if k.held == "\x1b" {
		time.AfterFunc(alone, func() { k.expire(pieces) })
	}
	return copy(p, out), err
}

func (k *keys) filter(_ tea.Model, msg tea.Msg) tea.Msg {
	if msg == (tea.PasteMsg{}) && len(k.pastes) > 0 {
		return tea.PasteMsg{Content: <-k.pastes}
	}
	return msg
}

// expire sends what nothing has followed.
func (k *keys) expire(pieces int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case pieces != k.pieces:
	case k.pasting:
		k.lost = true
		k.paste()
		k.send(tea.PasteMsg{})
	default:
		k.escape = true
		k.send(tea.KeyPressMsg{Code: tea.KeyEscape})
	}
}

var mark = regexp.MustCompile(`\x1b\[20[01]~`)           // the start or the end of a paste
var begun = regexp.MustCompile(`^\x1b(\[[ -?]{0,60})?$`) // the beginning of a key
var reported = regexp.MustCompile(`\x1b\[[0-9:;]{1,32}[u~_]`)

// take returns what is whole when a piece has come.
func (k *keys) take(piece string) (out string) {
	data := k.held + piece
	switch key, ok := keyOf(piece); {
	case k.pasting && !k.lost && ok && key.Keystroke() == "ctrl+c":
		k.held, k.lost = "", true
		return k.paste() + piece
	case k.lost && ok && key.Text == "":
		k.pasting, k.lost, data = false, false, piece
	case k.lost && k.held != "" && k.held[0] == ansi.ESC && !strings.HasPrefix(ansi.BracketedPasteEnd, data) && !mark.MatchString(data),
		k.escape && (len(piece) < 2 || piece[0] != '['):
		data = piece
	}
	for at := mark.FindStringIndex(data); at != nil; at = mark.FindStringIndex(data) {
		out += k.add(data[:at[0]])
		if k.pasting = data[at[1]-2] == '0'; !k.pasting {
			out += k.paste()
		}
		k.lost, data = false, data[at[1]:]
	}
	data, k.held = cut(data)
	k.escape = false
	if out += k.add(data); k.lost {
		out += k.paste()
	}
	return out
}

// add adds a part to the paste, if there is one, or returns it.
func (k *keys) add(part string) string {
	if !k.pasting {
		return part
	}
	k.text = append(k.text, part[:min(len(part), editor.MaxBytes+1-len(k.text))]...) // more is refused
	return ""
}

// cut takes the beginning of a character or a key from the end.
func cut(data string) (whole, part string) {
	for i := max(len(data)-64, 0); i < len(data); i++ {
		if begun.MatchString(data[i:]) || utf8.RuneStart(data[i]) && !utf8.FullRuneInString(data[i:]) {
			return data[:i], data[i:]
		}
	}
	return data, ""
}

// paste returns the marks for what was pasted, in which keys become their characters.
func (k *keys) paste() string {
	if len(k.text) == 0 {
		return ""
	}
	blanks := map[rune]string{tea.KeyEnter: "\n", tea.KeyKpEnter: "\n", '\n': "\n", tea.KeyTab: "\t"}
	k.pastes <- reported.ReplaceAllStringFunc(string(k.text), func(seq string) string {
		key, _ := keyOf(seq)
		if key.Mod.Contains(tea.ModCtrl) && key.Code >= 'a' && key.Code <= 'z' {
			key.Code &= 0x1f
		}
		return cmp.Or(blanks[key.Code], key.Text, seq)
	})
	k.text = nil
	return ansi.BracketedPasteStart + ansi.BracketedPasteEnd
}

// keyOf is the one key that a text is.
func keyOf(text string) (uv.KeyPressEvent, bool) {
	n, event := new(uv.EventDecoder).Decode([]byte(text))
	key, ok := event.(uv.KeyPressEvent)
	return key, ok && n == len(text)
}
