package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/sdk/go/kv"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// shelf is a store in memory with room for so many bytes of values.
type shelf struct {
	values map[string]string
	room   int
}

func newShelf(room int) (*shelf, store) {
	s := &shelf{map[string]string{}, room}
	return s, store{
		get: func(key string) ([]byte, bool, error) { v, ok := s.values[key]; return []byte(v), ok, nil },
		set: func(key string, value []byte, _ time.Duration) error {
			sum := len(value)
			for k, v := range s.values {
				if k != key {
					sum += len(v)
				}
			}
			if sum > s.room {
				return &kv.QuotaError{Limit: uint64(s.room)}
			}
			s.values[key] = string(value)
			return nil
		},
		delete: func(key string) error { delete(s.values, key); return nil },
		keys: func(prefix string, limit uint32) ([]string, error) {
			keys := slices.Sorted(maps.Keys(s.values))
			return slices.DeleteFunc(keys, func(k string) bool { return !strings.HasPrefix(k, prefix) }), nil
		},
	}
}

func TestTasks(t *testing.T) {
	_, s := newShelf(1 << 20)
	add := func(content string) func() (any, error) {
		return func() (any, error) { return s.add(addArgs{content}) }
	}
	update := func(id, status, content string) func() (any, error) {
		return func() (any, error) { return s.update(updateArgs{id, status, content}) }
	}
	list := func() (any, error) { return s.list() }
	for _, c := range []struct {
		name string
		do   func() (any, error)
		want string // the result, or CODE: text of the error
	}{
		{"a list without tasks", list, "{there are no tasks; add_task adds one {0 0}}"},
		{"an update without tasks", update("task_1", "completed", ""), `not-found: there is no task "task_1"; there are no tasks yet: add_task adds one`},
		{"the first", add("  Read the code\n"), "{[ ] task_1 Read the code\n0 of 1 task completed task_1 pending {0 1}}"},
		{"an empty one", add(" \n"), "invalid-input: content is empty; say what is to be done"},
		{"a long one", add(strings.Repeat("x", maxContent+1)), "invalid-input: content has 2049 bytes; a task has at most 2048: say it shorter, or add several tasks"},
		{"of several lines", add("Change it\nin two places"), "{[ ] task_2 Change it\n    in two places\n0 of 2 tasks completed task_2 pending {0 2}}"},
		{"the third", add("Test it"), "{[ ] task_3 Test it\n0 of 3 tasks completed task_3 pending {0 3}}"},
		{"one begins", update("task_1", "in_progress", ""), "{[~] task_1 Read the code\n0 of 3 tasks completed task_1 in_progress {0 3}}"},
		{"by its number", update(" 1", "completed", ""), "{[x] task_1 Read the code\n1 of 3 tasks completed task_1 completed {1 3}}"},
		{"with another text", update("task_2", "in_progress", "Change it in three places"), "{[~] task_2 Change it in three places\n1 of 3 tasks completed task_2 in_progress {1 3}}"},
		{"with a text that is too long", update("task_2", "pending", strings.Repeat("x", maxContent+1)), "invalid-input: content has 2049 bytes; a task has at most 2048: say it shorter, or add several tasks"},
		{"another status", update("task_2", "done", ""), `invalid-input: status is "done"; it can be pending, in_progress or completed`},
		{"an id that is not there", update("task_4", "completed", ""), `not-found: there is no task "task_4"; the tasks are task_2, task_3, task_1`},
		{"an id that is none", update("Test it", "completed", ""), `not-found: there is no task "Test it"; the tasks are task_2, task_3, task_1`},
		{"all of them", list, "{[x] task_1 Read the code\n[~] task_2 Change it in three places\n[ ] task_3 Test it\n1 of 3 tasks completed {1 3}}"},
	} {
		got, err := c.do()
		text := fmt.Sprint(got)
		if e, ok := errors.AsType[*tool.Error](err); ok {
			text = fmt.Sprintf("%v: %v", e.Code, e)
		} else if err != nil {
			t.Fatal(err)
		}
		if text != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, text, c.want)
		}
	}
}

