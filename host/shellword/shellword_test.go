package shellword

import (
	"os/exec"
	"strings"
	"testing"
)

// A shell reads a quoted text as exactly the original one.
func TestAShellReadsWhatWasQuoted(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal("bash is needed, as the tool of that name needs it")
	}
	for _, text := range []string{
		"", "plain", "a b", "it's", `back\slash`, "two\nlines", "tab\there", "esc\x1b[2J", "ls\u202e txt", "zero\u200bwidth", "é", "e\u0301", "\xff",
		"\u3164", "$(touch x)`touch y`", "line\n'and'\\n$HOME", "\ufe0f1",
	} {
		word, ok := Quote(text)
		if !ok {
			t.Errorf("%q has no word", text)
		}
		shell := bash
		if IsPOSIX(word) {
			shell = "sh"
		}
		for i := range len(word) {
			if word[i] < ' ' || word[i] == 0x7f {
				t.Errorf("%q: a control character is in %q", text, word)
			}
		}
		cmd := exec.Command(shell, "-c", "printf %s "+word)
		cmd.Env = []string{"LC_ALL=C", "PATH=/usr/bin:/bin"}
		out, err := cmd.Output()
		if err != nil || string(out) != text {
			t.Errorf("%q became %q by %s (%v)", text, out, word, err)
		}
		if strings.ContainsAny(word, "\u202e\u200b\u3164\u0301") {
			t.Errorf("%q: what does not show is in %q", text, word)
		}
	}
	if _, ok := Quote("a\x00b"); ok {
		t.Error("a word with a NUL")
	}
}
