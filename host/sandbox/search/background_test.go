package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/stage"
	"github.com/stockade-dev/stockade/sdk/go/lines"
)

// withPlaces sets the number of places until the test ends, whatever the machine has.
func withPlaces(t *testing.T, n int) {
	t.Helper()
	before := places
	places = make(chan struct{}, n)
	t.Cleanup(func() { places = before })
}

// until waits for a state that other goroutines bring about.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("it does not happen: ", what)
		}
	}
}

// ended reports whether the goroutine that conducts the search has ended.
func (s *Search) ended() bool {
	select {
	case <-s.run.background.handed:
		return true
	default:
		return false
	}
}

// inBackground returns the result if the guest collects at once, when no other goroutine
// could work, when others have begun, and when they have finished.
func (w *world) inBackground(t *testing.T, q Query) map[string]*Found {
	t.Helper()
	defer func(before chan struct{}) { places = before }(places)
	out := map[string]*Found{}
	for name, come := range map[string]func(*Search){
		"at once":  func(*Search) {},
		"begun":    func(s *Search) { until(t, "something", func() bool { return s.run.unpaid.Load() > 0 || s.ended() }) },
		"done":     func(s *Search) { until(t, "everything", s.ended) },
		"no place": func(*Search) {},
	} {
		places = make(chan struct{}, 2)
		if name == "no place" {
			places <- struct{}{}
			places <- struct{}{}
		}
		s, err := Begin(t.Context(), w.FS, q, w)
		if err != nil {
			t.Fatal(err)
		}
		if s.run != nil {
			come(s)
		}
		if out[name], err = s.Collect(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// The cost of a search does not depend on the time at which the guest collects.
func TestTheCostDoesNotDependOnWhenTheGuestComes(t *testing.T) {
	withPlaces(t, 2)
	files := map[string]string{}
	var names []string
	for i := range 300 {
		names = append(names, fmt.Sprintf("f%03d", i))
		files["ws/"+names[i]] = strings.Repeat("some line\n", i*i%977) + "hit\n"
	}
	for _, most := range []int{0, 8} {
		var fuel uint64
		limits := wasi.Limits{MaxOpenFiles: most, Charge: func(u uint64) { fuel += u }}
		w := newWorld(t, nil, &wasi.Options{Limits: limits}, files)
		q := Query{Files: w.names(names...), Pattern: "h[i]t", MaxMatches: 200, MaxText: MaxText, MaxChars: 9}
		var want uint64
		for run := range 30 {
			fuel, w.units = 0, 0
			s, err := Begin(t.Context(), w.FS, q, w)
			if err != nil {
				t.Fatal(err)
			}
			for range run * run {
				runtime.Gosched()
			}
			if run%10 == 9 {
				until(t, "everything", s.ended)
			}
			f, err := s.Collect()
			if err != nil || len(f.Lines) != 200 || !f.More {
				t.Fatalf("%v, found %v", err, f)
			}
			if units := fuel + w.units; run == 0 {
				want = units
			} else if units != want {
				t.Fatalf("run %d costs %d, and %d before", run, units, want)
			}
		}
		for range max(most, 8) { // nothing is left open or taken
			if _, errno := w.Open(w.names("f000")[0], wasi.ReadOnly); errno != 0 {
				t.Fatal(errno)
			}
		}
	}
}

// hours makes a file that takes hours to search.
func hours(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, nil, nil, map[string]string{"ws/sparse": strings.Repeat("x", 9000)})
	if err := os.Truncate(filepath.Join(w.ws, "sparse"), 1<<42); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestASearchThatIsAbandonedLeavesNothing(t *testing.T) {
	withPlaces(t, 2)
	w := hours(t)
	before := runtime.NumGoroutine()
	for _, n := range []int{1, 100} {
		s, err := Begin(t.Context(), w.FS, Query{Files: append(w.names("missing"), repeat(w.names("sparse")[0], n)...), Pattern: "zebra", MaxMatches: 1}, w)
		if err != nil {
			t.Fatal(err)
		}
		until(t, "something", func() bool { return s.run.unpaid.Load()+s.run.owed.Load() > 1_000_000 })
		owed, err := s.Abandon()
		if err != nil || owed < 1_000_000 {
			t.Errorf("%d are owed, %v", owed, err)
		}
		if len(places) != 0 {
			t.Errorf("%d places are taken", len(places))
		}
	}
	for range 256 {
		if _, errno := w.Open(w.names("sparse")[0], wasi.ReadOnly); errno != 0 {
			t.Fatal(errno)
		}
	}
	until(t, "the goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}

// Before the guest collects, the search does no more than the guest could pay when it was
// last asked, and other costs of the guest come first.
func TestASearchWaitsForWhoPays(t *testing.T) {
	const budget = 50_000_000
	for _, c := range []struct {
		name string
		left int64 // when the guest comes
		want error
	}{{"poorer", 1000, errBroke}, {"as rich", budget, errBroke}, {"abandoned", -1, nil}} {
		t.Run(c.name, func(t *testing.T) {
			withPlaces(t, 2)
			w := hours(t)
			pay := &purse{left: budget}
			s, err := Begin(t.Context(), w.FS, Query{Files: repeat(w.names("sparse")[0], 100), Pattern: "zebra", MaxMatches: 1}, pay)
			if err != nil {
				t.Fatal(err)
			}
			done := func() int64 { return s.run.unpaid.Load() + s.run.owed.Load() }
			until(t, "it waits", func() bool { return done() > s.run.owedLimit() && len(places) == 0 })
			if most := int64(budget + 3*(taskBytes+paidAhead*perTask)); done() > most {
				t.Errorf("%d were done, want %d at most", done(), most)
			}
			if c.left < 0 {
				if owed, err := s.Abandon(); err != nil || owed < budget/2 {
					t.Errorf("%d are owed, %v", owed, err)
				}
				return
			}
			pay.left = c.left
			if f, err := s.Collect(); err != c.want || f != nil {
				t.Errorf("%v, found %v", err, f)
			}
		})
	}
	// Who is as rich as that when it comes gets everything.
	withPlaces(t, 2)
	w := newWorld(t, nil, nil, map[string]string{"ws/f": strings.Repeat("some text\n", 1<<20) + "hit\n"})
	pay := &purse{left: 3_000_000}
	s, err := Begin(t.Context(), w.FS, Query{Files: w.names("f"), Pattern: "h[i]t", MaxMatches: 1, MaxText: 9, MaxChars: 9}, pay)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "it waits", func() bool { return s.run.unpaid.Load()+s.run.owed.Load() > s.run.owedLimit() && len(places) == 0 })
	pay.left = math.MaxInt64
	if f, err := s.Collect(); err != nil || len(f.Lines) != 1 {
		t.Errorf("%v, found %v", err, f)
	}
}

func TestTheDeadlineEndsASearchInTheBackground(t *testing.T) {
	withPlaces(t, 2)
	w := hours(t)
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Begin(ctx, w.FS, Query{Files: repeat(w.names("sparse")[0], 100), Pattern: "zebra", MaxMatches: 1}, w)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	until(t, "it ends", s.ended)
	if _, err := s.Collect(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAPanicInTheBackgroundComesToTheGuest(t *testing.T) {
	withPlaces(t, 2)
	w := newWorld(t, nil, nil, map[string]string{"ws/f": "x\n"})
	begin := func() *Search {
		r := newRun(w.FS, &Query{Files: repeat(w.names("f")[0], 100), MaxMatches: 1}, &lines.Pattern{}, w, func() error { return nil }) // not compiled
		if !r.toBackground(w.FS) {
			t.Fatal("it is not in the background")
		}
		s := &Search{run: r}
		until(t, "a panic", s.ended)
		return s
	}
	if _, err := begin().Abandon(); err == nil || !strings.Contains(err.Error(), "nil pointer") {
		t.Errorf("abandoned: %v", err)
	}
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "nil pointer") {
			t.Errorf("recovered %v", p)
		}
	}()
	_, _ = begin().Collect()
}

// A stage serves one goroutine only.
func TestAStagedSearchIsMadeAtOnce(t *testing.T) {
	withPlaces(t, 2)
	set, err := stage.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Drop()
	w := newWorld(t, nil, &wasi.Options{Stage: set}, map[string]string{"ws/f": "hit\n"})
	s, err := Begin(t.Context(), w.FS, Query{Files: w.names("f"), Pattern: "hit", MaxMatches: 1, MaxText: 9, MaxChars: 9}, w)
	if err != nil || s.run != nil || len(s.found.Lines) != 1 {
		t.Fatalf("%v, %+v", err, s)
	}
	if owed, err := s.Abandon(); owed != 0 || err != nil {
		t.Error(owed, err)
	}
}

func repeat(name string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = name
	}
	return out
}

// A goroutine that only opens files shares its place as well.
func TestAPlaceIsPassedRoundWhileFilesAreOpened(t *testing.T) {
	withPlaces(t, 1)
	w := newWorld(t, nil, nil, map[string]string{"ws/f": "x\n"})
	s, err := Begin(t.Context(), w.FS, Query{Files: repeat(w.names("missing")[0], 1_000_000), Pattern: "zebra", MaxMatches: 1}, &purse{left: math.MaxInt64})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Abandon()
	until(t, "something", func() bool { return s.run.unpaid.Load() > 0 })
	places <- struct{}{}
	done := s.run.unpaid.Load()
	<-places
	if done > backgroundUnits/2 {
		t.Errorf("%d were done until somebody else had the place", done)
	}
}
