package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/sdk/go/lines"
)

// Files of a task behind the last wanted match are not searched. Files that were begun before
// it was found are paid for.
func TestWhatComesBehindTheLastMatch(t *testing.T) {
	const size = 64 << 10
	files := map[string]string{"ws/hit": strings.Repeat("hit\n", 10)}
	names := []string{"hit"}
	for i := range perTask*maxTasksAhead + 100 {
		name := fmt.Sprintf("f%03d", i)
		files["ws/"+name] = strings.Repeat("some text\n", size/10)
		names = append(names, name)
	}
	w := newWorld(t, nil, nil, files)
	q := Query{Files: w.names(names[:perTask]...), Pattern: "h[i]t|[x-z]{2}", MaxMatches: 3, MaxText: MaxText, MaxChars: 9}
	if _, f := w.lines(t, q); !f.More || w.units > 4*size {
		t.Errorf("%d units for the first file, more %v", w.units, f.More)
	}
	w.units, q.Files = 0, w.names(names...)
	w.lines(t, q)
	const task = perTask * size * costMatch
	if tasks := float64(w.units) / task; tasks < maxTasksAhead-2 || tasks > 8*maxTasksAhead {
		t.Errorf("%d units, for those that were begun", w.units)
	}
	// An expensive one is not begun before its turn comes.
	q.Pattern, w.units = "h[i]t|(x?){900}[yz]", 0
	w.lines(t, q)
	if most := uint64(2*maxUnitsAhead) + 100*size*costStep; w.units > most {
		t.Errorf("%d units, want %d at most", w.units, most)
	}
}

// All files of a task are paid for, even if the search ends with the first of
// them, or in the middle of it.
func TestASearchThatIsEndedIsPaid(t *testing.T) {
	const size = 256 << 10
	w := newWorld(t, nil, nil, map[string]string{"ws/a": strings.Repeat("some text\n", size/10), "ws/b": strings.Repeat("x\n", size/2)})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p, err := lines.Compile("(x?){50}[yz]", 0)
	if err != nil {
		t.Fatal(err)
	}
	pay := &purse{left: math.MaxInt64}
	r := newRun(w.FS, &Query{Files: w.names("a", "b"), MaxMatches: 9, MaxText: 9, MaxChars: 9}, p, pay, nil)
	looks := 0
	r.callErr = func() error {
		if looks++; looks > 3 { // beside the beginning: in the first file
			cancel()
		}
		return ctx.Err()
	}
	r.maxWorkers = 0
	if _, err := r.searchAll(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if least := int64(lines.BinaryProbe * costStep * p.Steps()); pay.paid < least || r.owed.Load() != 0 {
		t.Errorf("paid %d, and not %d; %d are owed", pay.paid, least, r.owed.Load())
	}
}

// If one file costs more than the guest has, this is known before the work is done.
func TestASearchEndsWhenItIsWorthMoreThanThereIs(t *testing.T) {
	const size = 8 << 20
	w := newWorld(t, nil, nil, map[string]string{"ws/f": strings.Repeat(strings.Repeat("x", 999)+"\n", size/1000)})
	for _, refill := range []bool{false, true} {
		for _, n := range []int{1, 5} {
			pay := &purse{left: 100_000_000, refill: refill}
			_, err := find(t.Context(), w.FS, Query{Files: slices.Repeat(w.names("f"), n), Pattern: "(x?){50}[yz]", MaxMatches: 1}, pay)
			if want := map[bool]error{false: errBroke, true: ErrSpent}[refill]; err != want {
				t.Errorf("%v, want %v", err, want)
			}
			// All of it would be size * 150 * costStep * n.
			if pay.paid < 100_000_000 || pay.paid > 1_000_000_000 {
				t.Errorf("%d times: paid %d", n, pay.paid)
			}
		}
	}
}

// The goroutine of the guest lets other guests have their turn while it searches.
func TestASearchYields(t *testing.T) {
	const size = 4 << 20
	w := newWorld(t, nil, nil, map[string]string{"ws/f": strings.Repeat("some text\n", size/10)})
	pay := &purse{left: math.MaxInt64}
	p, err := lines.Compile("[0-9]", 0)
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(w.FS, &Query{Files: w.names("f")}, p, pay, func() error { return nil })
	r.maxWorkers = 0
	if _, err := r.searchAll(); err != nil || pay.yields < size/(128<<10) {
		t.Errorf("%v, it yields %d times", err, pay.yields)
	}
}

// All searches together have a fixed number of goroutines.
func TestSearchesShareTheirPlaces(t *testing.T) {
	for range cap(places) {
		places <- struct{}{}
	}
	defer func() {
		for range cap(places) {
			<-places
		}
	}()
	files := map[string]string{}
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("f%d", i))
		files["ws/"+names[i]] = "some text\nhit\n"
	}
	w := newWorld(t, nil, nil, files)
	p, err := lines.Compile("hit", 0)
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(w.FS, &Query{Files: w.names(names...), MaxMatches: 1000, MaxText: MaxText, MaxChars: 9}, p, w, func() error { return nil })
	// Nobody has a place: the guest does it all by itself, and what is asked
	// for last does not hold up what is asked for first.
	err = r.search(len(names))
	if err != nil || len(r.found.Lines) != 100 {
		t.Errorf("%v, found %d", err, len(r.found.Lines))
	}
	r.end()
}

