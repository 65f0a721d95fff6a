package search

import (
	"errors"
	"iter"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/sdk/go/lines"
)

const (
	// perTask is how many files are searched in one go: handing them to
	// another goroutine costs as much as searching one.
	perTask = 8
	// taskBytes is how many bytes of files make a task full: large files are
	// not searched one after the other.
	taskBytes = 1 << 20
	// maxTasksAhead is how many tasks are begun before the result of the first is
	// taken. Each file of theirs is open, and each task can hold MaxText and a
	// match.
	maxTasksAhead = 6
	// maxUnitsAhead is what the tasks that are begun before their turn may cost,
	// roughly. They are carried out and paid for even if the search ends
	// before their turn comes: what it costs must not depend on how far they
	// have come.
	maxUnitsAhead = 1 << 30
)

// places is how many goroutines search, beside those of guests, which have
// turns: many searches at the same time share them.
var places = make(chan struct{}, runtime.GOMAXPROCS(0)-1)

// run is one search. One goroutine conducts it: it does everything but search,
// and searches too when there is nothing else for it to do. That is the one of
// the guest or, until the guest comes for the result, one of its own; see background.
type run struct {
	fs         opener
	query      *Query
	pattern    *lines.Pattern
	callErr    func() error
	background *background // nil: the guest conducts it from the beginning
	quit       chan struct{}

	mu      sync.Mutex
	changed *sync.Cond // waiting or ended is another
	waiting []*task    // that nobody carries out yet, in order
	ended   bool

	maxWorkers int // how many others there are at most
	stopped    atomic.Bool
	workers    sync.WaitGroup
	owed       atomic.Int64 // for what was done of tasks that have not ended
	unpaid     atomic.Int64 // for everything else that is not paid yet
	available  atomic.Int64 // what there was to pay it with

	// Of who conducts it:
	pay           Payer
	next          int // the first file that is not open yet
	inFlight      []*task
	inFlightUnits uint64 // what these may cost, roughly
	deferred      *task  // open, and too expensive to be begun before its turn
	found         *Found
	matches       int
}

var (
	errStopped = errors.New("stopped")
	errMore    = errors.New("more matches than wanted")
	errAwaited = errors.New("the guest waits for the result")
)

// opener is a file system, or a view of one.
type opener interface {
	Contents(names []string) iter.Seq2[wasi.Content, wasi.Errno]
}

func newRun(fs opener, q *Query, p *lines.Pattern, pay Payer, over func() error) *run {
	r := &run{fs: fs, query: q, pattern: p, pay: pay, callErr: over, maxWorkers: cap(places), found: &Found{}, quit: make(chan struct{})}
	r.changed = sync.NewCond(&r.mu)
	r.noteFunds()
	return r
}

// searchAll searches while the guest waits.
func (r *run) searchAll() (*Found, error) {
	defer r.end()
	r.startWorkers()
	return r.finish(r.search(len(r.query.Files)))
}

// startWorkers starts the goroutines that only search.
func (r *run) startWorkers() {
	for range min(r.maxWorkers, (len(r.query.Files)+perTask-1)/perTask-1) {
		r.workers.Go(r.work)
	}
}

// finish returns what was found, or why it is nothing. The guest waits.
func (r *run) finish(err error) (*Found, error) {
	if err != nil {
		r.stopped.Store(true)
	}
	// What was begun before its turn is paid for, whatever has come of it.
	for len(r.inFlight) > 0 {
		if _, e := r.finishFirst(); err == nil && e != nil {
			err = e
			r.stopped.Store(true)
		}
	}
	if r.unpaid.Load() > 0 {
		if e := r.pay.Pay(0); err == nil {
			err = e
		}
	}
	if err == nil {
		err = r.callErr()
	}
	if err != nil {
		return nil, err
	}
	return r.found, nil
}

