package search

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

// backgroundUnits limits the fuel that a search owes before the guest, which has to pay,
// collects the result. At this limit the search waits for the guest. Once in a call, a guest
// can cause that much work that it cannot pay.
const backgroundUnits = 1 << 28

// Search is a search that continues while its guest does something else. The goroutine of the
// guest calls its methods. It has to call either Collect or Abandon, once.
type Search struct {
	run   *run   // nil: the search was done in Begin
	found *Found // result, if run is nil
}

// Begin begins a search for the guest that pays with pay. The whole search is done in Begin if
// no other goroutine may open files, see [wasi.FS.View], or if there is only one processor.
// The error is ErrPattern, ErrSpent, the end of ctx, or an error of pay. A file that cannot be
// read is no error.
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

// Collect helps with the search and returns the result. The errors are those of Begin.
func (s *Search) Collect() (*Found, error) {
	if s.run == nil {
		return s.found, nil
	}
	return s.run.collect()
}

// Abandon ends the search and waits for its end. owed is the number of units of fuel that were
// not paid. An error means a bug of the host.
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

// background is the state of a search that another goroutine conducts until the guest collects
// the result. This goroutine has a place, like all searching goroutines, and opens files
// through a view of the file system. It cannot pay: it records debts, and the guest pays
// later. The guest then conducts the rest, because it has a turn, while places change hands
// among all searches.
type background struct {
	view       *wasi.View
	payer      Payer         // account of the guest
	guestWaits chan struct{} // closed when the guest collects the result
	handed     chan struct{} // closed when the guest may conduct

	// The goroutine that conducts the search owns these fields until handed is closed.
	err   error // error of the search so far
	panic any   // value of a panic; nil: none
}

// toBackground starts a goroutine that conducts the search. It returns false if that is not
// possible, so that the search has to be done at once.
func (r *run) toBackground(fs *wasi.FS) bool {
	if r.maxWorkers == 0 {
		return false
	}
	view, ok := fs.View(maxTasksAhead*perTask, func(units uint64) { r.unpaid.Add(int64(units)) })
	if !ok {
		return false
	}
	b := &background{view: view, payer: r.pay, guestWaits: make(chan struct{}), handed: make(chan struct{})}
	r.fs, r.background, r.pay = view, b, deferredPayer{r}
	r.maxWorkers--
	r.startWorkers()
	r.workers.Go(func() {
		r.conduct()
		r.work()
	})
	return true
}

// conduct conducts the search until the guest waits for the result.
func (r *run) conduct() {
	b := r.background
	defer close(b.handed)
	b.err = errAwaited
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-b.guestWaits:
		return
	case <-r.quit:
		return
	}
	defer func() {
		if p := recover(); p != nil {
			b.panic = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
	}()
	b.err = r.search(len(r.query.Files))
}

// inBackground reports whether the search is conducted by a goroutine with a place, not by
// the guest. Only the conducting goroutine may call it.
func (r *run) inBackground() bool {
	_, ok := r.pay.(deferredPayer)
	return ok
}

// guestWaits reports whether the guest waits for the result. Before that, the guest may spend
// the fuel that the search would need.
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

// owedLimit returns the units of fuel that the search may owe now.
func (r *run) owedLimit() int64 {
	left := r.available.Load()
	if !r.guestWaits() {
		left = min(left, backgroundUnits)
	}
	return left
}

// checkFunds returns ErrSpent if the search owes more than the guest can pay. While the guest
// does something else that is unknown, and checkFunds waits for the guest. The calling
// goroutine has a place.
func (r *run) checkFunds() error {
	for {
		awaited := r.guestWaits()
		switch {
		case r.unpaid.Load()+r.owed.Load() <= r.owedLimit():
			return nil
		case awaited:
			// The debt will be paid in any case, so the search ends here.
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

// collect conducts the rest of the search, on the goroutine of the guest.
func (r *run) collect() (*Found, error) {
	defer r.end()
	b := r.background
	r.available.Store(leftOf(b.payer))
	close(b.guestWaits)
	select {
	case <-b.handed:
	default:
		b.payer.WithoutTurn(func() { <-b.handed })
	}
	if b.panic != nil {
		panic(b.panic)
	}
	r.pay = guestPayer{b.payer, r}
	err := r.pay.Pay(0)
	if err == nil {
		r.noteFunds()
		if err = b.err; err == errAwaited {
			err = r.search(len(r.query.Files))
		}
	}
	return r.finish(err)
}

// deferredPayer is the payer while the guest does something else.
type deferredPayer struct{ *run }

// Pay records the debt.
func (l deferredPayer) Pay(units uint64) error {
	l.unpaid.Add(int64(units))
	if err := l.checkFunds(); err != nil {
		return err
	}
	<-places // let waiting goroutines run: failing to open files takes time, too
	places <- struct{}{}
	return nil
}

// Left returns the fuel that the guest had when it was last seen.
func (l deferredPayer) Left() uint64 { return uint64(l.available.Load()) }

// Yield does nothing: there is no turn to yield.
func (l deferredPayer) Yield(uint64) error { return nil }

// WithoutTurn calls wait, while other goroutines can use the place.
func (l deferredPayer) WithoutTurn(wait func()) {
	<-places
	wait()
	places <- struct{}{}
}

// guestPayer is the guest as a payer. It also pays the debts that others have recorded.
type guestPayer struct {
	Payer
	run *run
}

// Pay pays units and the recorded debts.
func (n guestPayer) Pay(units uint64) error {
	return n.Payer.Pay(units + uint64(n.run.unpaid.Swap(0)))
}
