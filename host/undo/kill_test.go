//go:build unix && cgo

package undo_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/dispatch"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/session/sqlite"
	"github.com/stockade-dev/stockade/host/stage"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/undo"
)

var kills = flag.Int("kills", 6, "how many programs are killed while they undo a turn")

// childEnv has the directory of the test in the process that undoes.
const childEnv = "STOCKADE_TEST_UNDO"

func TestMain(m *testing.M) {
	if base := os.Getenv(childEnv); base != "" {
		if err := child(base); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(base string) error {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, filepath.Join(base, "log", "sessions.db"))
	if err != nil {
		return err
	}
	area := stage.NewArea(filepath.Join(base, "stages"), func(string, ...any) {})
	catalog, err := tool.NewCatalogOf(nil)
	if err != nil {
		return err
	}
	d := dispatch.New(dispatch.Options{
		Catalog: catalog, Policy: policy.New(policy.Options{Mounts: []policy.Mount{{Host: filepath.Join(base, "ws"), Write: true}}}),
		Log: session.NewLog(store, id, time.Now), SessionID: id, Undo: undo.New(store, id, area.Dir, nil, nil),
	})
	fmt.Println("ready")
	r, err := d.Undo(ctx, tool.Call{ID: fmt.Sprint("undo_", os.Getpid()), Tool: tool.UndoTool, Args: []byte(`{}`), Cwd: filepath.Join(base, "ws")})
	if err == nil && r.Err != nil {
		err = r.Err
	}
	return err
}

// TestKilledUndosAreDoneOrNot kills the program with SIGKILL at random moments during an
// undo. After the next start the turn is undone as a whole or not at all, and can be
// undone or is known to be.
func TestKilledUndosAreDoneOrNot(t *testing.T) {
	took, left, done := 50*time.Millisecond, 0, 0
	for left+done < *kills {
		w := newWorld(t)
		for i := range 12 {
			w.File(fmt.Sprint("ws/many/", i), fmt.Sprint("before ", i))
		}
		before := w.snapshot("ws")
		w.change(1, func() {
			w.everything()
			for i := range 12 {
				w.File(fmt.Sprint("ws/many/", i), fmt.Sprint("after ", i))
			}
		})
		changed := w.snapshot("ws")

		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+w.Base)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		_, err = out.Read(make([]byte, 6))
		must(t, err)
		begin := time.Now()
		after := rand.N(took)
		if rand.IntN(2) == 0 { // what it changes it changes at its end
			after = took*3/4 + after/4
		}
		kill := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		err = cmd.Wait()
		if kill.Stop(); err == nil {
			took = time.Since(begin)
			continue
		} else if cmd.ProcessState.ExitCode() != -1 {
			t.Fatal(err)
		}
		stage.NewArea(w.Path("stages"), func(string, ...any) {}) // what the next program does first
		now := w.snapshot("ws")
		switch {
		case cmp.Equal(now, changed):
			left++
		case cmp.Equal(now, before):
			done++
		default:
			t.Fatalf("neither as before nor as after (-before +now):\n%s", cmp.Diff(before, now))
		}
		if r := w.undo(); r.Err != nil {
			// Its result was recorded before it was killed.
			if d := cmp.Diff(before, now); d != "" {
				t.Errorf("%v, and:\n%s", r.Err, d)
			}
		}
		if d := cmp.Diff(before, w.snapshot("ws")); d != "" {
			t.Errorf("undone again:\n%s", d)
		}
	}
	t.Logf("of %d that were killed, %d had undone the turn", left+done, done)
}
