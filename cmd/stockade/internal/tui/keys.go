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
	pasteTimeout  = time.Second           // a paste ends if nothing is read for this time
	escapeTimeout = 50 * time.Millisecond // the byte ESC is the key Escape if nothing follows within this time
)

// keyReader reads the input of a person from a terminal, in whole characters and whole keys.
// bubbletea would wait for the end of a paste forever; therefore keyReader collects the text
// of a paste itself. It passes an empty paste on, and filter inserts the text into it. If the
// end of a paste is lost, the text that follows counts as pasted, too, and cannot answer a
// question, until the end arrives or a key without text is pressed.
type keyReader struct {
	*os.File
	in     io.Reader
	send   func(tea.Msg) // sends a message to the program
	pastes chan string   // texts of the empty pastes that were passed on

	mu         sync.Mutex
	pieces     int    // number of calls of Read so far
	partial    string // beginning of a character or a key whose rest has not arrived
	escapeSent bool   // partial was sent as the key Escape
	pasting    bool   // a paste has started and not ended
	endLost    bool   // the end of the paste is lost
	text       []byte // text of the paste so far
}

// Read implements io.Reader. It may return 0 bytes without an error.
func (k *keyReader) Read(p []byte) (int, error) {
	n, err := k.in.Read(p[:len(p)/4]) // decode can double the length
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

// filter puts the text of a paste into the empty paste that stands for it.
func (k *keyReader) filter(_ tea.Model, msg tea.Msg) tea.Msg {
	if msg == (tea.PasteMsg{}) && len(k.pastes) > 0 {
		return tea.PasteMsg{Content: <-k.pastes}
	}
	return msg
}

// expire ends the open paste, or sends the key Escape. It does nothing if Read was called
// since the call with the number pieces.
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
	pasteMark  = regexp.MustCompile(`\x1b\[20[01]~`)            // start or end of a paste
	partialKey = regexp.MustCompile(`^\x1b(\[[ -?]{0,60})?$`)   // beginning of a key
	encoded    = regexp.MustCompile(`\x1b\[[0-9:;]{1,32}[u~_]`) // a key in the protocols of kitty, xterm and Windows
)

// decode adds a piece of input, and returns the characters and keys that are complete now.
func (k *keyReader) decode(piece string) (out string) {
	data := k.partial + piece
	switch key, ok := keyOf(piece); {
	case k.pasting && !k.endLost && ok && key.Keystroke() == "ctrl+c":
		k.partial, k.endLost = "", true
		return k.paste() + piece
	case k.endLost && ok && key.Text == "":
		k.pasting, k.endLost, data = false, false, piece
	case k.endLost && strings.HasPrefix(k.partial, "\x1b") && !strings.HasPrefix(ansi.BracketedPasteEnd, data) && !pasteMark.MatchString(data):
		data = piece // partial is a piece of the lost end
	case k.escapeSent && (len(piece) < 2 || piece[0] != '['):
		data = piece // partial was the key Escape
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

// add appends part to the open paste and returns "". If no paste is open, it returns part.
func (k *keyReader) add(part string) string {
	if !k.pasting {
		return part
	}
	k.text = append(k.text, part[:min(len(part), editor.MaxBytes+1-len(k.text))]...) // the editor refuses longer text
	return ""
}

// splitPartial splits data into whole characters and keys, and an incomplete one at its end.
func splitPartial(data string) (whole, part string) {
	for i := max(len(data)-64, 0); i < len(data); i++ {
		if partialKey.MatchString(data[i:]) || utf8.RuneStart(data[i]) && !utf8.FullRuneInString(data[i:]) {
			return data[:i], data[i:]
		}
	}
	return data, ""
}

// paste ends the open paste. It returns an empty paste, or "" if the paste has no text. Keys
// in its text become characters.
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

// keyOf decodes the text that a terminal sends for a key; ok is false unless it is one key.
func keyOf(text string) (uv.KeyPressEvent, bool) {
	n, event := new(uv.EventDecoder).Decode([]byte(text))
	key, ok := event.(uv.KeyPressEvent)
	return key, ok && n == len(text)
}
