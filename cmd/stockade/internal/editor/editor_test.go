package editor

import (
	"math/rand/v2"
	"slices"
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
	"says up": {Code: tea.KeyExtended, Text: "up"}, "alt-b": {Code: 'b', Mod: tea.ModAlt}, "alt-f": {Code: 'f', Mod: tea.ModAlt}, "alt-d": {Code: 'd', Mod: tea.ModAlt},
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
	return []string{"docs/", "main.go", "main_test.go", "docs/a b.txt", "docs/notes.md", "x\x1b[31m.go", "say \"31m\"", "cmd/\u202edeen.go"}
}

func TestTheScreenShowsWhatIsTyped(t *testing.T) {
	for name, c := range map[string]struct {
		types, paste, then string
		width, most        int
		want               string // the screen, | is the cursor
		sent               string
	}{
		"an empty editor says what can be done": {want: "> |ask, or /help"},
		"a prompt is sent by Enter":             {types: "hello<enter>", want: "> |ask, or /help", sent: "hello"},
		"blanks are not sent":                   {types: "  <enter>", want: ">   |"},
		"keys of readline": {
			types: "one two three<^a>X<^e>Y<alt-b><^k><^w><left><^d>! <^y>",
			want:  "> Xone! two threeY|"},
		"what was killed in a row comes back together":     {types: "a b c<^w><^w>x<^y>", want: "> a xb c|"},
		"killing forward and backward comes back in order": {types: "one two<left><left><left><alt-d><^u><^y>", want: "> one two|"},
		"a line at a time is killed, then its end":         {types: "a<^j>b<^u><^u>", want: "> a|"},
		"undo takes typing back as one":                    {types: "one<home>two<^_>", want: "> |one"},
		"undo brings back what was killed":                 {types: "one two<^u><^_>", want: "> one two|"},
		"a word of an input method is no key":              {types: "a<says up>", want: "> aup|"},
		"a new line has four keys":                         {types: "a<shift-enter>b<alt-enter>c<^j>d\\<enter>e", want: "> a\n  b\n  c\n  d\n  e|"},
		"a backslash within a line is sent":                {types: "a\\b<left><enter>", want: "> |ask, or /help", sent: "a\\b"},
		"up and down keep to the column":                   {types: "abcdef<^j>x<^j>ghijkl<left><left><up><up>|", want: "> abcd||ef\n  x\n  ghijkl"},
		"words wrap, and the cursor has room at the end": {
			types: "the quick brown fox", width: 20, want: "> the quick brown\n  fox|"},
		"a row that is full":               {types: strings.Repeat("x", 17), width: 20, want: "> " + strings.Repeat("x", 17) + "|"},
		"a word that is too long":          {types: strings.Repeat("x", 18), width: 20, want: "> " + strings.Repeat("x", 17) + "\n  x|"},
		"wide characters do not stick out": {types: "日本語日本語日本語", width: 20, want: "> 日本語日本語日本\n  語|"},
		"an accent belongs to its letter":  {types: "e\u0301x<left><left>y", want: "> y|e\u0301x"},
		"a flag is one character":          {types: "a🇩🇪<back>b", want: "> ab|"},
		"a skin belongs to its hand":       {types: "👍🏽!<left><left>x", want: "> x|👍🏽!"},
		"a screen of few columns":          {types: "hello again", width: 7, want: "> hell\n  o\n  agai\n  n|", most: 5},
		"it grows to ten rows, then scrolls": {
			types: strings.Repeat("a<^j>", 11) + "b", want: "^ a\n" + strings.Repeat("  a\n", 8) + "  b|"},
		"it scrolls back":     {types: strings.Repeat("a<^j>", 11) + strings.Repeat("<up>", 11), want: "> |a\n" + strings.Repeat("  a\n", 8) + "v a"},
		"few rows are enough": {types: "a<^j>b<^j>c", most: 2, want: "^ b\n  c|"},

		"a command line has its own sign":         {types: "!ls", want: "! ls|"},
		"the sign goes with all of the line":      {types: "!git<^u>ls", want: "> ls|"},
		"the sign goes with a Backspace":          {types: "!<back>ls", want: "> ls|"},
		"a sign that comes to the beginning":      {types: "a!s<home><del>l", want: "! l|s"},
		"home is behind the sign, and it is sent": {types: "!s<home>l<enter>", want: "> |ask, or /help", sent: "!ls"},

		"a paste never sends":                     {paste: "make\n", want: "> make\n  |"},
		"a paste of any system":                   {paste: "a\r\nb\rc", then: "<enter>", want: "> |ask, or /help", sent: "a\nb\nc"},
		"tabs are sent":                           {paste: "\tx", then: "<left><left><right><enter>", want: "> |ask, or /help", sent: "\tx"},
		"a tab is one character":                  {paste: "a\tb", then: "<left><back>", want: "> a|b"},
		"escapes of a paste are shown":            {paste: "\x1b[2Jx\u202ey", want: "> <U+001B>[2Jx<U+202E>y|"},
		"what does not show is one character":     {paste: "x\u202ey", then: "<left><back>", want: "> x|y"},
		"what does not show is sent":              {paste: "می\u200cخواهم", then: "<enter>", want: "> |ask, or /help", sent: "می\u200cخواهم"},
		"a long paste is shown by its size":       {types: "see ", paste: strings.Repeat("x\n", 500), then: "!", want: "> see [pasted 500 lines]!|"},
		"a long line is shown by its size":        {paste: strings.Repeat("x", 4096), want: "> [pasted 4,096 characters]|"},
		"a long paste says what does not show":    {paste: strings.Repeat("x\u200b\n", 6), want: "> [pasted 6 lines, 6 hidden]|"},
		"a long paste goes with one Backspace":    {types: "a", paste: strings.Repeat("x\n", 6), then: "<back>", want: "> a|"},
		"a long paste is one word":                {types: "a ", paste: strings.Repeat("x\n", 6), then: "b<alt-back><alt-back>", want: "> a |"},
		"a long paste is sent as it is":           {types: "a", paste: strings.Repeat("x\n", 6), then: "b<enter>", want: "> |ask, or /help", sent: "a" + strings.Repeat("x\n", 6) + "b"},
		"what looks like a paste is none":         {types: "[pasted 6 lines]", then: "<back>", want: "> [pasted 6 lines|"},
		"a long paste on a screen of few columns": {paste: strings.Repeat("x\n", 500), then: "a", width: 20, want: "> [pasted 500 line…\n  a|"},
		"too much is refused, and nothing is lost": {
			types: "ab", paste: strings.Repeat("x", MaxBytes), want: "> ab|\n  not inserted: a prompt has 1024 KiB at most; name a file…"},

		"commands are listed as they are typed": {
			types: "/",
			want:  "> /|\n> │ /tool       list the tools\n  │ /tool NAME  show a tool with its full schema\n  │ /show N     show a call with its whole result\n  │ /quit       leave"},
		"Tab takes the first":                     {types: "/q<tab>", want: "> /quit|"},
		"Enter takes it, and sends what is whole": {types: "/q<enter><enter>", want: "> |ask, or /help", sent: "/quit"},
		"arrows choose":                           {types: "/t<down><enter>", want: "> /tool |\n> │ bash\n  │ file_edit\n  │ file_read\n  │ file_write"},
		"tools are completed":                     {types: "/tool file_w<tab><enter>", want: "> |ask, or /help", sent: "/tool file_write "},
		"what may be left out is":                 {types: "/tool <enter>", want: "> |ask, or /help", sent: "/tool "},
		"Esc closes the list for this word":       {types: "/t<esc>o", want: "> /to|"},
		"Tab opens it again":                      {types: "/<esc><tab>", want: "> /|\n> │ /tool       list the tools\n  │ /tool NAME  show a tool with its full schema\n  │ /show N     show a call with its whole result\n  │ /quit       leave"},
		"a path is no command":                    {types: "/usr/", want: "> /usr/|"},
		"after a blank it is a prompt":            {types: " /q", want: ">  /q|"},
		"the list on a screen of few columns":     {types: "/", width: 20, most: 3, want: "> /|\n> │ /tool\n  … 3 more"},

		"paths are found by a part":               {types: "see @est", want: "> see @est|\n> │ main_test.go"},
		"paths are found by some letters":         {types: "see @mgo", want: "> see @mgo|\n> │ main.go\n  │ main_test.go"},
		"an @ in a word is none":                  {types: "me@ma", want: "> me@ma|"},
		"Enter takes a path":                      {types: "see @main.<enter>!", want: "> see @main.go !|"},
		"a path that is whole is sent":            {types: "see @main.go<enter>", want: "> |ask, or /help", sent: "see @main.go"},
		"a directory leads on":                    {types: "@do<tab>", want: "> @docs/|\n> │ docs/a b.txt\n  │ docs/notes.md"},
		"a directory is meant if it is sent":      {types: "@do<tab><enter>", want: "> |ask, or /help", sent: "@docs/"},
		"it is so without its slash":              {types: "see @docs<enter>", want: "> |ask, or /help", sent: "see @docs"},
		"a name with blanks is quoted":            {types: "@a b", then: "<^u>@do<tab><tab>x", want: "> @\"docs/a b.txt\" x|"},
		"it is found behind a quote too":          {types: "@\"docs/a b<tab>", want: "> @\"docs/a b.txt\" |"},
		"what does not show does in the list":     {types: "@deen", want: "> @deen|\n> │ cmd/<U+202E>deen.go"},
		"a name that cannot be typed is left out": {types: "@31m", want: "> @31m|"},
		"a word is completed when Tab says so":    {types: "fix mai<tab><down><tab>", want: "> fix main_test.go |"},
		"a command line, for its shell":           {types: "!cat docs/a<tab>", want: "! cat 'docs/a b.txt' |"},
		"a paste closes the list":                 {types: "/t", paste: "x", want: "> /tx|"},
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

// Whatever is typed and pasted: nothing that reaches the terminal does more than
// print, no row is longer than the screen or looks like one of ours, and there
// are no more rows than there is room for.
func TestNoKeyBreaksTheScreen(t *testing.T) {
	texts := []string{"a", " ", "\n", "word ", "日", "e\u0301", "👨\u200d👩\u200d👧", "🇩🇪", "\x1b[2J", "\u202e", "\t", "\x00", "@", "/", "!", "\"", "\\", "#", "\u0301\u0301\u0301\u0301",
		strings.Repeat("x\n", 20), strings.Repeat("y", 2000)}
	var names []string
	for name := range keys {
		if name != "enter" {
			names = append(names, name)
		}
	}
	for _, key := range []string{"a", "e", "k", "w", "u", "y", "_", "r", "j", "d"} {
		names = append(names, "^"+key)
	}
	slices.Sort(names)
	random := rand.New(rand.NewPCG(17, 1))
	for round := range 300 {
		p := &person{t: t, e: New(Options{Commands: commands, Complete: complete})}
		p.types("one<enter>two<enter>")
		width, most := 5+random.IntN(60), 1+random.IntN(12)
		if round%2 == 0 {
			p.update(tea.ModeReportMsg{Mode: ansi.ModeUnicodeCore, Value: ansi.ModeReset})
		}
		var typed []string
		for range 60 {
			step := "<" + names[random.IntN(len(names))] + ">"
			if random.IntN(2) == 0 {
				step = texts[random.IntN(len(texts))]
				p.update(tea.PasteMsg{Content: step})
			} else {
				p.types(step)
			}
			typed = append(typed, step)
			if random.IntN(10) == 0 {
				width = 5 + random.IntN(60)
			}
			view := p.e.View(width, most)
			c := p.e.Cursor()
			rows := strings.Split(view, "\n")
			if len(rows) > most || c.Y >= len(rows) || c.X >= width {
				t.Fatalf("%d rows of %d, the cursor at %d, %d of %d columns, after %.300q", len(rows), most, c.Y, c.X, width, typed)
			}
			for _, row := range rows {
				if columns := p.e.widths.StringWidth(row); columns > width {
					t.Fatalf("a row of %d columns, of %d, after %.300q:\n%s", columns, width, typed, row)
				}
				if strings.IndexFunc(strings.NewReplacer("\u200d", "", "\ufe0f", "").Replace(row), visible.IsHidden) >= 0 {
					t.Fatalf("a row with what does not show, after %.300q: %q", typed, row)
				}
				if !strings.HasPrefix(row, "  ") && !strings.Contains(">!^v", row[:1]) {
					t.Fatalf("a row that is not the editor's, after %.300q: %q", typed, row)
				}
			}
			screen := &terminaltest.Emulator{Columns: 200}
			screen.Write([]byte(view))
			if len(screen.Acts) > 0 || screen.Styled {
				t.Fatalf("the terminal was told to %q, after %.300q", screen.Acts, typed)
			}
		}
	}
}

func TestColoursAreThoseOfTheTerminal(t *testing.T) {
	p := &person{t: t, e: New(Options{Commands: commands, Color: true})}
	p.types("/")
	view := p.e.View(60, 12)
	for _, part := range strings.Split(view, "\x1b[")[1:] {
		if style, _, _ := strings.Cut(part, "m"); len(style) > 2 {
			t.Errorf("style %q", style)
		}
	}
	if !strings.Contains(view, "\x1b[1m") {
		t.Error("nothing is bold")
	}
}
