package door

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/guests/gueststest"
	"github.com/stockade-dev/stockade/host/agent"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/session/export"
	"github.com/stockade-dev/stockade/host/tool"
)

// work is a workspace that tools can write to.
func work(t *testing.T) (string, SessionOptions) {
	t.Helper()
	gueststest.Need(t)
	m, err := ParseMount(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return m.Host, SessionOptions{Workspace: m.Host, Policy: policy.Options{Mounts: []policy.Mount{m}}}
}

func open(t *testing.T, d *Door, opts SessionOptions) *Session {
	t.Helper()
	gueststest.Need(t)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := d.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func types(t *testing.T, d *Door, id string) string {
	t.Helper()
	st, err := d.Store(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for e, err := range st.Events(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(e.Type))
	}
	return strings.Join(out, " ")
}

func TestASessionBeginsInTheLogWithItsFirstCall(t *testing.T) {
	dir, opts := work(t)
	d := New(Options{})
	s := open(t, d, opts)
	if got := types(t, d, s.Log.ID()); got != "" {
		t.Errorf("before any call there are %s", got)
	}
	for _, err := range s.Run(t.Context(), "hello") {
		if err == nil {
			t.Error("it has turns")
		}
	}
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			r, err := s.Call(t.Context(), tool.Call{ID: fmt.Sprint(i), Tool: "ls", Args: json.RawMessage(`{}`), Caller: tool.CallerMCP, Cwd: dir})
			if err != nil || r.Err != nil {
				t.Errorf("%s, %v", r.Envelope(), err)
			}
		})
	}
	group.Wait()
	got := types(t, d, s.Log.ID())
	if !strings.HasPrefix(got, "session.started tool_call ") || strings.Count(got, "session.started") != 1 || strings.Count(got, "tool_result") != 4 {
		t.Errorf("the log has %s", got)
	}
}

