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
	pasteTimeout  = time.Second           // ends a paste
	escapeTimeout = 50 * time.Millisecond // makes the byte ESC the key Escape
)

// keyReader reads from a terminal what a person types. It returns whole characters and whole keys.
// bubbletea waits for the end of a paste forever, so keys collects the text of a paste itself. It
// returns an empty paste, and filter puts the text in. If the end of a paste is lost, the text
// that follows counts as pasted, too, so that it answers no question, until the end comes or a
// key without text is pressed.
type keyReader struct {
	*os.File
	in     io.Reader
	send   func(tea.Msg) // sends to the program
	pastes chan string   // the texts of the empty pastes that were returned

	mu         sync.Mutex
	pieces     int    // counts the calls of Read
	partial    string // the beginning of a character or a key
	escapeSent bool   // held was sent as the key Escape
	pasting    bool   // a paste has begun
	endLost    bool   // its end is lost
	text       []byte // the text of the paste
}

// Read implements io.Reader. It may return nothing.
func (k *keyReader) Read(p []byte) (int, error) {
	n, err := k.in.Read(p[:len(p)/4]) // the result can be twice as long
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pieces++
	out, pieces := k.decode(string(p[:n])), k.pieces
	if k.pasting && !k.endLost {
		time.AfterFunc(pasteTimeout, func() { k.expire(pieces) })
	} else if k.partial == "\x1b" {
		time.AfterFunc(escapeTimeout, func() { k.expire(pieces) })
	}
	return copy(p, out), err
}

// filter puts the text into an empty paste.
func (k *keyReader) filter(_ tea.Model, msg tea.Msg) tea.Msg {
	if msg == (tea.PasteMsg{}) && len(k.pastes) > 0 {
		return tea.PasteMsg{Content: <-k.pastes}
	}
	return msg
}

// expire sends the paste or the key Escape if nothing was read since.
func (k *keyReader) expire(pieces int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case pieces != k.pieces:
	case k.pasting:
		k.endLost = true
		k.paste()
		k.send(tea.PasteMsg{})
	default:
		k.escapeSent = true
		k.send(tea.KeyPressMsg{Code: tea.KeyEscape})
	}
}

var (
	pasteMark  = regexp.MustCompile(`\x1b\[20[01]~`)            // the start or the end of a paste
	partialKey = regexp.MustCompile(`^\x1b(\[[ -?]{0,60})?$`)   // the beginning of a key
	encoded    = regexp.MustCompile(`\x1b\[[0-9:;]{1,32}[u~_]`) // a key in the protocols of kitty, xterm and Windows
)

// decode takes what was read, and returns the characters and keys that are whole by then.
func (k *keyReader) decode(piece string) (out string) {
	data := k.partial + piece
	switch key, ok := keyOf(piece); {
	case k.pasting && !k.endLost && ok && key.Keystroke() == "ctrl+c":
		k.partial, k.endLost = "", true
		return k.paste() + piece
	case k.endLost && ok && key.Text == "":
		k.pasting, k.endLost, data = false, false, piece
	case k.endLost && strings.HasPrefix(k.partial, "\x1b") && !strings.HasPrefix(ansi.BracketedPasteEnd, data) && !pasteMark.MatchString(data):
		data = piece // held is a piece of the end that is lost
	case k.escapeSent && (len(piece) < 2 || piece[0] != '['):
		data = piece // held was Escape
	}
	for at := pasteMark.FindStringIndex(data); at != nil; at = pasteMark.FindStringIndex(data) {
		out += k.add(data[:at[0]])
		if k.pasting = data[at[1]-2] == '0'; !k.pasting {
			out += k.paste()
		}
		k.endLost, data = false, data[at[1]:]
	}
	data, k.partial = splitPartial(data)
	k.escapeSent = false
	if out += k.add(data); k.endLost {
		out += k.paste()
	}
	return out
}

// add adds a part to the paste. Outside of a paste, it returns the part.
func (k *keyReader) add(part string) string {
	if !k.pasting {
		return part
	}
	k.text = append(k.text, part[:min(len(part), editor.MaxBytes+1-len(k.text))]...) // the editor refuses more
	return ""
}

// splitPartial divides data before the beginning of a character or a key at its end.
func splitPartial(data string) (whole, part string) {
	for i := max(len(data)-64, 0); i < len(data); i++ {
		if partialKey.MatchString(data[i:]) || utf8.RuneStart(data[i]) && !utf8.FullRuneInString(data[i:]) {
			return data[:i], data[i:]
		}
	}
	return data, ""
}

// paste ends a paste, if it has text, and returns an empty one. Keys in the text become their
// characters.
func (k *keyReader) paste() string {
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
