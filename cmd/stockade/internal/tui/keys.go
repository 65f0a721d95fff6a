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

const (
	silence = time.Second           // ends a paste
	alone   = 50 * time.Millisecond // makes the byte ESC the key Escape
)

// keys reads from a terminal what a person types. It returns whole characters and whole keys.
// bubbletea waits for the end of a paste forever, so keys collects the text of a paste itself. It
// returns an empty paste, and filter puts the text in. If the end of a paste is lost, the text
// that follows counts as pasted, too, so that it answers no question, until the end comes or a
// key without text is pressed.
type keys struct {
	*os.File
	in     io.Reader
	send   func(tea.Msg) // sends to the program
	pastes chan string   // the texts of the empty pastes that were returned

	mu      sync.Mutex
	pieces  int    // counts the calls of Read
	held    string // the beginning of a character or a key
	escape  bool   // held was sent as the key Escape
	pasting bool   // a paste has begun
	lost    bool   // its end is lost
	text    []byte // the text of the paste
}

// Read implements io.Reader. It may return nothing.
func (k *keys) Read(p []byte) (int, error) {
	n, err := k.in.Read(p[:len(p)/4]) // the result can be twice as long
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

// filter puts the text into an empty paste.
func (k *keys) filter(_ tea.Model, msg tea.Msg) tea.Msg {
	if msg == (tea.PasteMsg{}) && len(k.pastes) > 0 {
		return tea.PasteMsg{Content: <-k.pastes}
	}
	return msg
}

// expire sends the paste or the key Escape if nothing was read since.
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

var (
	mark    = regexp.MustCompile(`\x1b\[20[01]~`)            // the start or the end of a paste
	begun   = regexp.MustCompile(`^\x1b(\[[ -?]{0,60})?$`)   // the beginning of a key
	encoded = regexp.MustCompile(`\x1b\[[0-9:;]{1,32}[u~_]`) // a key in the protocols of kitty, xterm and Windows
)

// take takes what was read, and returns the characters and keys that are whole by then.
func (k *keys) take(piece string) (out string) {
	data := k.held + piece
	switch key, ok := keyOf(piece); {
	case k.pasting && !k.lost && ok && key.Keystroke() == "ctrl+c":
		k.held, k.lost = "", true
		return k.paste() + piece
	case k.lost && ok && key.Text == "":
		k.pasting, k.lost, data = false, false, piece
	case k.lost && strings.HasPrefix(k.held, "\x1b") && !strings.HasPrefix(ansi.BracketedPasteEnd, data) && !mark.MatchString(data):
		data = piece // held is a piece of the end that is lost
	case k.escape && (len(piece) < 2 || piece[0] != '['):
		data = piece // held was Escape
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

// add adds a part to the paste. Outside of a paste, it returns the part.
func (k *keys) add(part string) string {
	if !k.pasting {
		return part
	}
	k.text = append(k.text, part[:min(len(part), editor.MaxBytes+1-len(k.text))]...) // the editor refuses more
	return ""
}

// cut divides data before the beginning of a character or a key at its end.
func cut(data string) (whole, part string) {
	for i := max(len(data)-64, 0); i < len(data); i++ {
		if begun.MatchString(data[i:]) || utf8.RuneStart(data[i]) && !utf8.FullRuneInString(data[i:]) {
			return data[:i], data[i:]
		}
	}
	return data, ""
}

// paste ends a paste, if it has text, and returns an empty one. Keys in the text become their
// characters.
func (k *keys) paste() string {
	if len(k.text) == 0 {
		return ""
	}
	blanks := map[rune]string{tea.KeyEnter: "\n", tea.KeyKpEnter: "\n", '\n': "\n", tea.KeyTab: "\t"}
	k.pastes <- encoded.ReplaceAllStringFunc(string(k.text), func(seq string) string {
		key, _ := keyOf(seq)
		if key.Mod.Contains(tea.ModCtrl) && key.Code >= 'a' && key.Code <= 'z' {
			key.Code &= 0x1f
		}
		return cmp.Or(blanks[key.Code], key.Text, seq)
	})
	k.text = nil
	return ansi.BracketedPasteStart + ansi.BracketedPasteEnd
}

// keyOf returns the key of a text, and whether the text is one key.
func keyOf(text string) (uv.KeyPressEvent, bool) {
	n, event := new(uv.EventDecoder).Decode([]byte(text))
	key, ok := event.(uv.KeyPressEvent)
	return key, ok && n == len(text)
}