func TestASessionGoesOnInOneProcessAtATime(t *testing.T) {
	_, opts := work(t)
	opts.Provider = &Provider{Name: ProviderOffline}
	file := filepath.Join(t.TempDir(), "sessions.db")
	first, second := New(Options{Sessions: file}), New(Options{Sessions: file})
	s := open(t, first, opts)
	turn := func(s *Session) {
		t.Helper()
		for _, err := range s.Run(t.Context(), "list files") {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	turn(s)
	opts.ID = s.Log.ID()
	if _, err := second.Open(t.Context(), opts); !errors.Is(err, session.ErrInUse) {
		t.Errorf("it was opened twice: %v", err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	again := open(t, second, opts)
	turn(again)
	got := types(t, second, opts.ID)
	if strings.Count(got, "session.started") != 1 || strings.Count(got, "turn.ended") != 2 || again.Provider != ProviderOffline {
		t.Errorf("the log has %s", got)
	}
}

func TestCallsThatACrashHasLeftOpenGetAResult(t *testing.T) {
	_, opts := work(t)
	file := filepath.Join(t.TempDir(), "sessions.db")
	d := New(Options{Sessions: file})
	s := open(t, d, opts)
	body, err := json.Marshal(session.Intent{Tool: "ls"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Log.Append(t.Context(), session.Draft{Type: session.TypeCallIntended, Call: "1", Body: body}); err != nil {
		t.Fatal(err)
	}
	var said []string
	later := New(Options{Sessions: file, Note: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }})
	if got := types(t, later, s.Log.ID()); strings.Contains(got, "tool_result") {
		t.Errorf("while its process lives: %s", got)
	}
	if err := errors.Join(later.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	if got := types(t, later, s.Log.ID()); !strings.HasSuffix(got, "tool_result") || len(said) != 1 || !strings.Contains(said[0], "a call of ls") {
		t.Errorf("afterwards: %s, and it says %q", got, said)
	}
	if err := later.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNoSessionGoesOnWithoutItsBeginning: somebody has deleted the first bodies from the
// database, and with them the model's instructions.
func TestNoSessionGoesOnWithoutItsBeginning(t *testing.T) {
	_, opts := work(t)
	opts.Provider = &Provider{Name: ProviderOffline}
	file := filepath.Join(t.TempDir(), "sessions.db")
	d := New(Options{Sessions: file})
	s := open(t, d, opts)
	for _, err := range s.Run(t.Context(), "list files") {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite3", file)
	if err == nil {
		_, err = db.ExecContext(t.Context(), "DELETE FROM bodies WHERE seq <= 2")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	opts.ID = s.Log.ID()
	later := New(Options{Sessions: file})
	if _, err := later.Open(t.Context(), opts); !strings.Contains(fmt.Sprint(err), "event 1: has lost its body") {
		t.Errorf("it goes on: %v", err)
	}
	if err := later.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestToolsAreNotShownWhatTheDoorKeeps(t *testing.T) {
	dir, opts := work(t)
	s := open(t, New(Options{Sessions: filepath.Join(dir, "sessions.db")}), opts)
	for _, name := range []string{"sessions.db", "locks/" + s.Log.ID()} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		r, err := s.Call(t.Context(), tool.Call{ID: name, Tool: "file_read", Args: json.RawMessage(`{"path":"` + name + `"}`), Caller: tool.CallerAgent, Cwd: dir})
		if err != nil || r.Err == nil {
			t.Errorf("%s: %s, %v", name, r.Envelope(), err)
		}
	}
}

func TestWhatCannotBeOpened(t *testing.T) {
	dir, plain := work(t)
	layer := func(c policy.Ceiling) []policy.Layer { return []policy.Layer{{Source: policy.SourceAdmin, Ceiling: c}} }
	blocked := filepath.Join(dir, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	model := func(p Provider) SessionOptions {
		opts := plain
		opts.Provider = &p
		return opts
	}
	modelFault := func(want ModelFault) func(error) bool {
		return func(err error) bool {
			e, ok := errors.AsType[*ModelError](err)
			return ok && e.Fault == want
		}
	}
	for name, c := range map[string]struct {
		door Options
		opts SessionOptions
		is   func(error) bool
	}{
		"no place for the log": {Options{Sessions: filepath.Join(blocked, "sessions.db")}, plain, func(err error) bool {
			_, ok := errors.AsType[*StoreDirError](err)
			return ok
		}},
		"no place for a required export": {Options{Layers: layer(policy.Ceiling{AuditExports: []policy.Setting{{Value: blocked}}})}, plain, func(err error) bool {
			_, ok := errors.AsType[*export.Error](err)
			return ok
		}},
		"layers of a session alone": {Options{}, SessionOptions{Workspace: dir, Policy: policy.Options{Layers: layer(policy.Ceiling{})}}, func(err error) bool {
			return err != nil && strings.Contains(err.Error(), "a session cannot set layers")
		}},
		"no workspace":       {Options{}, SessionOptions{Workspace: blocked}, func(err error) bool { return err != nil }},
		"no id of a session": {Options{}, SessionOptions{Workspace: dir, ID: "../x"}, func(err error) bool { return err != nil }},
		"no such session":    {Options{}, SessionOptions{Workspace: dir, ID: session.NewID(time.Now())}, func(err error) bool { return errors.Is(err, session.ErrNoSession) }},
		"a module that is configured with what it does not declare": {Options{Config: map[string]map[string]string{"files": {"color": "red"}}}, plain, func(err error) bool {
			return err != nil && strings.Contains(err.Error(), `configured with "color", which it does not declare`)
		}},
		"no such provider":   {Options{}, model(Provider{Name: "x"}), modelFault(FaultProvider)},
		"no key":             {Options{}, model(Provider{Name: ProviderOpenAI}), modelFault(FaultKey)},
		"no name of a model": {Options{}, model(Provider{Name: ProviderAuto, Client: provider.Options{APIKey: "k"}}), modelFault(FaultName)},
		"no address":         {Options{}, model(Provider{Name: ProviderAuto, Client: provider.Options{BaseURL: "x", Model: "m"}}), modelFault(FaultAddress)},
		"a provider denied":  {Options{Layers: layer(policy.Ceiling{Providers: []policy.List{{Values: []string{"openai"}}}})}, model(Provider{Name: ProviderOffline}), modelFault(FaultDenied)},
		"an own model denied": {Options{Layers: layer(policy.Ceiling{Providers: []policy.List{{Values: []string{"openai"}}}})},
			SessionOptions{Workspace: dir, Agent: agent.Options{Model: llm.Retry(nil, 1), Provider: "own"}}, modelFault(FaultDenied)},
		"an address denied": {Options{Layers: layer(policy.Ceiling{BaseURLs: []policy.List{{}}})}, model(Provider{Name: ProviderOpenAI}), modelFault(FaultDeniedURL)},
	} {
		t.Run(name, func(t *testing.T) {
			d := New(c.door)
			defer d.Close()
			if _, err := d.Open(t.Context(), c.opts); !c.is(err) {
				t.Error(err)
			}
		})
	}
}
