package tui

import (
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
	silence = time.Second           // ends a paste: its end is lost, or comes in pieces
	alone   = 50 * time.Millisecond // makes Escape a key of its own
)

// keys is the terminal that a person types on. It returns whole characters and keys, however
// they were cut on their way. bubbletea gets no text of a paste, because it ends none by
// itself: it gets the marks of an empty one, and filter puts the text there. Text after a
// paste whose end is lost can belong to it. It is pasted too, and so answers nothing, until
// the end comes or a key that is no text is pressed by itself.
type keys struct {
	*os.File
	in     io.Reader
	send   func(tea.Msg) // to the program
	pastes chan string   // of marks that were returned

	mu      sync.Mutex
	pieces  int    // that were read
	held    string // the beginning of a character or a key
	escape  bool   // Escape was sent, and may have been the beginning of a key
	pasting bool
	lost    bool // pasting, and the end is lost
	text    []byte
}

// Read implements io.Reader. It may return nothing.
func (k *keys) Read(p []byte) (int, error) {
	n, err := k.in.Read(p[:len(p)/4]) // what is returned is twice as long at most
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pieces++
	out, pieces := k.take(string(p[:n])), k.pieces
	switch {
	case k.pasting && !k.lost:
		time.AfterFunc(silence, func() { k.expire(pieces) })
	case k.held == "\x1b":
		time.AfterFunc(alone, func() { k.expire(pieces) })
	}
	return copy(p, out), err
}

func (k *keys) filter(_ tea.Model, msg tea.Msg) tea.Msg {
	if paste, ok := msg.(tea.PasteMsg); ok && paste.Content == "" && len(k.pastes) > 0 {
		return tea.PasteMsg{Content: <-k.pastes}
	}
	return msg
}

// expire sends what was held, if nothing was read since.
func (k *keys) expire(pieces int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if pieces != k.pieces {
		return
	}
	if k.lost = k.pasting; k.lost {
		k.send(tea.PasteMsg{Content: k.pasted()})
	} else {
		k.send(tea.KeyPressMsg{Code: tea.KeyEscape})
	}
	if k.escape = k.held == "\x1b"; k.escape {
		k.held = ""
	}
}

var (
	mark     = regexp.MustCompile(`\x1b\[20[01]~`)         // the start or the end of a paste
	begun    = regexp.MustCompile(`\x1b(\[[ -?]{0,60})?$`) // a key
	reported = regexp.MustCompile(`\x1b\[[0-9:;]{1,32}[u~_]`)
)

// take returns what is whole when a piece has come.
func (k *keys) take(piece string) (out string) {
	if k.escape && len(piece) > 1 && piece[0] == '[' {
		piece = "\x1b" + piece
	}
	data := k.held + piece
	switch key, ok := keyOf(piece); {
	case k.pasting && !k.lost && ok && key.Keystroke() == "ctrl+c":
		k.held, k.lost = "", true
		return k.paste() + piece
	case k.lost && ok && key.Text == "":
		k.pasting, k.lost, data = false, false, piece
	case k.lost && strings.HasPrefix(k.held, "\x1b") && !strings.HasPrefix(ansi.BracketedPasteEnd, data) && !mark.MatchString(data):
		data = piece
	}
	k.held, k.escape = "", false
	for data != "" {
		part, rest, start := "", "", false
		at := mark.FindStringIndex(data)
		if at == nil {
			part, k.held = cut(data)
		} else {
			part, rest, start = data[:at[0]], data[at[1]:], data[at[1]-2] == '0'
		}
		if k.pasting {
			k.text = append(k.text, part[:min(len(part), editor.MaxBytes+1-len(k.text))]...) // more is refused
		} else {
			out += part
		}
		if data = rest; at != nil {
			if !start {
				out += k.paste()
			}
			k.pasting, k.lost = start, false
		}
	}
	if k.lost {
		out += k.paste()
	}
	return out
}

// cut takes the beginning of a character or a key from the end.
func cut(data string) (whole, part string) {
	tail := max(len(data)-64, 0)
	if at := begun.FindStringIndex(data[tail:]); at != nil {
		return data[:tail+at[0]], data[tail+at[0]:]
	}
	for i := len(data) - 1; i >= max(len(data)-utf8.UTFMax, 0); i-- {
		if utf8.RuneStart(data[i]) && !utf8.FullRuneInString(data[i:]) {
			return data[:i], data[i:]
		}
	}
	return data, ""
}

// paste returns the marks for what was pasted, if that is anything.
func (k *keys) paste() string {
	text := k.pasted()
	if text == "" {
		return ""
	}
	k.pastes <- text
	return ansi.BracketedPasteStart + ansi.BracketedPasteEnd
}

// pasted takes the text of the paste, with characters in the place of the keys as which some
// terminals report them.
func (k *keys) pasted() string {
	text := reported.ReplaceAllStringFunc(string(k.text), func(seq string) string {
		key, _ := keyOf(seq)
		if key.Mod.Contains(tea.ModCtrl) && key.Code >= 'a' && key.Code <= 'z' {
			key.Code &= 0x1f
		}
		switch key.Code {
		case tea.KeyEnter, tea.KeyKpEnter, '\n':
			return "\n"
		case tea.KeyTab:
			return "\t"
		}
		if key.Text == "" {
			return seq
		}
		return key.Text
	})
	k.text = nil
	return text
}

// keyOf is the one key that a text is.
func keyOf(text string) (uv.KeyPressEvent, bool) {
	n, event := new(uv.EventDecoder).Decode([]byte(text))
	key, ok := event.(uv.KeyPressEvent)
	return key, ok && n == len(text)
}
