package editor

import (
	"cmp"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
)

// recall is the state of walking through the history with Up and Down.
type recall struct {
	on      bool     // the walk is going on: the text was not changed since the first Up
	entries []string // prompts that begin with the typed text, the newest last
	at      int
	draft   state // state of the editor before the walk, restored by Down after the newest prompt
}

// walkHistory shows the next older or newer prompt that begins with the typed text (any prompt
// if nothing was typed).
func (e *Editor) walkHistory(by int) {
	if !e.recall.on {
		all := e.history.all()
		typed := e.Value()
		entries := slices.DeleteFunc(slices.Clone(all), func(entry string) bool { return !strings.HasPrefix(entry, typed) || entry == typed })
		if len(entries) == 0 {
			entries = all
		}
		e.recall = recall{on: true, entries: entries, at: len(entries), draft: state{e.text, e.at}}
	}
	r := &e.recall
	to := r.at + by
	switch {
	case to < 0 || to > len(r.entries):
		return
	case to == len(r.entries):
		e.text, e.at, e.rows = r.draft.text, r.draft.at, nil
	default:
		e.text, e.rows = e.load(r.entries[to]), nil
		e.at = len(e.text)
		if by < 0 {
			e.at = e.lineEnd(e.textStart()) // then the next Up continues the walk
		}
	}
	r.at, e.goal = to, -1
}

// search is a search of the history, from the newest prompt to the oldest.
type search struct {
	on    bool
	query string
	at    int    // index of the prompt shown; the number of prompts: none yet
	says  string // notice why no other prompt was found; empty: one was found
	draft state
}

// searchKey handles a key while a search is open. It returns false if the key ends the search;
// the caller then handles the key, with the found prompt as the text.
func (e *Editor) searchKey(name, text string) bool {
	s := &e.search
	switch name {
	case "ctrl+r", "up", "ctrl+p":
		e.find(s.at-1, "nothing older")
	case "esc", "ctrl+c", "ctrl+g":
		e.text, e.at, e.rows, s.on = s.draft.text, s.draft.at, nil, false
	case "enter", "tab":
		e.endSearch()
	case "backspace", "ctrl+h":
		if r := []rune(s.query); len(r) > 0 {
			s.query = string(r[:len(r)-1])
		}
		e.find(len(e.history.all())-1, "not found")
	default:
		if text == "" {
			e.endSearch()
			return false
		}
		if len(s.query)+len(text) <= foldChars {
			s.query += text
		}
		e.find(min(s.at, len(e.history.all())-1), "not found")
	}
	return true
}

// endSearch ends the search and makes the found prompt the text. Undo restores the old text.
func (e *Editor) endSearch() {
	e.search.on, e.recall.on = false, false
	e.undo = append(e.undo, e.search.draft)
	e.lastAction = otherAction
}

// find shows the newest prompt that contains the query, starting with index from and going to
// older ones. If there is none, none becomes the notice; then the prompt shown stays if it
// contains the query, and otherwise the text from before the search comes back.
func (e *Editor) find(from int, none string) {
	s, all := &e.search, e.history.all()
	s.says = ""
	if s.query != "" {
		for i := from; i >= 0; i-- {
			if s.matches(all[i]) {
				s.at = i
				e.text, e.rows = e.load(all[i]), nil
				e.at = len(e.text)
				return
			}
		}
		s.says = none
		if s.at < len(all) && s.matches(all[s.at]) {
			return
		}
	}
	e.text, e.at, e.rows, s.at = s.draft.text, s.draft.at, nil, len(all)
}

func (s *search) matches(entry string) bool {
	return strings.Contains(strings.ToLower(entry), strings.ToLower(s.query))
}

func (s *search) sign(width int) string {
	if width < 30 {
		return "  ? "
	}
	return "  search: "
}

func (s *search) view(e *Editor, width int) string {
	says := "   " + cmp.Or(s.says, "Enter takes it, Ctrl-R: older, Esc: back")
	room := max(width-1-s.column(e, width), 0)
	return e.style(terminal.Dim, s.sign(width)) + s.shown(e, width) + e.style(terminal.Dim, e.widths.Truncate(says, room, "…"))
}

// shown returns the end of the query, as much as fits into width columns.
func (s *search) shown(e *Editor, width int) string {
	line := terminal.Line(s.query)
	if more := e.widths.StringWidth(line) - max(width-len(s.sign(width))-1, 1); more > 0 {
		line = e.widths.TruncateLeft(line, more+1, "…")
	}
	return line
}

func (s *search) column(e *Editor, width int) int {
	return len(s.sign(width)) + e.widths.StringWidth(s.shown(e, width))
}
