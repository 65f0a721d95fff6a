package search

import (
	"fmt"
	"math"
	"runtime/debug"
	"sync"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/sdk/go/lines"
)

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
	index   int
	content wasi.Content // nil if it could not be opened
	size    int64
	paid    uint64 // before it is searched

	work lines.Work
	err  error
}

// open opens the files of a task, and pays for what is sure to be read. If no
// other file can be open at the same time and others are, it returns nothing.
func (r *run) open(first int, others bool) (*task, error) {
	t := &task{done: make(chan struct{})}
	var units uint64
	var bytes int64
	names := r.query.Files[first:min(first+perTask, len(r.query.Files))]
	for content, errno := range r.fs.Contents(names) {
		f := &file{index: first + len(t.files)}
		if errno == wasi.EMFILE && (others || len(t.files) > 0) {
			break
		}
		units += costFile
		if errno == 0 {
			f.content, f.size = content, content.Size()
			f.paid = r.reading(uint64(min(f.size, paidAhead)))
			units += f.paid
			bytes += min(f.size, math.MaxInt64/perTask)
			t.units += r.estimate(uint64(f.size))
		}
		if t.files = append(t.files, f); bytes >= taskBytes {
			break
		}
	}
	if len(t.files) == 0 {
		return nil, nil
	}
	err := r.pay.Pay(units)
	if err == nil {
		err = r.callErr()
	}
	if err != nil {
		t.close()
		return nil, err
	}
	r.noteFunds()
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
		if f.content != nil {
			f.content.Close()
		}
	}
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
		case owed+r.unpaid.Load() > r.owedLimit():
			if err := r.checkFunds(); err != nil {
				return err
			}
		case !placed:
			if err := r.pay.Yield(uint64(max(owed, 0))); err != nil {
				return err
			}
		default:
			<-places // to who waits for one
			places <- struct{}{}
		}
		return r.callErr()
	}
	s.Emit = func(l lines.Line) error {
		line := Line{l.Number, f.index, len(l.Text), l.Matches, l.Cut, l.Before}
		if !t.found.add(r.query, line, l.Text, &t.matches) {
			return errMore
		}
		return nil
	}
	for _, f = range t.files {
		if f.content == nil {
			continue
		}
		known = 0
		f.work, f.err = s.Scan(f.content, f.size)
		owe(f.work)
		if f.err == errMore || f.err == errStopped || f.err == ErrSpent {
			return
		}
	}
}
