//go:build cgo

package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/session/sessiontest"
)

// TestWhatIsSettledIsNotLookedAtAgain checks that a start reads only calls after the
// recorded event, and that this event is never behind a call without a result.
func TestWhatIsSettledIsNotLookedAtAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	store := openAt(t, path)
	event := func(typ session.Type, call string) session.Draft {
		return session.Draft{Session: "a", Type: typ, Call: call, Body: []byte(`{}`)}
	}
	var done []session.Draft
	for i := range 2 * completedStep {
		call := fmt.Sprint("c", i)
		done = append(done, event(session.TypeCallIntended, call), event(session.TypeToolResult, call))
	}
	sessiontest.Append(t, store, done...)
	open := func() int {
		t.Helper()
		calls, err := store.OpenCalls(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(calls)
	}
	if got := open(); got != 0 || store.completedUpTo(t.Context()) != 4*completedStep {
		t.Fatalf("%d calls are open, and %d events are settled", got, store.completedUpTo(t.Context()))
	}
	first := sessiontest.Append(t, store, event(session.TypeCallIntended, "open"))[0].Seq
	sessiontest.Append(t, store, done...)
	if got := open(); got != 1 || store.completedUpTo(t.Context()) != 4*completedStep {
		t.Errorf("%d calls are open, and %d events are settled; the open one is event %d", got, store.completedUpTo(t.Context()), first)
	}
	var hash string
	if err := rawDB(t, path).QueryRow("SELECT lower(hex(hash)) FROM events WHERE seq = ?", first+1).Scan(&hash); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want int
	}{
		"an event behind it is settled": {fmt.Sprintf("%d %s\n", first+1, hash), 0o600, 0},
		"the hash of another database":  {fmt.Sprintf("%d %s\n", first+1, hash[2:]+hash[:2]), 0o600, 1},
		"an event that there is not":    {fmt.Sprintf("%d %s\n", 1<<40, hash), 0o600, 1},
		"no number":                     {"all " + hash, 0o600, 1},
		"nothing":                       {"", 0o600, 1},
		"a file that others can write":  {fmt.Sprintf("%d %s\n", first+1, hash), 0o622, 1},
		"a number below all":            {"-1 " + hash, 0o600, 1},
		"no hash":                       {fmt.Sprintf("%d \n", first+1), 0o600, 1},
	} {
		file := path + completedSuffix
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, c.mode); err != nil {
			t.Fatal(err)
		}
		if got := open(); got != c.want {
			t.Errorf("%s: %d calls are open, want %d", name, got, c.want)
		}
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}
