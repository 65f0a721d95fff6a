package editor

import (
	"path"
	"slices"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/shellword"
)

// Kind is a kind of names that the editor completes.
type Kind int

const (
	None         Kind = iota
	CommandNames      // commands of the chat
	Tools
	Profiles // profiles of models
	Paths
)

const (
	maxListed     = 8      // rows of the list; it scrolls
	maxNameBytes  = 512    // bytes of a name; a longer one is not offered
	maxCandidates = 50_000 // number of names of a request; further ones are dropped
)

// completion holds the list of names for the word before the cursor.
type completion struct {
	word         word
	seq          int    // number of the last request for names
	requested    string // the last request in words, to make it only once; empty: there was none
	all          []string
	acceptSingle bool // Tab was pressed before the names arrived: a single match is accepted
	matches      []entry
	selected     int  // index of the chosen match in matches
	moved        bool // an arrow key has chosen the match
	dismissed    bool // Esc was pressed: no list for this word until Tab
}

// entry is a row of the list. args and what are those of a [Command].
type entry struct{ name, args, what string }

func (l *completion) close() { *l = completion{seq: l.seq} }

func (e *Editor) listed() bool { return len(e.list.matches) > 0 && !e.search.on }

// word is the word before the cursor, which a completed name replaces.
type word struct {
	kind      Kind
	from      int    // index of its first piece in the text
	text      string // typed part of the name
	prefix    string // text of the word before the name: @, @" or nothing
	shell     bool   // the word is part of a shell command
	onlyOnTab bool   // the word is completed only when Tab is pressed
}

// namesFound is the message with the names that were requested.
type namesFound struct {
	seq   int
	names []string
}

// word returns the word before the cursor; its kind is None if a name cannot be there.
func (e *Editor) word() word {
	from := e.lineStart(e.at)
	for i := e.at; i > from; i-- {
		if e.text[i-1].pasted > 0 {
			from = i // a folded paste does not contain names
		}
	}
	line := e.text[from:e.at]
	bash := e.textStart() > 0
	if words := join(line); !bash && from == 0 && strings.HasPrefix(words, "/") {
		name, arg, more := strings.Cut(words, " ")
		switch {
		case !more && strings.Count(name, "/") == 1:
			return word{kind: CommandNames, text: name}
		case more && !strings.Contains(arg, " "):
			for _, c := range e.opts.Commands {
				if c.Name == name && c.Arg != None {
					return word{kind: c.Arg, from: e.at - len(e.pieces(arg)), text: arg}
				}
			}
		}
	}
	for i := len(line) - 1; i >= 0; i-- {
		if line[i].text != "@" || i > 0 && !OpensMention(last(line[i-1].text)) {
			continue
		}
		rest := join(line[i+1:])
		quoted, isQuoted := strings.CutPrefix(rest, `"`)
		switch {
		case isQuoted && !strings.Contains(quoted, `"`):
			return word{kind: Paths, from: from + i, text: quoted, prefix: `@"`, onlyOnTab: bash}
		case !isQuoted && !strings.ContainsAny(rest, " \t"):
			return word{kind: Paths, from: from + i, text: rest, prefix: "@", onlyOnTab: bash}
		}
		break
	}
	start := len(line)
	for start > 0 && !line[start-1].blank() {
		start--
	}
	w := word{kind: Paths, from: from + start, text: join(line[start:]), shell: bash, onlyOnTab: true}
	if w.text == "" {
		w.kind = None
	}
	return w
}

// complete opens or updates the list for the word before the cursor. With tab it also does so
// for a word that is only completed on Tab, and accepts a single match. The returned command
// requests names; nil: no request is needed.
func (e *Editor) complete(tab bool) tea.Cmd {
	l := &e.list
	w := e.word()
	if w.kind == None || len(w.text) > maxNameBytes || w.onlyOnTab && !tab && (l.word.from != w.from || l.word.kind != w.kind || l.requested == "") {
		l.close()
		return nil
	}
	if w.kind != l.word.kind || w.from != l.word.from || l.dismissed && tab {
		l.close()
	}
	if l.dismissed {
		return nil
	}
	l.word, l.acceptSingle = w, tab
	if w.kind == CommandNames {
		e.filterNames()
		return nil
	}
	// A request for a directory leaves out hidden files and files far below: those need
	// their own request.
	dir, base := path.Split(w.text)
	asked := "names of " + dir
	if strings.HasPrefix(base, ".") {
		asked = "hidden names of " + dir
	}
	if asked == l.requested {
		e.filterNames()
		return nil
	}
	if e.opts.Complete == nil {
		return nil
	}
	l.requested = asked
	l.seq++
	e.filterNames()
	seq, ask := l.seq, e.opts.Complete
	untypeable := func(r rune) bool { return r == '"' || unicode.IsControl(r) }
	return func() tea.Msg {
		var names []string
		for _, name := range ask(w.kind, w.text) {
			if name != "" && len(name) <= maxNameBytes && !strings.ContainsFunc(name, untypeable) && len(names) < maxCandidates {
				names = append(names, name)
			}
		}
		return namesFound{seq, names}
	}
}

