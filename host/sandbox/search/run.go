package search

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
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
	// ahead is how many tasks are begun before the result of the first is
	// taken. Each file of theirs is open, and each task can hold MaxText and a
	// match.
	ahead = 6
	// aheadUnits is what the tasks that are begun before their turn may cost,
	// roughly. They are carried out and paid for even if the search ends
	// before their turn comes: what it costs must not depend on how far they
	// have come.
	aheadUnits = 1 << 30
)

// places is how many goroutines search, beside those of guests, which have
// turns: many searches at the same time share them.
var places = make(chan struct{}, runtime.GOMAXPROCS(0)-1)

// run is one search. The goroutine of the guest does everything but search,
// and searches too when there is nothing else for it to do.
type run struct {
	fs      *wasi.FS
	query   *Query
	pattern *lines.Pattern
	pay     Payer
	over    func() error

	mu      sync.Mutex
	changed *sync.Cond // waiting or ended is another
	waiting []*task    // that nobody carries out yet, in order
	ended   bool

	most    int // how many others there are at most
	stopped atomic.Bool
	workers sync.WaitGroup
	owed    atomic.Int64 // for what was done and is not paid yet
	left    atomic.Int64 // what there was to pay it with
	begun   []*task
	units   uint64 // what these may cost, roughly
	held    *task  // open, and too expensive to be begun before its turn

	found   *Found
	matches int
}

// task is some files that follow one another.
type task struct {
	files []*file
	units uint64 // what it may cost, roughly
	done  chan struct{}

	// Who carries out the task has this until that is done.
	found   Found // in all of its files
	matches int
	panic   any
}

// file is one of them. Who carries out the task has the lower part until that
// is done.
type file struct {
	index  int
	handle *wasi.File // nil if it could not be opened
	size   int64
	paid   uint64 // before it is searched

	work lines.Work
	err  error
}

var (
	errStopped = errors.New("stopped")
	errMore    = errors.New("more matches than wanted")
)

func newRun(fs *wasi.FS, q *Query, p *lines.Pattern, pay Payer, over func() error) *run {
	r := &run{fs: fs, query: q, pattern: p, pay: pay, over: over, most: cap(places), found: &Found{}}
	r.changed = sync.NewCond(&r.mu)
	r.funds()
	return r
}

func (r *run) all() (*Found, error) {
	defer r.end()
	total := len(r.query.Files)
	for range min(r.most, (total+perTask-1)/perTask-1) {
		r.workers.Go(r.work)
	}
	err := r.search(total)
	if err != nil {
		r.stopped.Store(true)
	}
	// What was begun before its turn is paid for, whatever has come of it.
	for len(r.begun) > 0 {
		if _, e := r.first(); err == nil && e != nil {
			err = e
			r.stopped.Store(true)
		}
	}
	if err == nil {
		err = r.over()
	}
	if err != nil {
		return nil, err
	}
	return r.found, nil
}

// search takes the tasks in order until no more is wanted.
func (r *run) search(total int) error {
	for next := 0; next < total || r.held != nil || len(r.begun) > 0; {
		if r.held == nil && next < total && len(r.begun) < ahead {
			t, err := r.open(next, len(r.begun) > 0)
			if err != nil {
				return err
			}
			if t != nil {
				next += len(t.files)
				r.held = t
			}
		}
		if t := r.held; t != nil && len(r.begun) < ahead && (len(r.begun) == 0 || r.units+t.units <= aheadUnits) {
			r.held = nil
			r.begin(t)
			continue
		}
		t, err := r.first()
		if err == nil {
			err = r.take(t)
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
	r.ended = true
	r.changed.Broadcast()
	r.mu.Unlock()
	r.workers.Wait()
	for _, t := range r.begun {
		t.close()
	}
	if r.held != nil {
		r.held.close()
	}
}

// open opens the files of a task, and pays for what is sure to be read. If no
// other file can be open at the same time and others are, it returns nothing.
func (r *run) open(first int, others bool) (*task, error) {
	t := &task{done: make(chan struct{})}
	var units uint64
	var bytes int64
	for i := first; i < min(first+perTask, len(r.query.Files)) && bytes < taskBytes; i++ {
		f := &file{index: i}
		h, errno := r.fs.Open(r.query.Files[i], wasi.ReadOnly)
		if errno == wasi.EMFILE && (others || len(t.files) > 0) {
			break
		}
		units += costFile
		if errno == 0 {
			f.handle, _ = h.(*wasi.File)
			if f.handle == nil {
				h.Close() // a directory
			} else {
				_, f.size, _ = f.handle.Content()
				f.paid = r.reading(uint64(min(f.size, paidAhead)))
				units += f.paid
				bytes += min(f.size, math.MaxInt64/perTask)
				t.units += r.estimate(uint64(f.size))
			}
		}
		t.files = append(t.files, f)
	}
	if len(t.files) == 0 {
		return nil, nil
	}
	err := r.pay.Pay(units)
	if err == nil {
		err = r.over()
	}
	if err != nil {
		t.close()
		return nil, err
	}
	r.funds()
	return t, nil
}

// paidAhead is how much of a file is paid for when it is opened.
const paidAhead = 1 << 20

// reading is what it costs to read so much and to look for the texts once.
func (r *run) reading(bytes uint64) uint64 {
	return bytes >> shiftRead * uint64(1+r.pattern.Needs())
}

// estimate is what it may cost to search so much: all of it is matched if
// nothing is known to look for, and a small part of it otherwise.
func (r *run) estimate(bytes uint64) uint64 {
	bytes = min(bytes, math.MaxInt64/(costMatch+costStep*max(r.pattern.Steps(), 1))/2/perTask)
	matched := bytes
	if r.pattern.Needs() > 0 {
		matched /= 16
	}
	return bytes + matched*(costMatch+costStep*r.pattern.Steps())
}

// cost is what is to be paid for a file when it has been searched, or until
// now.
func (r *run) cost(f *file, w lines.Work) uint64 {
	units := w.Read>>shiftRead + w.Looked>>shiftRead + w.Vain*costVain +
		w.Lines*costLine + w.Matched*(costMatch+costStep*r.pattern.Steps())
	return units - min(units, f.paid)
}

func (t *task) close() {
	for _, f := range t.files {
		if f.handle != nil {
			f.handle.Close()
		}
	}
}

// begin lets others carry out a task.
func (r *run) begin(t *task) {
	r.begun = append(r.begun, t)
	r.units += t.units
	r.mu.Lock()
	r.waiting = append(r.waiting, t)
	r.changed.Signal()
	r.mu.Unlock()
}

// first ends the first task that was begun, and pays for it.
func (r *run) first() (*task, error) {
	t := r.begun[0]
	r.wait(t)
	r.begun = r.begun[1:]
	r.units -= t.units
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
	paid := r.pay.Pay(units)
	r.owed.Add(-int64(units))
	r.funds()
	if paid != nil {
		return t, paid
	}
	return t, err
}

// funds takes note of what the guest can pay.
func (r *run) funds() { r.left.Store(int64(min(r.pay.Left(), math.MaxInt64))) }

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
		r.carryOut(t, false)
		return
	}
	select {
	case <-t.done:
	default:
		r.pay.Away(func() { <-t.done })
	}
}

