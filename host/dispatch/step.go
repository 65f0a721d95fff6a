package dispatch

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/stockade-dev/stockade/host/tool"
)

// CallAll carries out the calls of one reply, and returns their results in the
// order of the calls. Calls that only read run at the same time. One that may
// change files, start a process or keep something runs by itself: it sees what the calls before
// it have done, and those after it see what it has done. Questions are put in
// the order of the calls. Each result says what limit says, so that the model
// knows where the loop ends; empty: nothing.
//
// Every call has a result. After an error, which is as in [Dispatcher.Call], those
// that have not begun are cancelled.
func (d *Dispatcher) CallAll(ctx context.Context, calls []tool.Call, limit string) ([]tool.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results, errs := make([]tool.Result, len(calls)), make([]error, len(calls))
	started := make([]*pending, 0, len(calls))
	next := 0 // the first whose result has not been taken
	takeAll := func() {
		for ; next < len(started); next++ {
			if results[next], errs[next] = started[next].wait(); errs[next] != nil {
				cancel(errs[next])
			}
		}
	}
	for _, call := range calls {
		alone := d.runsAlone(call.Tool)
		if alone {
			takeAll()
		}
		p := d.start(ctx, call, limit)
		started = append(started, p)
		if alone {
			takeAll()
		}
		<-p.nextMayStart
	}
	takeAll()
	return results, errors.Join(errs...)
}

// Repair returns the name and the arguments that a model means: see [tool.BareName] and [tool.Schema.Repair].
func (d *Dispatcher) Repair(ctx context.Context, name, args string) (string, string) {
	entry, ok := d.catalog.Load().Find(name)
	if bare := tool.BareName(name); bare == tool.ListTools {
		return bare, args
	} else if !ok {
		if entry, ok = d.catalog.Load().Find(bare); !ok {
			return name, args
		}
		name = entry.Name
	}
	return name, string(entry.Schema.Repair(ctx, json.RawMessage(args)))
}

// Preload says that a call of the tool will probably come: a model is writing one.
func (d *Dispatcher) Preload(name string) {
	runner, can := d.opts.Runner.(Preloader)
	if entry, ok := d.catalog.Load().Find(name); can && ok {
		runner.Preload(entry.Module)
	}
}

// runsAlone reports whether no other call of a step may run beside a call of the
// tool: what the one changes the other may look at.
func (d *Dispatcher) runsAlone(name string) bool {
	entry, ok := d.catalog.Load().Find(name)
	return ok && (entry.Capabilities.Files == tool.FilesWrite || entry.Capabilities.Exec != "" || entry.Capabilities.Store)
}
