package selftest

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/guests/gueststest"
	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/jail/probe"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/stage"
)

// TestMain lets this test binary be the process that compiles, and one that attacks the
// jail.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.ChildCommand {
		os.Exit(sandbox.CompileChild(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == probe.Command {
		os.Exit(probe.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// realTarget is the sandbox as the program wires it.
func realTarget(tb testing.TB) *Sandbox {
	tb.Helper()
	area := stage.NewArea(tb.TempDir(), tb.Errorf)
	j := jail.New(jail.Options{Areas: slices.Values([]*stage.Area{area}), Home: tb.TempDir(), LayersDir: tb.TempDir(), Caches: jail.CacheNames})
	out, err := egress.New(egress.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	s := NewSandbox(sandbox.Options{Spawn: jail.RunHelper, Services: services.Set{Exec: j, HTTP: out}}, tb.TempDir()+"/compiled")
	s.Tier, s.Staging = func() policy.Tier { return j.Tiers().Tier }, j.WhyNotStaged
	tb.Cleanup(func() {
		if err := j.Close(); err != nil {
			tb.Errorf("close the jail: %v", err)
		}
		if err := area.Close(); err != nil {
			tb.Errorf("close the area: %v", err)
		}
		if err := s.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return s
}

// scratchDir returns a directory with a short name: one attack makes a socket there.
func scratchDir(tb testing.TB) string {
	tb.Helper()
	dir, err := Scratch()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return dir
}

func TestEveryAttackIsStopped(t *testing.T) {
	gueststest.Need(t)
	start := time.Now()
	results, err := Run(t.Context(), realTarget(t), Options{Dir: scratchDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	count := map[Area]int{}
	for _, r := range results {
		count[r.Area]++
		t.Run(r.Name+"/"+r.Kind.String(), func(t *testing.T) {
			t.Logf("%s, %d ms: %s; %s", r.Area, r.Duration.Milliseconds(), r.Mechanism, r.Detail)
			if !r.Pass || r.Mechanism == "" {
				t.Error("nothing stopped it")
			}
		})
	}
	t.Logf("%d attacks in %.1f s: %v", len(results), time.Since(start).Seconds(), count)
}

func TestARunThatIsInterruptedHasNoResults(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	begun, all := 0, 0
	_, err := Run(ctx, obligingTarget, Options{Dir: scratchDir(t), Areas: []Area{Memory}, Started: func(_ Attack, n, of int) {
		if begun, all = n, of; n == 3 {
			cancel(interrupted)
		}
	}})
	if !errors.Is(err, interrupted) || begun < 3 || begun > 5 {
		t.Errorf("%d attacks, then %v", begun, err)
	}
	if all <= begun || all >= len(Attacks()) {
		t.Errorf("%d attacks in one area of %d", all, len(Attacks()))
	}
}

func TestATargetThatCannotBeStoppedIsLeftAlone(t *testing.T) {
	hangs := make(chan struct{})
	defer close(hangs)
	r := one(t, targetFunc(func(context.Context, Guest) Outcome { <-hangs; return Outcome{} }), Attacks()[0], 1)
	if r.Pass || !strings.Contains(r.Detail, "could not be stopped") {
		t.Errorf("%+v", r)
	}
}

func TestAHostAtFaultIsAFailure(t *testing.T) {
	broken := targetFunc(func(context.Context, Guest) Outcome { return Outcome{Err: errors.New("out of luck")} })
	for _, a := range sample(Attacks()) {
		if r := one(t, broken, a, DefaultPatience); r.Pass {
			t.Errorf("%s passes: %s", a.Name, r.Mechanism)
		}
	}
}

func TestAFailureNamesNoMechanism(t *testing.T) {
	if r := one(t, obligingTarget, Attacks()[0], DefaultPatience); r.Pass || r.Mechanism != "" || r.Detail == "" {
		t.Errorf("%+v", r)
	}
}
