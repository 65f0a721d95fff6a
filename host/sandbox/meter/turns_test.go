package meter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// line holds guests that want to run all the time, and counts their slices.
type line struct {
	turns *Turns
	step  chan struct{} // lets a guest that has a turn finish its slice
	guest sync.WaitGroup

	mu  sync.Mutex
	ran []string
}

// join adds a guest that has used some fuel and wants to run a number of slices.
func (l *line) join(ctx context.Context, name string, used uint64, slices int) *Account {
	a := New(ctx, 1<<40, 1)
	a.UseTurns(l.turns)
	l.guest.Go(func() {
		defer a.ReleaseTurn()
		for range slices {
			if l.turns.acquire(ctx, a, used) != nil {
				return
			}
			l.mu.Lock()
			l.ran = append(l.ran, name)
			l.mu.Unlock()
			<-l.step
			used++
		}
	})
	synctest.Wait()
	return a
}

// pass ends a number of slices.
func (l *line) pass(n int) {
	for range n {
		l.step <- struct{}{}
		synctest.Wait()
	}
}

func (l *line) seen() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.ran)
}

func inLine(t *testing.T, n int, test func(*testing.T, *line)) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{turns: NewTurns(n), step: make(chan struct{})}
		test(t, l)
		close(l.step)
		l.guest.Wait()
	})
}

func TestAShortCallWaitsForOneSliceOfAThousandLongOnes(t *testing.T) {
	inLine(t, 1, func(t *testing.T, l *line) {
		for i := range 1000 {
			l.join(t.Context(), fmt.Sprint(i), uint64(1000+i%7), 2)
		}
		l.join(t.Context(), "short", 0, 3)
		before := len(l.seen())
		l.pass(4)
		// After the slice that was under way it has three in a row.
		if got := l.seen()[before:]; !slices.Equal(got[:3], []string{"short", "short", "short"}) || got[3] == "short" {
			t.Errorf("%q", got)
		}
	})
}

func TestLongCallsShareSliceBySlice(t *testing.T) {
	inLine(t, 1, func(t *testing.T, l *line) {
		for _, name := range []string{"a", "b", "c"} {
			l.join(t.Context(), name, 0, 20)
		}
		l.pass(30)
		// The first ran alone until the others came.
		for _, name := range []string{"a", "b", "c"} {
			n := 0
			for _, r := range l.seen() {
				if r == name {
					n++
				}
			}
			if n < 9 || n > 12 {
				t.Errorf("%s had %d of %d slices", name, n, len(l.seen()))
			}
		}
	})
}

func TestAsManyRunAsThereAreTurns(t *testing.T) {
	inLine(t, 3, func(t *testing.T, l *line) {
		for i := range 5 {
			l.join(t.Context(), fmt.Sprint(i), 0, 1)
		}
		if got := l.seen(); len(got) != 3 {
			t.Errorf("%q run", got)
		}
		l.pass(1)
		if got := l.seen(); len(got) != 4 {
			t.Errorf("%q run after one has ended", got)
		}
	})
}

func TestWhoIsStoppedWhileItWaitsLeavesTheLine(t *testing.T) {
	inLine(t, 1, func(t *testing.T, l *line) {
		l.join(t.Context(), "first", 0, 1)
		ctx, cancel := context.WithCancel(t.Context())
		l.join(ctx, "stopped", 0, 1)
		l.join(t.Context(), "last", 5, 1)
		cancel()
		synctest.Wait()
		l.pass(1)
		if got := l.seen(); !slices.Equal(got, []string{"first", "last"}) {
			t.Errorf("%q", got)
		}
		if n := len(l.turns.waiting); n != 0 {
			t.Errorf("%d wait", n)
		}
	})
}

func TestWhoIsAwayHoldsNobodyUp(t *testing.T) {
	inLine(t, 1, func(t *testing.T, l *line) {
		a := New(t.Context(), 1<<40, 1)
		a.UseTurns(l.turns)
		if err := l.turns.acquire(t.Context(), a, 0); err != nil {
			t.Fatal(err)
		}
		a.WithoutTurn(func() {
			l.join(t.Context(), "other", 10, 1)
			l.pass(1)
		})
		if got := l.seen(); !slices.Equal(got, []string{"other"}) {
			t.Errorf("%q", got)
		}
		if _, has := l.turns.holders[a]; !has {
			t.Error("it runs on without a turn")
		}
		a.Close()
		a.ReleaseTurn() // twice is once
		if l.turns.free != 1 {
			t.Errorf("%d turns", l.turns.free)
		}
	})
}

