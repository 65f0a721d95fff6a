package search

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

// backgroundUnits is how much may be owed for a search before the guest comes for
// the result, which is when it pays. Then the search waits for it. A guest can
// have so much done that it cannot pay, once a call.
const backgroundUnits = 1 << 28

// Search is a search that goes on while its guest does something else. Its
// methods are called on the goroutine of the guest. Either of them is to be
// called, once.
type Search struct {
	run   *run   // nil: it was made at once
	found *Found // then
}

// Begin begins a search. It is made at once where no other goroutine may open
// files, see [wasi.FS.View], and where there is only one processor. An error is
// ErrPattern, ErrSpent, the end of ctx or what pay says; a file that cannot be
// read is none.
func Begin(ctx context.Context, fs *wasi.FS, q Query, pay Payer) (*Search, error) {
	r, err := prepare(ctx, fs, q, pay)
	if err != nil {
		return nil, err
	}
	if r.toBackground(fs) {
		return &Search{run: r}, nil
	}
	found, err := r.searchAll()
	if err != nil {
		return nil, err
	}
	return &Search{found: found}, nil
}

// Collect waits for the result, and helps with it. The errors are those of
// Begin.
func (s *Search) Collect() (*Found, error) {
	if s.run == nil {
		return s.found, nil
	}
	return s.run.collect()
}

// Abandon ends the search and waits for that. It says what has been done and
// was not paid. An error is a mistake of ours.
func (s *Search) Abandon() (owed uint64, err error) {
	if s.run == nil {
		return 0, nil
	}
	r := s.run
	r.end()
	if r.background.panic != nil {
		err = fmt.Errorf("search: %v", r.background.panic)
	}
	return uint64(max(r.unpaid.Load()+r.owed.Load(), 0)), err
}

// background is what a search has that is conducted by a goroutine of its own
// until the guest comes. That one has a place, as all who search have, and opens files through
// a view of the file system. It pays nothing: what it does is noted, and the
// guest pays when it comes. The guest conducts the rest, because it has a turn,
// while places are passed round among all searches.
type background struct {
	view       *wasi.View
	payer      Payer         // the guest's account
	guestWaits chan struct{} // closed when the guest waits
	handed     chan struct{} // closed when the guest may conduct

	// Of who conducts it, until then:
	err   error
	panic any
}

// toBackground begins to search on another goroutine, or says that it cannot.
func (r *run) toBackground(fs *wasi.FS) bool {
	if r.maxWorkers == 0 {
		return false
	}
	view, ok := fs.View(maxTasksAhead*perTask, func(units uint64) { r.unpaid.Add(int64(units)) })
	if !ok {
		return false
	}
	a := &background{view: view, payer: r.pay, guestWaits: make(chan struct{}), handed: make(chan struct{})}
	r.fs, r.background, r.pay = view, a, deferredPayer{r}
	r.maxWorkers--
	r.startWorkers()
	r.workers.Go(func() {
		r.conduct()
		r.work()
	})
	return true
}

// conduct searches until the guest waits.
func (r *run) conduct() {
	a := r.background
	defer close(a.handed)
	a.err = errAwaited
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-a.guestWaits:
		return
	case <-r.quit:
		return
	}
	defer func() {
		if p := recover(); p != nil {
			a.panic = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
	}()
	a.err = r.search(len(r.query.Files))
}

// inBackground reports whether who conducts the search has a place, and is not the
// guest. Only who conducts it may ask.
func (r *run) inBackground() bool {
	_, ok := r.pay.(deferredPayer)
	return ok
}

// guestWaits reports whether the guest waits for the result. Until it does it may
// use up what there was to pay with.
func (r *run) guestWaits() bool {
	if r.background == nil {
		return true
	}
	select {
	case <-r.background.guestWaits:
		return true
	default:
		return false
	}
}

// owedLimit is how much may be owed now.
func (r *run) owedLimit() int64 {
	left := r.available.Load()
	if !r.guestWaits() {
		left = min(left, backgroundUnits)
	}
	return left
}

// checkFunds returns ErrSpent if more has been done than the guest can pay. If it
// is not known yet, because it does something else, it waits for the guest. The
// goroutine has a place then.
func (r *run) checkFunds() error {
	for {
		awaited := r.guestWaits()
		switch {
		case r.unpaid.Load()+r.owed.Load() <= r.owedLimit():
			return nil
		case awaited:
			// It is paid for in any case, so that this is the end.
			return ErrSpent
		case r.stopped.Load():
			return errStopped
		}
		<-places
		select {
		case <-r.background.guestWaits:
		case <-r.quit:
		}
		places <- struct{}{}
	}
}

// collect conducts what is left of the search.
func (r *run) collect() (*Found, error) {
	defer r.end()
	a := r.background
	r.available.Store(leftOf(a.payer))
	close(a.guestWaits)
	select {
	case <-a.handed:
	default:
		a.payer.WithoutTurn(func() { <-a.handed })
	}
	if a.panic != nil {
		panic(a.panic)
	}
	r.pay = guestPayer{a.payer, r}
	err := r.pay.Pay(0)
	if err == nil {
		r.noteFunds()
		if err = a.err; err == errAwaited {
			err = r.search(len(r.query.Files))
		}
	}
	return r.finish(err)
}

// deferredPayer is a payer who is not there.
type deferredPayer struct{ *run }

// Pay takes note of it.
func (l deferredPayer) Pay(units uint64) error {
	l.unpaid.Add(int64(units))
	if err := l.checkFunds(); err != nil {
		return err
	}
	<-places // to who waits for one: files that cannot be opened take time too
	places <- struct{}{}
	return nil
}

// Left is what the guest had when it was seen last.
func (l deferredPayer) Left() uint64 { return uint64(l.available.Load()) }

// Yield is for guests.
func (l deferredPayer) Yield(uint64) error { return nil }

// WithoutTurn waits, while others have the place.
func (l deferredPayer) WithoutTurn(wait func()) {
	<-places
	wait()
	places <- struct{}{}
}

// guestPayer is the guest, who also pays for what others have noted.
type guestPayer struct {
	Payer
	run *run
}

// Pay takes what there is to pay.
func (n guestPayer) Pay(units uint64) error {
	return n.Payer.Pay(units + uint64(n.run.unpaid.Swap(0)))
}
