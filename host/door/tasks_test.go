package door

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/tool"
)

// asks makes calls in a session with the real tools, one after another, and returns their
// outputs.
func asks(t *testing.T, s *Session, calls ...string) (outputs []string) {
	t.Helper()
	for _, call := range calls {
		name, args, _ := strings.Cut(call, " ")
		r, err := s.Call(t.Context(), tool.Call{ID: fmt.Sprint("c", time.Now().UnixNano()), Tool: name, Args: json.RawMessage(args), Caller: tool.CallerPerson, Cwd: s.workspace})
		if err != nil {
			t.Fatal(err)
		}
		if r.Err != nil {
			outputs = append(outputs, string(r.Err.Code))
			continue
		}
		var out struct{ Output string }
		if err := json.Unmarshal(r.Output, &out); err != nil {
			t.Fatal(err)
		}
		outputs = append(outputs, out.Output)
	}
	return outputs
}

func TestTheTasksOfASession(t *testing.T) {
	_, opts := work(t)
	opts.Policy.Limits = policy.Limits{StoreBytes: 4096}
	file := filepath.Join(t.TempDir(), "sessions.db")
	d := New(Options{Sessions: file})
	s := open(t, d, opts)
	got := asks(t, s, `list_tasks {}`, `add_task {"content":"one"}`, `add_task {"content":"two"}`,
		`update_task {"task_id":"task_1","status":"completed"}`, `update_task {"task_id":"task_7","status":"completed"}`,
		`add_task {"content":"`+strings.Repeat("x", 2000)+`"}`, `add_task {"content":"`+strings.Repeat("x", 2000)+`"}`)
	long := strings.Repeat("x", 2000)
	want := []string{"there are no tasks; add_task adds one", "[ ] task_1 one\n0 of 1 task completed", "[ ] task_2 two\n0 of 2 tasks completed",
		"[x] task_1 one\n1 of 2 tasks completed", "NOT_FOUND", "[ ] task_3 " + long + "\n1 of 3 tasks completed", "STORE_FULL"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const all = "[x] task_1 one\n[ ] task_2 two\n[ ] task_3 "
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	// Another process, another session, and the first one again.
	later := New(Options{Sessions: file})
	if got := asks(t, open(t, later, opts), `list_tasks {}`); got[0] != want[0] {
		t.Errorf("another session has %q", got)
	}
	opts.ID = s.Log.ID()
	again := open(t, later, opts)
	if got := asks(t, again, `list_tasks {}`, `update_task {"task_id":"task_2","status":"in_progress"}`); !strings.HasPrefix(got[0], all) || !strings.HasPrefix(got[1], "[~] task_2 two") {
		t.Errorf("resumed it has %q", got)
	}
	if types := types(t, later, opts.ID); strings.Count(types, "call.kept tool_result") != 5 || strings.Count(types, "call.kept") != 5 {
		t.Errorf("the log has %s", types)
	}
}

func TestWhatAModuleMayAskOfTheMachine(t *testing.T) {
	dir, opts := work(t)
	names := map[string]string{"os": `system: \w+`, "distribution": `distribution: .+`, "arch": `architecture: \w+`, "cpus": `processors: \d+`,
		"memory": `memory: [\d.]+ GiB`, "timezone": `time zone: [\w/+-]+`, "tier": `confinement of commands: tier [0-3] of 3`, "version": `program: v9`}
	catalog, err := registry.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	e, _ := catalog.Find("system_info")
	for _, told := range append([][]string{nil, SystemFacts, {"arch", "version"}}, slices.Collect(slices.Chunk(SystemFacts, 1))...) {
		d := New(Options{Program: "v9", SystemFacts: told})
		got := asks(t, open(t, d, opts), `system_info {}`)[0]
		var lines []string
		for _, name := range told {
			if _, ok := e.Module.Config[name]; !ok {
				t.Errorf("the module does not ask for %s", name)
			}
			if d.fact(name) != "" { // not each system says everything
				lines = append(lines, names[name])
			}
		}
		want := "^" + strings.Join(lines, "\n") + "$"
		if told == nil {
			want = "UNAVAILABLE"
		}
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("with %q it says %q, want %q", told, got, want)
		}
	}
	s := open(t, New(Options{}), opts)
	got := asks(t, s, `get_current_time {}`, `get_working_directory {}`)
	at, err := time.Parse(time.RFC3339, got[0])
	if err != nil || time.Since(at).Abs() > time.Hour || at.Format("-07:00") != time.Now().Format("-07:00") {
		t.Errorf("the time is %q", got[0])
	}
	if got[1] != dir {
		t.Errorf("the directory is %q", got[1])
	}
}

func TestWhatTheSystemSaysOfItself(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.FixedZone("XYZ", 3600))
	for name, c := range map[string]struct{ got, want string }{
		"no os-release":         {distribution("/no/such/file"), ""},
		"no meminfo":            {memory("/no/such/file"), ""},
		"a zone by a variable":  {timezone("Europe/Berlin", "", now), "Europe/Berlin"},
		"with a colon":          {timezone(":UTC", "", now), "UTC"},
		"that is a rule":        {timezone("CET-1CEST", "", now), "XYZ"},
		"that leads elsewhere":  {timezone("../../etc/passwd", "", now), "XYZ"},
		"no variable, no link":  {timezone("", "/no/such/link", now), "XYZ"},
		"a link that is a file": {timezone("", "/proc/self/exe", now), "XYZ"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q", name, c.got)
		}
	}
}

// BenchmarkKeeping alternates calls that write to their store and calls of the same
// module that only read.
func BenchmarkKeeping(b *testing.B) {
	d := New(Options{Sessions: filepath.Join(b.TempDir(), "sessions.db")})
	defer func() {
		if err := d.Close(); err != nil {
			b.Error(err)
		}
	}()
	s, err := d.Open(b.Context(), SessionOptions{Workspace: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	call := func(name, args string) time.Duration {
		n++
		begin := time.Now()
		r, err := s.Call(b.Context(), tool.Call{ID: fmt.Sprint("c", n), Tool: name, Args: json.RawMessage(args), Caller: tool.CallerPerson, Cwd: s.workspace})
		if err != nil || r.Err != nil {
			b.Fatal(r.Err, err)
		}
		return time.Since(begin)
	}
	for range 10 {
		call("add_task", `{"content":"Write the tests for the parser"}`)
	}
	var looks, keeps time.Duration
	statuses := []string{"in_progress", "completed"}
	for i := 0; b.Loop(); i++ {
		looks += call("list_tasks", `{}`)
		keeps += call("update_task", fmt.Sprintf(`{"task_id":"task_3","status":%q}`, statuses[i%2]))
	}
	b.ReportMetric(looks.Seconds()*1e3/float64(b.N), "looks-ms")
	b.ReportMetric(keeps.Seconds()*1e3/float64(b.N), "keeps-ms")
	b.ReportMetric(keeps.Seconds()/looks.Seconds(), "ratio")
}
