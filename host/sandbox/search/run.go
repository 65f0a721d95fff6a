package search

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/sdk/go/lines"
)

const (
	// perTask is how many files are searched in one go: handing them to
	// another goroutine costs as much as searching one.
	perTask = 8
	// ahead is how many tasks are begun before the result of the first is
	// taken. Each file of theirs is open, and can hold MaxText and a match.
	ahead = 6
)

// run is one search. The goroutine of the guest does everything but search.
type run struct {
	fs      *wasi.FS
	query   *Query
	pattern *lines.Pattern
	pay     Payer
	over    func() error

	queue   chan *task // has room for all that are begun
	stopped atomic.Bool
	workers sync.WaitGroup

	found   *Found
	matches int
}

// task is some files that follow one another.
type task struct {
	files []*file
	done  chan struct{}
	panic any // of whoever carried it out
}

// file is one of them. Who carries out the task has the lower part until that
// is done.
type file struct {
	index  int
	handle *wasi.File // nil if it could not be opened
	size   int64

	found   Found
	matches int
	work    lines.Work
	err     error
}

var (
	errStopped = errors.New("stopped")
	errMore    = errors.New("more matches than wanted")
)

func (r *run) all() (*Found, error) {
	r.queue = make(chan *task, ahead)
	var begun []*task
	defer func() {
		r.stopped.Store(true)
		close(r.queue)
		r.workers.Wait()
		for _, t := range begun {
			t.close()
		}
	}()
	total := len(r.query.Files)
	for range min(runtime.GOMAXPROCS(0), (total+perTask-1)/perTask) - 1 {
		r.workers.Go(r.work)
	}
	for next := 0; next < total || len(begun) > 0; {
		if next < total && len(begun) < ahead {
			t, err := r.begin(next, len(begun) > 0)
			if err != nil {
				return nil, err
			}
			if t != nil {
				next += len(t.files)
				begun = append(begun, t)
				r.queue <- t
				continue
			}
		}
		t := begun[0]
		r.wait(t)
		begun = begun[1:]
		t.close()
		if t.panic != nil {
			panic(t.panic)
		}
		if err := r.take(t); err != nil {
			return nil, err
		}
		if r.found.More {
			break
		}
	}
	return r.found, r.over()
}

// begin opens the files of a task, and pays for what is sure to be read. If no
// other file can be open at the same time and others are, it returns nothing.
func (r *run) begin(first int, others bool) (*task, error) {
	t := &task{done: make(chan struct{})}
	var units uint64
	for i := first; i < min(first+perTask, len(r.query.Files)); i++ {
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
				units += r.reading(uint64(min(f.size, paidAhead)))
			}
		}
		t.files = append(t.files, f)
	}
	if len(t.files) == 0 {
		return nil, nil
	}
	err := r.pay(units)
	if err == nil {
		err = r.over()
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// paidAhead is how much of a file is paid for when it is opened: if the search
// ends before its turn comes, some of it was searched for nothing.
const paidAhead = 1 << 20

func (r *run) reading(bytes uint64) uint64 {
	return bytes >> shiftRead * uint64(1+r.pattern.Needs())
}

func (t *task) close() {
	for _, f := range t.files {
		if f.handle != nil {
			f.handle.Close()
		}
	}
}

// wait carries out what is waiting, until the task is done.
func (r *run) wait(t *task) {
	var s *lines.Scanner
	for {
		select {
		case <-t.done:
			return
		default:
		}
		select {
		case <-t.done:
			return
		case next := <-r.queue:
			if s == nil {
				s = r.scanner()
			}
			r.carryOut(s, next)
		}
	}
}

// work is what every other goroutine does.
func (r *run) work() {
	s := r.scanner()
	for t := range r.queue {
		r.carryOut(s, t)
	}
}

func (r *run) scanner() *lines.Scanner {
	return &lines.Scanner{
		Pattern: r.pattern, Context: r.query.Context, Chars: r.query.MaxChars,
		Check: func() error {
			if r.stopped.Load() {
				return errStopped
			}
			return r.over()
		},
	}
}

func (r *run) carryOut(s *lines.Scanner, t *task) {
	defer close(t.done)
	defer func() {
		// It would end the process in a goroutine of its own.
		if p := recover(); p != nil {
			t.panic = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
	}()
	for _, f := range t.files {
		if f.handle == nil {
			continue
		}
		content, _, ok := f.handle.Content()
		if !ok {
			continue
		}
		s.Emit = func(l lines.Line) error {
			line := Line{l.Number, f.index, len(l.Text), l.Matches, l.Cut, l.Before}
			if !f.found.add(r.query, line, l.Text, &f.matches) {
				return errMore
			}
			return nil
		}
		f.work, f.err = s.Scan(content, f.size)
	}
}

// take adds the result of a task to what was found.
func (r *run) take(t *task) error {
	for _, f := range t.files {
		units := r.reading(f.work.Read - min(f.work.Read, uint64(min(f.size, paidAhead))))
		units += f.work.Vain*costVain + f.work.Matched*(costMatch+costStep*r.pattern.Steps())
		if err := r.pay(units); err != nil {
			return err
		}
		switch {
		case f.handle == nil, f.err != nil && f.err != errMore:
			if err := r.over(); err != nil {
				return err
			}
			r.found.Failed++
		}
		at := 0
		for _, l := range f.found.Lines {
			if !r.found.add(r.query, l, f.found.Text[at:at+l.Size], &r.matches) {
				return nil
			}
			at += l.Size
		}
		if f.found.More {
			r.found.More = true
			return nil
		}
	}
	return nil
}