// A goroutine that waits for a task searches this task and no other.
func TestTheGuestHelpsWithWhatItWaitsForOnly(t *testing.T) {
	w := newWorld(t, nil, nil, map[string]string{"ws/f": "hit\n"})
	p, err := lines.Compile("hit", 0)
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(w.FS, &Query{Files: w.names("f")}, p, w, func() error { return nil })
	first, second := &task{done: make(chan struct{})}, &task{done: make(chan struct{})}
	r.begin(first)
	r.begin(second)
	if r.waiting[0] != first {
		t.Error("they are out of order")
	}
	r.waiting = r.waiting[1:] // somebody has it
	go close(first.done)
	r.wait(first)
	if len(r.waiting) != 1 {
		t.Error("it has carried out another task")
	}
	r.wait(second)
	select {
	case <-second.done:
	default:
		t.Error("it has not carried out the task")
	}
}

func TestWhatTakesLongToParseIsPaid(t *testing.T) {
	for pattern, want := range map[string]uint64{
		"(?i)foo-bar[a-z]": 0,
		"[Ā-\U0001D7FF]":   0,
		"(?i)" + strings.Repeat("[Ā-\U0001D7FF]", 9): 9 * costFold,
		`(?s-m)(?U-i:[\x{100}-\x{10FFFF}])`:          costFold,
		`(?P<i>x-\x)`:                                0,
		`\pL\P{Greek}\\pL`:                           3 * costClass,
		"(?":                                         0, "": 0, "(?i": 0, "(?i)-": 0, `\`: 0,
	} {
		if got := parseCost(pattern); got != want {
			t.Errorf("%q: %d, want %d", pattern, got, want)
		}
	}
	w := newWorld(t, nil, nil, map[string]string{"ws/f": ""})
	pay := &purse{left: 20_000_000}
	if _, err := find(t.Context(), w.FS, Query{Pattern: "(?i)" + strings.Repeat("[Ā-\U0001D7FF]", 50)}, pay); err != errBroke {
		t.Error(err)
	}
}

// The limit of tasks that are begun ahead applies to all of their files together.
func TestATaskHoldsOneResult(t *testing.T) {
	files := map[string]string{}
	var names []string
	for i := range perTask {
		names = append(names, fmt.Sprintf("f%d", i))
		files["ws/"+names[i]] = strings.Repeat(strings.Repeat("x", 1000)+"\n", 110)
	}
	w := newWorld(t, nil, nil, files)
	p, err := lines.Compile("x", 0)
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(w.FS, &Query{Files: w.names(names...), MaxMatches: MaxMatches, MaxText: MaxText, MaxChars: MaxChars}, p, w, func() error { return nil })
	task, err := r.open(0, false)
	if err != nil || len(task.files) != perTask {
		t.Fatal(err)
	}
	r.begin(task)
	r.wait(task)
	if n := len(task.found.Text); n > MaxText+MaxChars*4 || !task.found.More || task.files[perTask-1].work.Read != 0 {
		t.Errorf("it holds %d bytes", n)
	}
	r.end()
}

func TestListingsWithoutNamesAreBounded(t *testing.T) {
	w := newWorld(t, nil, nil, map[string]string{"ws/f": ""})
	listings, err := List(t.Context(), w.FS, slices.Repeat(w.names("missing"), 1<<16), w)
	if err != nil || len(listings) > maxListed/listingBytes+1 {
		t.Errorf("%d listings, %v", len(listings), err)
	}
}
