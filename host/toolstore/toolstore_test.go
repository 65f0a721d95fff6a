package toolstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

var tasksModule = &tool.Module{Name: "tasks", Origin: tool.OriginBuiltin}

// log holds events, and builds stores from them.
type log struct {
	t      *testing.T
	now    time.Time
	limits policy.Limits
	events []session.Event
	stores *Stores
}

func newLog(t *testing.T, limits policy.Limits) *log {
	l := &log{t: t, now: time.UnixMilli(1_000_000), limits: limits}
	l.resume()
	return l
}

// resume builds the stores again from the log.
func (l *log) resume() {
	l.stores = New(l.limits, func() time.Time { return l.now })
	for _, e := range l.events {
		l.stores.Fold(e)
	}
}

// call does something with the store of a module, and records the changes unless it fails.
func (l *log) call(mod *tool.Module, do func(v *View) error) (recorded session.ToolStoreChanges, err error) {
	l.t.Helper()
	v, err := l.stores.Open(l.t.Context(), mod)
	if err != nil {
		l.t.Fatal(err)
	}
	defer v.Close()
	if err := do(v); err != nil {
		return recorded, err
	}
	recorded, any := v.Changes("t")
	if any {
		e := session.Seal(session.NewDraft(session.TypeToolStoreChanges, 1, 1, "c", recorded), uint64(len(l.events)+1), l.now, [32]byte{}, [32]byte{})
		l.events = append(l.events, e)
		l.stores.Fold(e)
	}
	return recorded, nil
}

// holds compares all stores with lines of the form MODULE KEY VALUE.
func (l *log) holds(want ...string) {
	l.t.Helper()
	var got []string
	for _, c := range l.stores.List() {
		sum := 0
		for _, e := range c.Entries {
			got = append(got, fmt.Sprintf("%s %s %s", c.Module, e.Key, e.Value))
			sum += e.bytes()
		}
		if sum != c.Bytes {
			l.t.Errorf("%s has %d bytes, and %d are counted", c.Owner, sum, c.Bytes)
		}
	}
	if !slices.Equal(got, want) {
		l.t.Errorf("it holds %q, want %q", got, want)
	}
}

