package editor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal/terminaltest"
	"github.com/stockade-dev/stockade/host/visible"
)

// keys are those that have a name in a test.
var keys = map[string]tea.KeyPressMsg{
	"enter": {Code: tea.KeyEnter}, "tab": {Code: tea.KeyTab}, "esc": {Code: tea.KeyEscape}, "back": {Code: tea.KeyBackspace},
	"del": {Code: tea.KeyDelete}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "left": {Code: tea.KeyLeft},
	"right": {Code: tea.KeyRight}, "home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd},
	"shift-enter": {Code: tea.KeyEnter, Mod: tea.ModShift}, "alt-enter": {Code: tea.KeyEnter, Mod: tea.ModAlt},
	"ctrl-left": {Code: tea.KeyLeft, Mod: tea.ModCtrl}, "alt-back": {Code: tea.KeyBackspace, Mod: tea.ModAlt},
	"alt-b": {Code: 'b', Mod: tea.ModAlt}, "alt-f": {Code: 'f', Mod: tea.ModAlt}, "alt-d": {Code: 'd', Mod: tea.ModAlt},
}

// person types into an editor, runs its commands at once and notes what is sent.
type person struct {
	t    *testing.T
	e    *Editor
	sent []string
}

func (p *person) update(msg tea.Msg) {
	cmd, sent, ok := p.e.Update(msg)
	if ok {
		p.sent = append(p.sent, sent)
	}
	if cmd != nil {
		p.update(cmd())
	}
}

// types presses the keys of a line: <name> is a key, <^x> is Ctrl-X, <*n x> is
// key x n times, anything else itself.
func (p *person) types(line string) {
	p.t.Helper()
	for line != "" {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "<"), ">")
		if line[0] != '<' || !ok {
			r, n := utf8.DecodeRuneInString(line)
			p.update(tea.KeyPressMsg{Code: r, Text: line[:n]})
			line = line[n:]
			continue
		}
		key, known := keys[name]
		if strings.HasPrefix(name, "^") {
			key, known = tea.KeyPressMsg{Code: rune(name[1]), Mod: tea.ModCtrl}, true
		}
		if !known {
			p.t.Fatalf("no key %q", name)
		}
		p.update(key)
		line = rest
	}
}

// screen is the view with a bar where the cursor is.
func (p *person) screen(width, most int) string {
	view := p.e.View(width, most)
	rows := strings.Split(view, "\n")
	c := p.e.Cursor()
	if c.Y >= len(rows) {
		p.t.Fatalf("the cursor is in row %d of %d", c.Y, len(rows))
	}
	row := rows[c.Y]
	row += strings.Repeat(" ", max(0, c.X-p.e.widths.StringWidth(row)))
	rows[c.Y] = p.e.widths.Truncate(row, c.X, "") + "|" + p.e.widths.TruncateLeft(row, c.X, "")
	return strings.Join(rows, "\n")
}

var commands = []Command{
	{"/tool", "", "list the tools", None},
	{"/tool", "NAME", "show a tool with its full schema", Tools},
	{"/show", "N", "show a call with its whole result", None},
	{"/quit", "", "leave", None},
}

func complete(kind Kind, prefix string) []string {
	if kind == Tools {
		return []string{"bash", "file_edit", "file_read", "file_write"}
	}
	if strings.HasPrefix(prefix, "docs/") {
		return []string{"docs/a b.txt", "docs/notes.md"}
	}
	return []string{"docs/", "main.go", "main_test.go", "docs/a b.txt", "docs/notes.md", "x\x1b[31m.go", "cmd/\u202edeen.go"}
}

func TestTheScreenShowsWhatIsTyped(t *testing.T) {
	for name, c := range map[string]struct {
		types, paste, then string
		width, most        int
		want               string // the screen, | is the cursor
		sent               string
	}{
		"an empty editor says what can be done": {want: "> |ask, or /help"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &person{t: t, e: New(Options{Commands: commands, Complete: complete})}
			p.types(c.types)
			if c.paste != "" {
				p.update(tea.PasteMsg{Content: c.paste})
			}
			p.types(c.then)
			if c.width == 0 {
				c.width = 60
			}
			if c.most == 0 {
				c.most = 12
			}
			if got := p.screen(c.width, c.most); got != c.want {
				t.Errorf("the screen is\n%s\nwant\n%s", got, c.want)
			}
			if got := strings.Join(p.sent, " / "); got != c.sent {
				t.Errorf("%q was sent, want %q", got, c.sent)
			}
		})
	}
}

var _ = fmt.Sprint
var _ = os.Stat
var _ = filepath.Join
var _ = ansi.Strip
var _ = terminaltest.Emulator{}
var _ = visible.Hidden
