//go:build !wasip1

package exec

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/sdk/go/internal/abi"
)

// got is the request that the fake host received.
type got struct {
	Argv                     []string
	HasDir                   uint32
	Dir                      string
	Millis, MaxOutput, Merge uint32
}

// fake sets the answer of the fake host. answer fills the result; the blocks of f belong to
// the host.
func fake(t *testing.T, answer func(r abi.Record, f *abi.Frame)) *got {
	t.Helper()
	g := new(got)
	hostRun = func(argvPtr, argvLen, hasDir, dirPtr, dirLen, millis, maxOutput, merge, ret uint32) {
		list := abi.Record(abi.Take(argvPtr, argvLen*8))
		for i := range argvLen {
			g.Argv = append(g.Argv, list.Text(i*8))
		}
		g.HasDir, g.Dir = hasDir, string(abi.Take(dirPtr, dirLen))
		g.Millis, g.MaxOutput, g.Merge = millis, maxOutput, merge
		answer(abi.Take(ret, 44), new(abi.Frame))
	}
	t.Cleanup(func() {
		if n := abi.Live(); n != 0 {
			t.Errorf("%d blocks left", n)
		}
	})
	return g
}

func TestRunLowersTheCommand(t *testing.T) {
	soon, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	tests := map[string]struct {
		cmd  Command
		want got
	}{
		"defaults": {
			Command{Argv: []string{"true"}},
			got{Argv: []string{"true"}, Millis: 0, MaxOutput: 0},
		},
		"everything": {
			Command{Argv: []string{"bash", "-c", ""}, Dir: "/d", Timeout: 5 * time.Minute, MaxOutput: 9, MergeStderr: true},
			got{Argv: []string{"bash", "-c", ""}, HasDir: 1, Dir: "/d", Millis: 300_000, MaxOutput: 9, Merge: 1},
		},
		"less than a millisecond": {
			Command{Argv: []string{"x"}, Timeout: time.Nanosecond},
			got{Argv: []string{"x"}, Millis: 1, MaxOutput: 0},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := fake(t, func(abi.Record, *abi.Frame) {})
			if _, err := Run(t.Context(), tt.cmd); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, *g); diff != "" {
				t.Errorf("host got (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := Run(soon, Command{Argv: []string{"x"}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call whose time is over ran: %v", err)
	}
}

func TestRunLiftsTheOutcome(t *testing.T) {
	fake(t, func(r abi.Record, f *abi.Frame) {
		r.SetCase(4, 1)
		r.SetU32(8, 0xfffffffe)
		r.SetCase(12, 1)
		r.SetU32(16, 15)
		r.SetCase(20, 1)
		r.SetPair(24)(f.Text("out"))
		r.SetPair(32)(f.Text("err"))
		r.SetCase(40, 1)
	})
	out, err := Run(t.Context(), Command{Argv: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	want := Outcome{ExitCode: -2, Signal: 15, TimedOut: true, Stdout: []byte("out"), Stderr: []byte("err"), Truncated: true}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}

func TestRunWithoutExitCode(t *testing.T) {
	fake(t, func(r abi.Record, f *abi.Frame) { r.SetCase(12, 1); r.SetU32(16, 9) })
	out, err := Run(t.Context(), Command{Argv: []string{"x"}})
	if err != nil || out.ExitCode != -1 || out.Signal != 9 {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestRunErrors(t *testing.T) {
	wants := [][]error{{ErrDenied, fs.ErrPermission}, {ErrNotFound, fs.ErrNotExist}, {ErrFailed}}
	for i, want := range wants {
		fake(t, func(r abi.Record, f *abi.Frame) {
			r.SetCase(0, 1)
			r.SetCase(4, uint8(i))
			r.SetPair(8)(f.Text("because"))
		})
		_, err := Run(t.Context(), Command{Argv: []string{"x"}})
		if slices.ContainsFunc(want, func(w error) bool { return !errors.Is(err, w) }) || err.Error() != want[0].Error()+": because" {
			t.Errorf("case %d is %v", i, err)
		}
	}
}