func set(values ...string) func(*View) error {
	return func(v *View) error {
		for i := 0; i < len(values); i += 2 {
			if err := v.Set(values[i], []byte(values[i+1]), nil); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestWhatIsRecordedIsWhatIsKept(t *testing.T) {
	l := newLog(t, policy.DefaultLimits())
	steps := []struct {
		name string
		do   func(*View) error
		want session.ToolStoreChanges
		then []string
	}{
		{"two values", set("b", "2", "a", "1"), session.ToolStoreChanges{Set: []session.ToolStoreEntry{{Key: "a", Text: "1"}, {Key: "b", Text: "2"}}}, []string{"tasks a 1", "tasks b 2"}},
		{"a change and a deletion", func(v *View) error { v.Delete("a"); return set("b", "3")(v) },
			session.ToolStoreChanges{Set: []session.ToolStoreEntry{{Key: "b", Text: "3"}}, Deleted: []string{"a"}}, []string{"tasks b 3"}},
		{"what is no text", set("c", "\xff\x00", "d", "\x01", "e", "ü\n\t<&>\u2028", "f", ""),
			session.ToolStoreChanges{Set: []session.ToolStoreEntry{{Key: "c", Base64: "/wA="}, {Key: "d", Base64: "AQ=="}, {Key: "e", Text: "ü\n\t<&>\u2028"}, {Key: "f"}}},
			[]string{"tasks b 3", "tasks c \xff\x00", "tasks d \x01", "tasks e ü\n\t<&>\u2028", "tasks f "}},
		{"what comes and goes", func(v *View) error { err := set("x", "1")(v); v.Delete("x"); v.Delete("none"); return err }, session.ToolStoreChanges{}, nil},
		{"nothing but a look", func(v *View) error {
			if keys := v.Keys("", 3); !slices.Equal(keys, []string{"b", "c", "d"}) {
				return fmt.Errorf("the keys are %q", keys)
			}
			if keys := v.Keys("e", 10); !slices.Equal(keys, []string{"e"}) {
				return fmt.Errorf("the keys with e are %q", keys)
			}
			value, ok := v.Get("b")
			if _, none := v.Get("none"); string(value) != "3" || !ok || none {
				return fmt.Errorf("it gets %q, %v, %v", value, ok, none)
			}
			return nil
		}, session.ToolStoreChanges{}, nil},
		{"a call that sees what it does", func(v *View) error {
			before := v.Keys("", 100)
			err := set("aa", "1")(v)
			v.Delete("f")
			if now := v.Keys("", 100); len(before) != 5 || !slices.Equal(now, []string{"aa", "b", "c", "d", "e"}) {
				return fmt.Errorf("the keys were %q, and are %q", before, now)
			}
			v.Delete("aa")
			return errors.Join(err, set("f", "")(v))
		}, session.ToolStoreChanges{Set: []session.ToolStoreEntry{{Key: "f"}}}, nil},
	}
	for _, s := range steps {
		got, err := l.call(tasksModule, s.do)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		s.want.Tool, s.want.Module, s.want.Owner = "t", "tasks", "builtin:tasks"
		if diff := cmp.Diff(s.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.name, diff)
		}
		for range 2 { // now, and after reading the log
			if s.then != nil {
				l.holds(s.then...)
			}
			l.resume()
		}
	}
}

func TestACallThatFailsKeepsNothing(t *testing.T) {
	l := newLog(t, policy.DefaultLimits())
	failed := errors.New("failed")
	if _, err := l.call(tasksModule, set("a", "1")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.call(tasksModule, func(v *View) error { v.Delete("a"); return errors.Join(set("b", "2")(v), failed) }); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	l.holds("tasks a 1")
	if l.stores.bytes != (Entry{Key: "a", Value: []byte("1")}).bytes() {
		t.Errorf("%d bytes are counted", l.stores.bytes)
	}
}

// A module finds the data of the same module, and of no other.
func TestStoresAreOfTheirModule(t *testing.T) {
	mods := map[string]*tool.Module{
		"builtin":              tasksModule,
		"added, of that name":  {Name: "tasks", Origin: tool.OriginAdded, Digest: "1"},
		"added, another":       {Name: "tasks", Origin: tool.OriginAdded, Digest: "2"},
		"a file":               {Name: "tasks", Origin: tool.OriginFile, Digest: "3"},
		"signed":               {Name: "tasks", Origin: tool.OriginAdded, Digest: "4", Signer: "acme"},
		"signed by another":    {Name: "tasks", Origin: tool.OriginAdded, Digest: "5", Signer: "other"},
		"signed, another name": {Name: "builtin:tasks", Origin: tool.OriginAdded, Digest: "6", Signer: "acme"},
	}
	l := newLog(t, policy.DefaultLimits())
	for name, mod := range mods {
		if _, err := l.call(mod, func(v *View) error {
			if keys := v.Keys("", 10); len(keys) != 0 {
				t.Errorf("%s finds %q", name, keys)
			}
			return set("key", name)(v)
		}); err != nil {
			t.Fatal(err)
		}
	}
	newer := *mods["signed"]
	newer.Digest = "7"
	mods["signed"] = &newer // an update by the same signer
	for name, mod := range mods {
		if _, err := l.call(mod, func(v *View) error {
			if value, _ := v.Get("key"); string(value) != name {
				t.Errorf("%s finds %q", name, value)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestQuotas(t *testing.T) {
	full := func(limit int) func(error) bool {
		return func(err error) bool {
			e, ok := errors.AsType[*policy.StoreFullError](err)
			return ok && e.Limit == limit
		}
	}
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	limits := policy.Limits{StoreBytes: 1 << 20, SessionStoreBytes: 1 << 20}
	x := func(n int) string { return strings.Repeat("x", n) }
	other := &tool.Module{Name: "other", Origin: tool.OriginBuiltin}
	for name, c := range map[string]struct {
		limits policy.Limits
		before func(*View) error // an earlier call of the module
		others func(*View) error // a call of another module
		do     func(*View) error
		fails  func(error) bool // nil: no error
	}{
		"a store that is just full": {limits: policy.Limits{StoreBytes: 165, SessionStoreBytes: 200}, do: set("k", x(100))},
		"a byte more":               {limits: policy.Limits{StoreBytes: 165, SessionStoreBytes: 200}, do: set("k", x(101)), fails: full(165)},
		"a small one more":          {limits: policy.Limits{StoreBytes: 165, SessionStoreBytes: 200}, before: set("k", x(100)), do: set("", ""), fails: full(165)},
		"a full one that shrinks":   {limits: policy.Limits{StoreBytes: 165, SessionStoreBytes: 200}, before: set("k", x(100)), do: set("k", x(99), "k", x(100))},
		"another in its place": {limits: policy.Limits{StoreBytes: 165, SessionStoreBytes: 165}, before: set("k", x(100)),
			do: func(v *View) error { v.Delete("k"); return set("l", x(100))(v) }},
		"a session that is full": {limits: policy.Limits{StoreBytes: 165, SessionStoreBytes: 200}, others: set("k", x(100)), do: set("k", x(100)), fails: full(200)},
		"what is left of it":     {limits: policy.Limits{StoreBytes: 165, SessionStoreBytes: 200}, others: set("k", x(60)), do: set("k", x(10))},
		"many keys": {limits: limits, do: func(v *View) error {
			for i := range policy.MaxStoreKeys {
				if err := v.Set(fmt.Sprint(i), nil, nil); err != nil {
					return fmt.Errorf("key %d: %w", i, err)
				}
			}
			return set("0", "again")(v)
		}},
		"too many keys": {limits: limits, do: func(v *View) error {
			for i := range policy.MaxStoreKeys {
				if err := v.Set(fmt.Sprint(i), nil, nil); err != nil {
					t.Error(err)
				}
			}
			return set("one more", "")(v)
		}, fails: is(policy.ErrTooManyKeys)},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLog(t, c.limits)
			for _, earlier := range []struct {
				mod *tool.Module
				do  func(*View) error
			}{{tasksModule, c.before}, {other, c.others}} {
				if earlier.do != nil {
					if _, err := l.call(earlier.mod, earlier.do); err != nil {
						t.Fatal(err)
					}
				}
			}
			l.resume()
			_, err := l.call(tasksModule, c.do)
			if c.fails == nil && err != nil || c.fails != nil && !c.fails(err) {
				t.Errorf("it says %v", err)
			}
		})
	}
}

// The bytes that a call has reserved are not available to others, and are free again if the
// call fails.
func TestCallsShareTheRoomOfTheSession(t *testing.T) {
	l := newLog(t, policy.Limits{StoreBytes: 200, SessionStoreBytes: 200})
	other := &tool.Module{Name: "other", Origin: tool.OriginBuiltin}
	fits := set("k", strings.Repeat("x", 100))
	_, err := l.call(tasksModule, func(v *View) error {
		if err := fits(v); err != nil {
			return err
		}
		if _, err := l.call(other, fits); err == nil {
			t.Error("both have the same room")
		}
		return errors.New("failed")
	})
	if err == nil || err.Error() != "failed" {
		t.Fatal(err)
	}
	if _, err := l.call(other, fits); err != nil {
		t.Error(err)
	}
}

// A loop that sets one key again and again fills neither the store nor the disk.
func TestTheLogTakesOnlySoMuch(t *testing.T) {
	l := newLog(t, policy.Limits{StoreBytes: 10_000, SessionStoreBytes: 10_000})
	calls, bytes := 0, 0
	var err error
	for ; err == nil && calls < 1000; calls++ {
		if calls == 10 {
			l.resume()
		}
		_, err = l.call(tasksModule, set("k", strings.Repeat("x", 5000)))
	}
	for _, e := range l.events {
		bytes += len(e.Body)
	}
	if !errors.Is(err, policy.ErrStoreExhausted) || bytes < 150_000 || bytes > 160_000 {
		t.Errorf("after %d calls and %d bytes: %v", calls, bytes, err)
	}
	if _, err := l.call(tasksModule, func(v *View) error { v.Delete("k"); return nil }); err != nil {
		t.Error(err)
	}
	l.holds()
}

func TestWhatExpires(t *testing.T) {
	l := newLog(t, policy.Limits{StoreBytes: 300, SessionStoreBytes: 300})
	live := func(ms uint64) *uint64 { return &ms }
	long := uint64(1) << 63
	if _, err := l.call(tasksModule, func(v *View) error {
		return errors.Join(v.Set("short", []byte("1"), live(1000)), v.Set("long", []byte("2"), &long), v.Set("none", []byte("3"), live(0)))
	}); err != nil {
		t.Fatal(err)
	}
	l.holds("tasks long 2", "tasks short 1")
	l.now = l.now.Add(999 * time.Millisecond)
	l.holds("tasks long 2", "tasks short 1")
	if _, err := l.call(tasksModule, func(v *View) error {
		l.now = l.now.Add(time.Millisecond) // while it runs
		if _, ok := v.Get("short"); ok || !slices.Equal(v.Keys("", 10), []string{"long"}) {
			t.Errorf("it finds %q", v.Keys("", 10))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	l.resume()
	l.holds("tasks long 2")
	if _, err := l.call(tasksModule, set("room", strings.Repeat("x", 160))); err != nil {
		t.Errorf("what has expired takes room: %v", err)
	}
}

func TestOneCallOfAModuleAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(policy.DefaultLimits(), time.Now)
		first, err := s.Open(t.Context(), tasksModule)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone, opened := make(chan error), make(chan *View)
		go func() { _, err := s.Open(ctx, tasksModule); gone <- err }()
		go func() {
			v, err := s.Open(t.Context(), tasksModule)
			if err != nil {
				t.Error(err)
			}
			opened <- v
		}()
		synctest.Wait()
		other, err := s.Open(t.Context(), &tool.Module{Name: "other", Origin: tool.OriginBuiltin})
		if err != nil {
			t.Fatal(err)
		}
		other.Close()
		select {
		case <-gone:
			t.Error("two have the store")
		case <-opened:
			t.Error("two have the store")
		default:
		}
		cancel(errors.New("nobody waits"))
		if err := <-gone; err == nil || err.Error() != "nobody waits" {
			t.Errorf("whoever gave up got %v", err)
		}
		first.Close()
		(<-opened).Close()
	})
}

func TestWhatALogSaysThatCannotBe(t *testing.T) {
	l := newLog(t, policy.DefaultLimits())
	if _, err := l.call(tasksModule, set("a", "1")); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{``, `null`, `[]`, `{"redacted":true}`, `{"owner":"builtin:tasks","set":"x"}`} {
		e := l.events[0]
		e.Body = []byte(body)
		l.stores.Fold(e)
	}
	l.holds("tasks a 1")
	e := l.events[0]
	e.Body = []byte(`{"module":"tasks","owner":"builtin:tasks","set":[{"key":"a","base64":"[redacted]"},{"key":"b","base64":"eA=="}]}`)
	l.stores.Fold(e)
	l.holds("tasks b x")
	e.Type = session.TypeProgress
	e.Body = []byte(`{"module":"tasks","owner":"builtin:tasks","deleted":["b"]}`)
	l.stores.Fold(e)
	l.holds("tasks b x")
}