// A guest that hangs in the host, in an unexpected place.
func TestATurnThatNobodyUsesIsTaken(t *testing.T) {
	inLine(t, 1, func(t *testing.T, l *line) {
		hangs := New(t.Context(), 1<<40, 1)
		hangs.UseTurns(l.turns)
		if err := l.turns.acquire(t.Context(), hangs, 0); err != nil {
			t.Fatal(err)
		}
		l.join(t.Context(), "other", 10, 1)
		if got := l.seen(); len(got) != 0 {
			t.Errorf("%q before the lease has ended", got)
		}
		time.Sleep(3 * lease) // of the test's own clock
		synctest.Wait()
		if got := l.seen(); !slices.Equal(got, []string{"other"}) {
			t.Errorf("%q", got)
		}
		hangs.ReleaseTurn()
		l.pass(1)
		if l.turns.free != 1 || len(l.turns.holders) != 0 {
			t.Errorf("%d turns, %d taken", l.turns.free, len(l.turns.holders))
		}
	})
}

func TestALineOfTheStoppedIsEmpty(t *testing.T) {
	turns := NewTurns(1)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stopped"))
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			a := New(ctx, 1, 1)
			a.UseTurns(turns)
			_ = turns.acquire(ctx, a, 0)
			a.ReleaseTurn()
		})
	}
	all.Wait()
	if turns.free != 1 || len(turns.holders)+len(turns.waiting) != 0 {
		t.Errorf("%d turns, %d taken, %d wait", turns.free, len(turns.holders), len(turns.waiting))
	}
}

// A long call makes progress, however many short calls come.
func TestShortCallsDoNotHoldUpALongOneForEver(t *testing.T) {
	inLine(t, 1, func(t *testing.T, l *line) {
		l.join(t.Context(), "short", 0, 1)
		l.join(t.Context(), "long", 100*bonus, 10)
		for range 40 {
			l.join(t.Context(), "short", 0, 1) // before the one that runs has ended
			l.pass(1)
		}
		n := 0
		for _, r := range l.seen() {
			if r == "long" {
				n++
			}
		}
		if n < 40/eldest-1 || n > 10 {
			t.Errorf("the long call had %d of %d slices", n, len(l.seen()))
		}
	})
}

// A new guest does not run alone until it has used as much as the others.
func TestWhoComesCountsAsOneOfThem(t *testing.T) {
	inLine(t, 1, func(t *testing.T, l *line) {
		a, b := New(t.Context(), 1, 1), New(t.Context(), 1, 1)
		for _, c := range []*Account{a, b} {
			c.UseTurns(l.turns)
		}
		if err := l.turns.acquire(t.Context(), a, 50*bonus); err != nil {
			t.Fatal(err)
		}
		a.ReleaseTurn()
		l.join(t.Context(), "other", 30*bonus, 1)
		var next error
		l.guest.Go(func() { next = l.turns.acquire(t.Context(), b, 7) })
		synctest.Wait()
		if b.usedAtTurn != 29*bonus {
			t.Errorf("it counts as having used %d", b.usedAtTurn)
		}
		l.pass(1)
		if next != nil || l.turns.acquire(t.Context(), b, 9) != nil || b.usedAtTurn != 29*bonus+2 {
			t.Errorf("it counts as having used %d, %v", b.usedAtTurn, next)
		}
		b.ReleaseTurn()
	})
}

// A host function that takes long lets others in between.
func TestYield(t *testing.T) {
	inLine(t, 1, func(t *testing.T, l *line) {
		ctx, cancel := context.WithCancel(t.Context())
		a := New(ctx, 1<<40, 1)
		a.UseTurns(l.turns)
		if err := a.Yield(0); err != nil {
			t.Fatal(err)
		}
		l.join(t.Context(), "other", 10, 1)
		if err := a.Yield(9); err != nil || len(l.seen()) != 0 {
			t.Errorf("%v, %q before", err, l.seen())
		}
		l.guest.Go(func() { _ = a.Yield(11) })
		synctest.Wait()
		l.pass(1)
		if got := l.seen(); !slices.Equal(got, []string{"other"}) {
			t.Errorf("%q", got)
		}
		cancel()
		if err := a.Yield(0); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		a.ReleaseTurn()
	})
}