func TestAListThatIsFull(t *testing.T) {
	for name, c := range map[string]struct {
		room, tasks int
		completed   []int
		code        string // of the next task; empty: it is added
		gone        []string
	}{
		"with room":                        {1 << 20, maxTasks - 1, nil, "", nil},
		"of open tasks":                    {1 << 20, maxTasks, nil, "STORE_FULL", nil},
		"of which some are completed":      {1 << 20, maxTasks, []int{7, 3}, "", []string{"task_3"}},
		"of which only the last is":        {1 << 20, maxTasks, []int{maxTasks}, "STORE_FULL", nil},
		"because of its texts":             {100 * 43, 100, nil, "STORE_FULL", nil},
		"because of those of some, closed": {100 * 43, 100, []int{1, 2, 3, 4}, "", []string{"task_1", "task_2", "task_3"}},
	} {
		t.Run(name, func(t *testing.T) {
			values, s := newShelf(c.room)
			for n := range c.tasks {
				status := pending
				if slices.Contains(c.completed, n+1) {
					status = completed
				}
				values.values[fmt.Sprint(prefix, n+1)] = fmt.Sprintf(`{"content":"abc","status":%q}`, status)
			}
			if c.room < 1<<20 { // no byte more than that
				values.room = 0
				for _, v := range values.values {
					values.room += len(v)
				}
			}
			got, err := s.add(addArgs{"another that has more bytes than one of these has"})
			if tool.CodeOf(err) != c.code || err == nil != (c.code == "") {
				t.Fatalf("it says %v", err)
			}
			want := c.tasks - len(c.gone)
			if err == nil {
				want++
				if got.ID != fmt.Sprint(prefix, c.tasks+1) || got.Total != want {
					t.Errorf("it is %+v", got)
				}
			}
			for _, id := range c.gone {
				if _, ok := values.values[id]; ok {
					t.Errorf("%s is there", id)
				}
			}
			if len(values.values) != want {
				t.Errorf("%d tasks are left, want %d", len(values.values), want)
			}
		})
	}
}

// A secret that was taken out of a value may have taken its form along.
func TestWhatIsKeptThatCannotBeRead(t *testing.T) {
	values, s := newShelf(1 << 20)
	values.values = map[string]string{"task_1": "[redacted]", "task_2": `{"content":"b","status":"[redacted]"}`, "task_x": "1", "other": "2"}
	got, err := s.list()
	if want := "[ ] task_1 [redacted]\n[ ] task_2 {\"content\":\"b\",\"status\":\"[redacted]\"}\n0 of 2 tasks completed"; err != nil || got.Output != want {
		t.Errorf("got %q, %v", got.Output, err)
	}
}

func TestAStoreThatIsNotThere(t *testing.T) {
	denied := fmt.Errorf("%w: not granted", kv.ErrDenied)
	s := store{
		keys: func(string, uint32) ([]string, error) { return nil, denied },
	}
	for name, call := range map[string]func() error{
		"add":    func() error { _, err := s.add(addArgs{"x"}); return err },
		"list":   func() error { _, err := s.list(); return err },
		"update": func() error { _, err := s.update(updateArgs{"task_1", completed, ""}); return err },
	} {
		if err := call(); !errors.Is(err, kv.ErrDenied) {
			t.Errorf("%s says %v", name, err)
		}
	}
}

func TestTheTime(t *testing.T) {
	now := time.Date(2026, 3, 1, 23, 30, 5, 999e6, time.FixedZone("", -3600)) // wherever the clock is read
	for name, c := range map[string]struct {
		config map[string]string
		want   timeResult
	}{
		"of nobody":             {nil, timeResult{"2026-03-02T00:30:05+00:00", "Monday", "UTC"}},
		"ahead of UTC":          {map[string]string{"utc_offset": "+01:00", "timezone": "Europe/Berlin"}, timeResult{"2026-03-02T01:30:05+01:00", "Monday", "Europe/Berlin"}},
		"behind, by half hours": {map[string]string{"utc_offset": "-03:30", "timezone": "America/St_Johns"}, timeResult{"2026-03-01T21:00:05-03:30", "Sunday", "America/St_Johns"}},
		"a zone without a name": {map[string]string{"utc_offset": "+01:00"}, timeResult{"2026-03-02T01:30:05+01:00", "Monday", ""}},
		"what is no offset":     {map[string]string{"utc_offset": "CET", "timezone": "Europe/Berlin"}, timeResult{"2026-03-02T00:30:05+00:00", "Monday", "UTC"}},
	} {
		get := func(name string) (string, bool) { v, ok := c.config[name]; return v, ok }
		if got := timeIn(now, get); got != c.want {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestWhatIsToldOfTheMachine(t *testing.T) {
	values := map[string]string{"os": "linux", "timezone": "Europe/Berlin", "memory": "", "hostname": "secret", "utc_offset": "+01:00"}
	get := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	got, err := infoFrom(get)
	if err != nil || got.Output != "system: linux\ntime zone: Europe/Berlin" || !maps.Equal(got.Facts, map[string]string{"os": "linux", "timezone": "Europe/Berlin"}) {
		t.Errorf("got %+v, %v", got, err)
	}
	clear(values)
	if _, err := infoFrom(get); err == nil || !strings.Contains(err.Error(), "tools.system_info") {
		t.Errorf("of nothing it says %v", err)
	}
}
