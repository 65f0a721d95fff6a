//go:build unix

package sandbox_test

import (
	goflag "flag"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// Compiling all bombs takes a quarter of an hour; make test-bombs sets this.
var allBombs = goflag.Bool("bombs", false, "compile every bomb, not a few")

// few names the bombs that every run of the tests tries. One of them gets as far as the
// compiler.
var few = []string{
	"nested loops x locals, 1000 x 1000",
	"functions x locals, 1000 x 50000",
	"blocks in a row x merged locals, 4000 x 73",
	"types x functions, 60000 x 50000",
}

// No module takes more than the limits of a child to compile, and other calls continue
// meanwhile. This also holds for large modules that a person has allowed.
func TestBombs(t *testing.T) {
	t.Run("nobody has asked", func(t *testing.T) { explode(t, false) })
	if *allBombs {
		t.Run("a person has asked", func(t *testing.T) { explode(t, true) })
	}
}

func explode(t *testing.T, large bool) {
	box := newBox(t, sandbox.Options{AllowLarge: large})
	if !*allBombs {
		sandbox.SetLimits(box, 2*time.Second, 0, 0) // so that the one takes no longer
	}
	other := granted(t, probe(w.ToolOptions{}), ask{})
	output(t, other.mustRun(t, box))
	stop, stopped := make(chan bool), make(chan []time.Duration)
	go func() {
		var took []time.Duration
		for {
			select {
			case <-stop:
				stopped <- took
				return
			case <-time.Tick(5 * time.Millisecond):
			}
			start := time.Now()
			if r, err := other.run(t.Context(), box); err != nil || r.Err != nil {
				t.Errorf("the other call: %+v, %v", r.Err, err)
			}
			took = append(took, time.Since(start))
		}
	}()
	ran, killed := 0, 0
	for _, b := range w.Bombs() {
		if !*allBombs && !slices.Contains(few, b.Name) {
			continue
		}
		ran++
		code := b.Module()
		mod := module(code)
		before, start := childrenCPU(t), time.Now()
		r, err := granted(t, mod, ask{limits: quick}).run(t.Context(), box)
		cpu, wall := childrenCPU(t)-before, time.Since(start)
		if err != nil {
			t.Errorf("%s: the host is blamed: %v", b.Name, err)
			continue
		}
		became := "ran"
		if r.Err != nil {
			became = string(r.Err.Code) + ": " + r.Err.Message
		}
		if cpu > time.Second {
			killed++
		}
		t.Logf("%-50s %9d bytes, %6.0f ms CPU of the child, %6.0f ms: %.150s", b.Name, len(code), ms(cpu), ms(wall), became)
		bytes := len(code)
		if large {
			bytes = max(bytes, admit.LargeBytes)
		}
		if limit, _, _ := sandbox.Limits(bytes); cpu > limit*sandbox.Slow+time.Second { // larger modules may take longer
			t.Errorf("%s: the child had %.1f s of CPU time, more than %s", b.Name, cpu.Seconds(), limit)
		}
	}
	close(stop)
	took := <-stopped
	slices.Sort(took)
	t.Logf("%d bombs, %d of them took a second or more; %d other calls meanwhile, median %.1f ms, p99 %.1f ms, longest %.1f ms",
		ran, killed, len(took), ms(took[len(took)/2]), ms(took[len(took)*99/100]), ms(took[len(took)-1]))
	if ran < len(few) {
		t.Errorf("only %d bombs were found", ran)
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// childrenCPU returns the CPU time of all children that have ended.
func childrenCPU(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
