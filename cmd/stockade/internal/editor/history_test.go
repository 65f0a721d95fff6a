//go:build unix

package editor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	tea "charm.land/bubbletea/v2"
)

func TestPromptsComeBack(t *testing.T) {
	const draft = "> ne|"
	for name, c := range map[string]struct{ types, want string }{
		"the newest first":                         {"<up>", "> newest|"},
		"and older ones":                           {"<up><up>", "> first line|\n  second line"},
		"down leads into a prompt and out of it":   {"<up><up><down><down><down>", "> |ask, or /help"},
		"it ends at the oldest":                    {"<up><up><up><up><up><up>", "> token [redacted]|"},
		"what was typed narrows it, and is kept":   {"ol<up><up><down>", "> ol|"},
		"only what begins like it":                 {"ol<up>", "> oldest|"},
		"all, if nothing begins like it":           {"zz<up>", "> newest|"},
		"what was changed is a draft":              {"<up><back><up>", "> newest|"},
		"within a prompt arrows move":              {"<up><up><down>", "> first line\n  second lin|e"},
		"a search finds the newest":                {"<^r>e", "> newest\n  search: e|   Enter takes it, Ctrl-R: older, Esc: back"},
		"a search goes on":                         {"<^r>e<^r>", "> first line\n  second line\n  search: e|   Enter takes it, Ctrl-R: older, Esc: back"},
		"a search is for a part, in any case":      {"<^r>LINE<enter>", "> first line\n  second line|"},
		"a search ends with the draft":             {"draft<^r>e<esc>", "> draft|"},
		"what is not there":                        {"<^r>xyz", "> |ask, or /help"},
		"an arrow takes what was found":            {"<^r>old<home>", "> |oldest"},
		"undo takes back what a search has found":  {"ne<^r>old<enter><^_>", draft},
		"a letter less finds the newest again":     {"<^r>el<back>", "> newest\n  search: e|   Enter takes it, Ctrl-R: older, Esc: back"},
		"what began with a blank was not kept":     {"<^r>secret", "> |ask, or /help"},
		"what was redacted is kept so":             {"<^r>token<enter>", "> token [redacted]|"},
		"a paste comes back by its size":           {"<^r>pasted<enter>", "> pasted [pasted 9 lines]!|"},
		"a paste is not numbered anew by going on": {"<up><up><^r>pasted<enter>", "> pasted [pasted 9 lines]!|"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "state", "history")
			options := Options{History: file, Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") }}
			first := &person{t: t, e: New(options)}
			first.types("token hunter2<enter>oldest<enter> secret<enter>first line<^j>second line<enter>")
			p := &person{t: t, e: New(options)}
			if strings.Contains(c.types, "pasted") {
				p.types("pasted ")
				p.update(tea.PasteMsg{Content: strings.Repeat("x\n", 9)})
				p.types("!<enter>")
			}
			p.types("newest<enter>newest<enter>" + c.types)
			got := p.screen(60, 12)
			if strings.HasSuffix(c.want, "/help") && p.e.search.on {
				if p.e.Value() != "" || !strings.Contains(got, "not found") {
					t.Errorf("it found\n%s", got)
				}
				return
			}
			if got != c.want {
				t.Errorf("the screen is\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestTheFileOfTheHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "history")
	entries := []string{"one", "two\nlines\ttab", "日本 \u2028 \u202e", `"\`}
	h := history{path: path}
	for _, entry := range append(entries, strings.Repeat("x", maxEntryBytes)) {
		if err := h.add(entry); err != nil {
			t.Fatal(err)
		}
	}
	if got := (&history{path: path}).all(); !slices.Equal(got, entries) {
		t.Errorf("%q came back, want %q", got, entries)
	}
	for name, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): os.ModeDir | 0o700} {
		if st, err := os.Stat(name); err != nil || st.Mode() != mode {
			t.Errorf("%s has mode %v, %v", name, st.Mode(), err)
		}
	}
}

func TestABrokenHistoryIsReadAsFarAsItGoes(t *testing.T) {
	long := strings.Repeat("\"x\"\n", maxHistoryBytes/4)
	for name, c := range map[string]struct {
		file string
		want []string
	}{
		"no lines":                  {strings.Repeat("\x00", 5000), nil},
		"other things than strings": {"{}\n12\n\"a\"\nnull\n[\n\"b\"\n\"\"\n", []string{"a", "b"}},
		"half a line":               {"\"a\"\n\"b", []string{"a"}},
		"a line without an end":     {strings.Repeat("[", maxHistoryBytes+10) + "\n\"a\"\n", []string{"a"}},
		"a thousand at most":        {long + "\"last\"\n", append(slices.Repeat([]string{"x"}, maxEntries-1), "last")},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "history")
			if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			h := history{path: path}
			if got := h.all(); !slices.Equal(got, c.want) {
				t.Errorf("%d came back, the first is %.20q", len(got), got[:min(1, len(got))])
			}
			if err := h.add("after it"); err != nil {
				t.Error(err)
			}
			if got := (&history{path: path}).all(); len(got) == 0 || got[len(got)-1] != "after it" {
				t.Error("what was added after it is lost")
			}
			if st, err := os.Stat(path); err != nil || st.Size() > maxHistoryBytes {
				t.Errorf("the file has %d bytes, %v", st.Size(), err)
			}
		})
	}
}

func TestAHistoryThatIsNoFileIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &person{t: t, e: New(Options{History: path})}
	p.types("<up>x<enter>")
	if view := p.e.View(80, 5); !strings.Contains(view, "keep the history: ") || len(p.sent) != 1 {
		t.Errorf("%q was sent, and the screen is\n%s", p.sent, view)
	}
	p.types("<up>")
	if got := p.e.Value(); got != "x" {
		t.Errorf("%q came back in the same chat", got)
	}
}

// Chats append at the same time, and one of them shortens the file again and
// again: no prompt that is among the newest is lost, and no line is broken.
func TestChatsShareAHistory(t *testing.T) {
	const chats, prompts = 8, 40
	path := filepath.Join(t.TempDir(), "history")
	if err := os.WriteFile(path, []byte(strings.Repeat("\"old\"\n", maxHistoryBytes/6+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for chat := range chats {
		wg.Go(func() {
			h := history{path: path}
			for i := range prompts {
				if err := h.add(fmt.Sprintf("chat %d, prompt %d %s", chat, i, strings.Repeat("x", 20_000))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	after := (&history{path: path}).all()
	newest := after[max(0, len(after)-maxHistoryBytes/2/25_000):] // the part that shortening never removes
	next := map[string]int{}
	for _, entry := range newest {
		var chat, prompt int
		if _, err := fmt.Sscanf(entry, "chat %d, prompt %d ", &chat, &prompt); err != nil {
			t.Fatalf("%.40q is there", entry)
		}
		key := fmt.Sprint(chat)
		if last, ok := next[key]; ok && prompt != last {
			t.Errorf("of chat %d prompt %d follows, want %d", chat, prompt, last)
		}
		next[key] = prompt + 1
	}
	for chat, n := range next {
		if n != prompts {
			t.Errorf("the last prompt of chat %s is %d", chat, n)
		}
	}
	if len(next) == 0 {
		t.Error("nothing was compared")
	}
}
