package redact

import (
	"bytes"
	"strings"
	"testing"
)

// Wherever a text is cut, the result is a beginning of the whole redacted text, and holds
// no secret.
func TestHeadLeavesNoPieceOfASecret(t *testing.T) {
	for _, v := range values[:4] {
		r := redactorOf(v)
		for form, leak := range leaks(v) {
			if len(leak) < MinBytes {
				continue
			}
			for _, text := range []string{
				strings.Repeat(".", 40) + leak + strings.Repeat(",", 2*r.Longest()),
				strings.Repeat(".", 40) + leak,
				strings.Repeat(leak+".", 30), // far shorter once it is redacted
			} {
				all := r.Text(text)
				for limit := range len(text) + 2 {
					head, whole := r.Head([]byte(text), limit)
					if len(head) > limit || !strings.HasPrefix(all, string(head)) {
						t.Fatalf("%s of %q: %d bytes of %.200q are %q", form, v, limit, text, head)
					}
					if whole && string(head) != all {
						t.Fatalf("%s of %q: %d bytes of %.200q are not all of it: %q", form, v, limit, text, head)
					}
				}
				if head, whole := r.Head([]byte(text), max(len(text), len(all))); string(head) != all || !whole {
					t.Errorf("%s of %q: of all of %.200q there is %q, %v", form, v, text, head, whole)
				}
			}
		}
	}
}

// The author of a text must not learn from the cut whether a guess at the beginning of a
// secret is right, even if the author knows another secret.
func TestHeadDoesNotTellHowASecretBegins(t *testing.T) {
	const value = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
	another := strings.Repeat("known-to-the-guest.", 5)
	r := redactorOf(value, another)
	for _, before := range []string{strings.Repeat(".", 50), strings.Repeat(another, 4), ""} {
		for n := range len(value) {
			for limit := 0; limit < 150; limit += 2 {
				for _, behind := range []int{0, 1, 60, 1000} {
					text := func(end string) []byte { return []byte(before + end + strings.Repeat("\x00", behind)) }
					right, _ := r.Head(text(value[:n]), limit)
					wrong, _ := r.Head(text(strings.Repeat(".", n)), limit)
					if len(right) != len(wrong) {
						t.Fatalf("%d bytes of it, %d behind, limit %d: %d bytes are left, and %d of another text", n, behind, limit, len(right), len(wrong))
					}
					if want := min(limit, len(text(value[:n]))); !strings.HasPrefix(before, another) && len(wrong) != want {
						t.Fatalf("%d bytes are left where nothing is to be hidden, want %d", len(wrong), want)
					}
				}
			}
		}
	}
}

// Head reads no more of a long text than necessary.
func TestHeadIsBounded(t *testing.T) {
	r := redactorOf("hunter2-hunter2")
	text := bytes.Repeat([]byte("hunter2-hunter2"), 1<<20)
	if n := testing.AllocsPerRun(10, func() { r.Head(text, 100) }); n > 50 {
		t.Errorf("%v allocations", n)
	}
	if head, whole := r.Head(text, 100); len(head) > 100 || whole {
		t.Errorf("%q, %v", head, whole)
	}
	var none *Redactor
	for _, r := range []*Redactor{none, new(Redactor)} {
		if head, whole := r.Head([]byte("abcdef"), 3); string(head) != "abc" || whole {
			t.Errorf("%q, %v", head, whole)
		}
		if head, whole := r.Head([]byte("abc"), 3); string(head) != "abc" || !whole {
			t.Errorf("%q, %v", head, whole)
		}
	}
}
