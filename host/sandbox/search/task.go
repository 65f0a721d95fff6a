package search

import (
	"fmt"
	"math"
	"runtime/debug"
	"sync"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/sdk/go/lines"
)

// task is a group of consecutive files.
type task struct {
	files []*file
	units uint64        // estimated cost in units of fuel
	done  chan struct{} // closed when the task has been searched

	// The goroutine that searches the task owns these fields until done is closed.
	found   Found // result for the files of the task
	matches int   // number of matches in found
	panic   any   // value of a panic; nil: none
}

// file is a file of a task. The goroutine that searches the task owns work and err until done
// is closed.
type file struct {
	index   int
	content wasi.Content // nil: it could not be opened
	size    int64
	paid    uint64 // units of fuel that were paid in advance

	work lines.Work // work done so far, which determines the cost
	err  error      // reason why the file was not searched to its end
}

// open opens the files of the next task, from index first on, and pays for the part that is
// certainly read. The task is nil if no file can be opened because too many are open. others
// reports whether other tasks have open files.
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

// paidAhead is the number of bytes of a file that are paid for when it is opened.
const paidAhead = 1 << 20

// reading returns the cost of reading bytes and looking for the literal texts once.
func (r *run) reading(bytes uint64) uint64 {
	return bytes >> shiftRead * uint64(1+r.pattern.Needs())
}

// estimate returns a rough cost of searching a number of bytes. If the pattern has literal
// texts to look for, only a small part of the lines is matched.
func (r *run) estimate(bytes uint64) uint64 {
	bytes = min(bytes, math.MaxInt64/(costMatch+costStep*max(r.pattern.Steps(), 1))/2/perTask)
	matched := bytes
	if r.pattern.Needs() > 0 {
		matched /= 16
	}
	return bytes + matched*(costMatch+costStep*r.pattern.Steps())
}

// cost returns the cost of the work w on a file, without the part that was paid in advance.
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

// scanners pools scanners, because their buffer is as large as many files.
var scanners = sync.Pool{New: func() any { return &lines.Scanner{} }}

// carryOut searches the files of a task. hasPlace is set if the goroutine has a place;
// otherwise it is the goroutine of the guest.
func (r *run) carryOut(t *task, hasPlace bool) {
	s := scanners.Get().(*lines.Scanner)
	defer close(t.done)
	defer func() {
		// In a worker the panic would end the process.
		if p := recover(); p != nil {
			t.panic = fmt.Sprintf("%v\n%s", p, debug.Stack())
			return
		}
		s.Pattern, s.Check, s.Emit = nil, nil, nil
		scanners.Put(s)
	}()
	s.Pattern, s.Context, s.Chars = r.pattern, r.query.Context, r.query.MaxChars
	var f *file
	var counted uint64 // to be owed for f
	owe := func(w lines.Work) int64 {
		units := r.cost(f, w)
		counted, units = units, units-counted
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
		case !hasPlace:
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
		counted = 0
		f.work, f.err = s.Scan(f.content, f.size)
		owe(f.work)
		if f.err == errMore || f.err == errStopped || f.err == ErrSpent {
			return
		}
	}
}
