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
	// perTask limits the files in a task, in which goroutines get their work. Handing a task
	// to another goroutine costs as much as searching one file.
	perTask = 8
	// taskBytes is the size of the files in a task after which no file is added, so that large
	// files are searched in parallel.
	taskBytes = 1 << 20
	// maxTasksAhead limits the tasks that are begun before the result of the first is added.
	// All their files are open, and each task can hold MaxText bytes and a match.
	maxTasksAhead = 6
	// maxUnitsAhead limits the estimated cost of the tasks that are begun ahead. They are
	// finished and paid for even if the search ends before their result is needed: the cost of
	// a search must not depend on how far they got. A task alone may exceed it.
	maxUnitsAhead = 1 << 30
)

// places is a semaphore for all goroutines that search, except for those of guests, which
// have turns. All searches share it.
var places = make(chan struct{}, runtime.GOMAXPROCS(0)-1)

// run is one search. One goroutine conducts it: it does everything except searching, and
// searches as well when it has nothing else to do. This is the goroutine of the guest or,
// until the guest collects the result, a goroutine of its own; see background.
type run struct {
	fs         opener
	query      *Query
	pattern    *lines.Pattern
	callErr    func() error  // returns the reason why the call is over, or nil
	background *background   // nil: the guest conducts the search from the beginning
	quit       chan struct{} // closed by end

	mu      sync.Mutex // guards waiting and ended
	changed *sync.Cond // signals changes of waiting and ended
	waiting []*task    // tasks that no goroutine has taken yet, in order
	ended   bool       // no further task is searched

	maxWorkers int         // limit of the goroutines that only search
	stopped    atomic.Bool // searching goroutines have to give up
	workers    sync.WaitGroup
	owed       atomic.Int64 // units of fuel for tasks that have not ended
	unpaid     atomic.Int64 // units of fuel for everything else that is not paid yet
	available  atomic.Int64 // units of fuel that the guest could pay when it was last asked

	// The goroutine that conducts the search owns these fields.
	pay           Payer
	next          int     // index of the first file that is not open yet
	inFlight      []*task // tasks that were begun and not finished, in order
	inFlightUnits uint64  // estimated cost of inFlight
	deferred      *task   // task that is open, but too expensive to begin ahead; nil: none
	found         *Found
	matches       int // number of matches in found
}

var (
	errStopped = errors.New("stopped")
	errMore    = errors.New("more matches than wanted")
	errAwaited = errors.New("the guest waits for the result")
)

// opener opens files: a [wasi.FS] or a [wasi.View].
type opener interface {
	Contents(names []string) iter.Seq2[wasi.Content, wasi.Errno]
}

func newRun(fs opener, q *Query, p *lines.Pattern, pay Payer, callErr func() error) *run {
	r := &run{fs: fs, query: q, pattern: p, pay: pay, callErr: callErr, maxWorkers: cap(places), found: &Found{}, quit: make(chan struct{})}
	r.changed = sync.NewCond(&r.mu)
	r.noteFunds()
	return r
}

// searchAll does the whole search on the goroutine of the guest.
func (r *run) searchAll() (*Found, error) {
	defer r.end()
	r.startWorkers()
	return r.finish(r.search(len(r.query.Files)))
}

// startWorkers starts the workers, which only search.
func (r *run) startWorkers() {
	for range min(r.maxWorkers, (len(r.query.Files)+perTask-1)/perTask-1) {
		r.workers.Go(r.work)
	}
}

// finish ends the tasks in flight and returns the result, or err, on the guest's goroutine.
func (r *run) finish(err error) (*Found, error) {
	if err != nil {
		r.stopped.Store(true)
	}
	// All tasks that were begun ahead are paid for, whether or not they are needed.
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

// search conducts the search, from the first file that is not open yet to the end (total
// files), or until no further match is wanted. It may be called again after errAwaited.
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

// end stops the workers, waits for them, and closes all open files.
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

func (r *run) begin(t *task) {
	r.inFlight = append(r.inFlight, t)
	r.inFlightUnits += t.units
	r.mu.Lock()
	r.waiting = append(r.waiting, t)
	r.changed.Signal()
	r.mu.Unlock()
}

// finishFirst waits for the first task in flight, and pays for the work.
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
	r.owed.Add(-int64(units)) // before paying, so that no cost counts twice
	paid := r.pay.Pay(units)
	r.noteFunds()
	if paid != nil {
		return t, paid
	}
	return t, err
}

// noteFunds records the fuel that the guest can pay, if the guest conducts the search.
func (r *run) noteFunds() {
	if !r.inBackground() {
		r.available.Store(leftOf(r.pay))
	}
}

func leftOf(p Payer) int64 { return int64(min(p.Left(), math.MaxInt64)) }

// wait searches a task that no worker has taken, or waits for the worker that has. So it never
// waits behind later tasks.
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

// work is the loop of a worker. A worker searches only while it has a place.
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

// awaitWork waits for a task that nobody has taken. False: the search has ended.
func (r *run) awaitWork() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.waiting) == 0 && !r.ended {
		r.changed.Wait()
	}
	return !r.ended
}

// addResult adds the matches of a task to the result. The error is that of the task.
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
