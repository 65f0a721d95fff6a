package nearest

import (
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	words := []string{"run", "chat", "session", "file_read", "file_write", "größe"}
	for word, want := range map[string]string{
		"rnu": "", "ru": "run", "chta": "chat", "sesion": "session", "file_raed": "file_read", "file_wirte": "file_write",
		"run": "run", "": "", "xyz": "", "completely": "", "grösse": "größe",
		strings.Repeat("session", 100): "",
	} {
		if got := Find(word, words); got != want {
			t.Errorf("%.20q: got %q, want %q", word, got, want)
		}
	}
	if got := Find("a", nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	if got := Find("bat", []string{"cat", "hat"}); got != "cat" {
		t.Errorf("of two that are as close: %q, want the first", got)
	}
}

func TestHint(t *testing.T) {
	if got := Hint("chta", []string{"chat"}); got != ` (did you mean "chat"?)` {
		t.Errorf("got %q", got)
	}
	if got := Hint("nothing", []string{"chat"}); got != "" {
		t.Errorf("got %q", got)
	}
}