func (e *Editor) filterNames() {
	l := &e.list
	l.matches, l.selected, l.moved = nil, 0, false
	if l.word.kind == CommandNames {
		for _, c := range e.opts.Commands {
			if strings.HasPrefix(c.Name, strings.ToLower(l.word.text)) {
				l.matches = append(l.matches, entry{c.Name, c.Args, c.What})
			}
		}
	} else {
		whole := l.word.kind == Tools || l.word.kind == Profiles || l.word.prefix == ""
		for _, name := range ranked(l.all, l.word.text, whole) {
			l.matches = append(l.matches, entry{name: name})
		}
	}
	if l.acceptSingle && len(l.matches) == 1 {
		e.accept()
	}
}

// ranked returns the names that match typed, best first. A name matches if it begins with
// typed. If begin is false, a name also matches, in this order, if its last part begins with
// typed, if its last part contains typed, if the whole name contains typed, or if its last
// part contains the characters of typed in their order.
func ranked(names []string, typed string, begin bool) []string {
	low := strings.ToLower(typed)
	var by [5][]string
	for _, name := range names {
		is := strings.ToLower(name)
		base := path.Base(is)
		switch {
		case strings.HasPrefix(is, low):
			by[0] = append(by[0], name)
		case begin:
		case strings.HasPrefix(base, low):
			by[1] = append(by[1], name)
		case strings.Contains(base, low):
			by[2] = append(by[2], name)
		case strings.Contains(is, low):
			by[3] = append(by[3], name)
		case isSubsequence(base, low):
			by[4] = append(by[4], name)
		}
	}
	if slices.ContainsFunc(by[:4], func(names []string) bool { return len(names) > 0 }) {
		by[4] = nil
	}
	return slices.Concat(by[:]...)
}

func isSubsequence(s, part string) bool {
	for _, r := range part {
		i := strings.IndexRune(s, r)
		if i < 0 {
			return false
		}
		s = s[i+len(string(r)):]
	}
	return true
}

// listKey handles a key while the list is open; done is false if the list ignores the key.
func (e *Editor) listKey(name string) (cmd tea.Cmd, done bool) {
	l := &e.list
	switch name {
	case "up", "ctrl+p":
		l.selected, l.moved = (l.selected+len(l.matches)-1)%len(l.matches), true
	case "down", "ctrl+n":
		l.selected, l.moved = (l.selected+1)%len(l.matches), true
	case "esc", "ctrl+c", "ctrl+g":
		*l = completion{seq: l.seq, word: l.word, dismissed: true}
	case "enter":
		if !l.moved && l.isComplete() {
			return nil, false // Enter sends
		}
		e.accept()
		return e.complete(false), true
	case "tab":
		e.accept()
		return e.complete(false), true
	default:
		return nil, false
	}
	return nil, true
}

// isComplete reports whether the word needs no completion: it equals a name in the list, or it
// is a directory, or it is empty. A command must equal a name.
func (l *completion) isComplete() bool {
	text := l.word.text
	return l.word.kind != CommandNames && (text == "" || strings.HasSuffix(text, "/")) ||
		slices.ContainsFunc(l.matches, func(f entry) bool { return strings.TrimSuffix(f.name, "/") == text })
}

func (e *Editor) accept() {
	l := &e.list
	w, f := l.word, l.matches[l.selected]
	name := f.name
	goesOn := w.kind == Paths && strings.HasSuffix(name, "/")
	switch quoted, ok := shellword.Quote(name); {
	case w.prefix != "":
		if name = "@" + quoteMention(name); goesOn {
			name = strings.TrimSuffix(name, `"`)
		}
	case w.shell && ok:
		name = quoted
	}
	end := e.at
	if !goesOn && (w.kind != CommandNames || f.args != "") && (end == len(e.text) || !e.text[end].blank()) {
		name += " "
	}
	if e.hasRoom(len(name)) {
		e.replace(w.from, end, e.pieces(name))
	}
	e.list.close()
	if w.kind == CommandNames {
		l.word, l.dismissed = e.word(), f.args == "" // no argument is left to choose
	}
}

// view returns the list in at most limit rows.
func (l *completion) view(e *Editor, width, limit int) (out []string) {
	n := min(len(l.matches), maxListed, limit)
	more := len(l.matches) - n
	if more > 0 && n > 1 {
		n--
		more++
	}
	from := min(max(l.selected-n/2, 0), len(l.matches)-n)
	column := 0
	for _, f := range l.matches {
		column = max(column, len(f.name)+len(f.args)+1)
	}
	for i, f := range l.matches[from : from+n] {
		bar, style := "  │ ", ""
		if from+i == l.selected {
			bar, style = "> │ ", terminal.Bold
		}
		room := width - len("> | ") - 1
		name := terminal.Line(strings.TrimSpace(f.name + " " + f.args))
		if more := e.widths.StringWidth(name) - room; more > 0 {
			name = e.widths.TruncateLeft(name, more+1, "…") // the end of a path matters most
		}
		line := e.style(style, name)
		if what := room - column - 2; f.what != "" && what > 8 {
			line += strings.Repeat(" ", column+2-e.widths.StringWidth(name)) + e.style(terminal.Dim, e.widths.Truncate(terminal.Line(f.what), what, "…"))
		}
		out = append(out, bar+line)
	}
	if more > 0 && n > 0 && len(out) < limit {
		out = append(out, e.style(terminal.Dim, "  … "+humanize.Exact(int64(more))+" more"))
	}
	return out
}