// work is what every other goroutine does, as long as it has a place.
func (r *run) work() {
	for r.wanted() {
		places <- struct{}{}
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

// wanted waits until there is something to do, or nothing any more.
func (r *run) wanted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.waiting) == 0 && !r.ended {
		r.changed.Wait()
	}
	return !r.ended
}

// scanners have a buffer that is as large as many files together.
var scanners = sync.Pool{New: func() any { return &lines.Scanner{} }}

// carryOut searches the files of a task. placed says that it has a place;
// otherwise it is the goroutine of the guest.
func (r *run) carryOut(t *task, placed bool) {
	s := scanners.Get().(*lines.Scanner)
	defer close(t.done)
	defer func() {
		// It would end the process in a goroutine of its own.
		if p := recover(); p != nil {
			t.panic = fmt.Sprintf("%v\n%s", p, debug.Stack())
			return
		}
		s.Pattern, s.Check, s.Emit = nil, nil, nil
		scanners.Put(s)
	}()
	s.Pattern, s.Context, s.Chars = r.pattern, r.query.Context, r.query.MaxChars
	var f *file
	var known uint64 // to be owed for f
	owe := func(w lines.Work) int64 {
		units := r.cost(f, w)
		known, units = units, units-known
		return r.owed.Add(int64(units))
	}
	s.Check = func() error {
		owed := owe(s.Work())
		switch {
		case r.stopped.Load():
			return errStopped
		case owed > r.left.Load():
			// It is paid for in any case, so that this is the end.
			return ErrSpent
		case !placed:
			if err := r.pay.Yield(uint64(max(owed, 0))); err != nil {
				return err
			}
		default:
			<-places // to who waits for one
			places <- struct{}{}
		}
		return r.over()
	}
	s.Emit = func(l lines.Line) error {
		line := Line{l.Number, f.index, len(l.Text), l.Matches, l.Cut, l.Before}
		if !t.found.add(r.query, line, l.Text, &t.matches) {
			return errMore
		}
		return nil
	}
	for _, f = range t.files {
		if f.handle == nil {
			continue
		}
		content, _, ok := f.handle.Content()
		if !ok {
			continue
		}
		known = 0
		f.work, f.err = s.Scan(content, f.size)
		owe(f.work)
		if f.err == errMore || f.err == errStopped || f.err == ErrSpent {
			return
		}
	}
}

// take adds the result of a task to what was found.
func (r *run) take(t *task) error {
	rest, at := t.found.Lines, 0
	for _, f := range t.files {
		if f.handle == nil || f.err != nil && f.err != errMore {
			if err := r.over(); err != nil {
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

// Payer is what a search has to do with the account of the guest. Its methods
// are called on the goroutine of the guest.
type Payer interface {
	// Pay takes what the guest has to pay, and says whether it can.
	Pay(units uint64) error
	// Left is what it can pay.
	Left() uint64
	// Yield lets others have their turn. So much is going to be paid.
	Yield(owed uint64) error
	// Away waits, while others have the turn.
	Away(wait func())
}

// Free is the account of who does not pay.
type Free struct{}

// Pay takes nothing.
func (Free) Pay(uint64) error { return nil }

// Left is without end.
func (Free) Left() uint64 { return math.MaxUint64 }

// Yield does nothing.
func (Free) Yield(uint64) error { return nil }

// Away waits.
func (Free) Away(wait func()) { wait() }