// search takes the tasks in order until no more is wanted. It goes on where it
// was left.
func (r *run) search(total int) error {
	for r.next < total || r.deferred != nil || len(r.inFlight) > 0 {
		if r.inBackground() && r.guestWaits() {
			return errAwaited
		}
		if r.deferred == nil && r.next < total && len(r.inFlight) < maxTasksAhead {
			t, err := r.open(r.next, len(r.inFlight) > 0)
			if err != nil {
				return err
			}
			if t != nil {
				r.next += len(t.files)
				r.deferred = t
			}
		}
		if t := r.deferred; t != nil && len(r.inFlight) < maxTasksAhead && (len(r.inFlight) == 0 || r.inFlightUnits+t.units <= maxUnitsAhead) {
			r.deferred = nil
			r.begin(t)
			continue
		}
		t, err := r.finishFirst()
		if err == nil {
			err = r.addResult(t)
		}
		if err != nil || r.found.More {
			return err
		}
	}
	return nil
}

// end waits for the others, and closes what is open.
func (r *run) end() {
	r.stopped.Store(true)
	r.mu.Lock()
	if !r.ended {
		r.ended = true
		close(r.quit)
	}
	r.changed.Broadcast()
	r.mu.Unlock()
	r.workers.Wait()
	for _, t := range r.inFlight {
		t.close()
	}
	if r.deferred != nil {
		r.deferred.close()
	}
	if r.background != nil {
		r.background.view.Close()
	}
}

// begin lets others carry out a task.
func (r *run) begin(t *task) {
	r.inFlight = append(r.inFlight, t)
	r.inFlightUnits += t.units
	r.mu.Lock()
	r.waiting = append(r.waiting, t)
	r.changed.Signal()
	r.mu.Unlock()
}

// finishFirst ends the first task that was begun, and pays for it.
func (r *run) finishFirst() (*task, error) {
	t := r.inFlight[0]
	r.wait(t)
	r.inFlight = r.inFlight[1:]
	r.inFlightUnits -= t.units
	t.close()
	if t.panic != nil {
		panic(t.panic)
	}
	var units uint64
	var err error
	for _, f := range t.files {
		units += r.cost(f, f.work)
		if f.err == ErrSpent || err == nil && f.err == errStopped {
			err = f.err
		}
	}
	r.owed.Add(-int64(units)) // first, so that nothing ever counts twice
	paid := r.pay.Pay(units)
	r.noteFunds()
	if paid != nil {
		return t, paid
	}
	return t, err
}

// noteFunds takes note of what the guest can pay, if it is the guest that asks.
func (r *run) noteFunds() {
	if !r.inBackground() {
		r.available.Store(leftOf(r.pay))
	}
}

func leftOf(p Payer) int64 { return int64(min(p.Left(), math.MaxInt64)) }

// wait carries out a task, or waits for who does: it is not held up by those
// that come later.
func (r *run) wait(t *task) {
	r.mu.Lock()
	i := slices.Index(r.waiting, t)
	if i >= 0 {
		r.waiting = slices.Delete(r.waiting, i, i+1)
	}
	r.mu.Unlock()
	if i >= 0 {
		r.carryOut(t, r.inBackground())
		return
	}
	select {
	case <-t.done:
	default:
		r.pay.WithoutTurn(func() { <-t.done })
	}
}

// work is what every other goroutine does, as long as it has a place.
func (r *run) work() {
	for r.awaitWork() {
		select {
		case places <- struct{}{}:
		case <-r.quit:
			return
		}
		r.mu.Lock()
		var t *task
		if len(r.waiting) > 0 {
			t = r.waiting[0]
			r.waiting = slices.Delete(r.waiting, 0, 1)
		}
		r.mu.Unlock()
		if t != nil {
			r.carryOut(t, true)
		}
		<-places
	}
}

// awaitWork waits until there is something to do, or nothing any more.
func (r *run) awaitWork() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.waiting) == 0 && !r.ended {
		r.changed.Wait()
	}
	return !r.ended
}

// addResult adds the result of a task to what was found.
func (r *run) addResult(t *task) error {
	rest, at := t.found.Lines, 0
	for _, f := range t.files {
		if f.content == nil || f.err != nil && f.err != errMore {
			if err := r.callErr(); err != nil {
				return err
			}
			r.found.Failed++
		}
		for ; len(rest) > 0 && rest[0].File == f.index; rest = rest[1:] {
			l := rest[0]
			if !r.found.add(r.query, l, t.found.Text[at:at+l.Size], &r.matches) {
				return nil
			}
			at += l.Size
		}
		if f.err == errMore {
			r.found.More = true
			return nil
		}
	}
	return nil
}
