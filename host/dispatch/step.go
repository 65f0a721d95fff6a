package dispatch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// CallAll carries out the calls of one reply, and returns their results in the order of the
// calls. Calls that read or use the network run at the same time. A call that may change
// files, start a process or use its store runs by itself: it sees the effects of the calls
// before it, and the calls after it see its effects. Questions are put in the order of the
// calls; edits of files that follow each other are asked about together, see tryTogether. limit
// becomes the LimitMessage of each result, see [tool.Result]; empty: none.
//
// Every call has a result. An error is as in [Dispatcher.Call]; it cancels the other calls.
func (d *Dispatcher) CallAll(ctx context.Context, calls []tool.Call, limit string) ([]tool.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results, errs := make([]tool.Result, len(calls)), make([]error, len(calls))
	started := make([]*pending, 0, len(calls))
	next := 0 // index of the first call whose result has not been taken
	trials, untried := make([]*trial, len(calls)), 0
	var noToRest *policy.Answer // no to a call whose result was taken
	takeAll := func() {
		for ; next < len(started); next++ {
			if results[next], errs[next] = started[next].wait(); errs[next] != nil {
				cancel(errs[next])
			}
			noToRest = cmp.Or(started[next].noToRest, noToRest)
		}
	}
	for i, call := range calls {
		p, alone := d.newPending(call), d.runsAlone(call.Tool)
		if alone {
			takeAll()
			p.callsAfter = len(calls) - i - 1
		}
		if p.noToRest = noToRest; alone && i >= untried && noToRest == nil && ctx.Err() == nil {
			untried = i + max(copy(trials[i:], d.tryTogether(ctx, calls[i:])), 1)
		}
		p.limit, p.trial = limit, trials[i]
		go p.drive(ctx)
		started = append(started, p)
		if alone {
			takeAll()
		}
		<-p.nextMayStart
	}
	takeAll()
	return results, errors.Join(errs...)
}

// Repair corrects the name and the arguments of a model's call: see [tool.BareName] and
// [tool.Schema.Repair].
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

// Preload begins to make the module of a tool ready, because the model has begun to write a call
// of it. It does nothing if the Runner is no [Preloader].
func (d *Dispatcher) Preload(name string) {
	runner, can := d.opts.Runner.(Preloader)
	if entry, ok := d.catalog.Load().Find(name); can && ok {
		runner.Preload(entry.Module)
	}
}

// runsAlone reports whether a call of the tool must not run beside other calls of its step,
// because it may change something that they read.
func (d *Dispatcher) runsAlone(name string) bool {
	entry, ok := d.catalog.Load().Find(name)
	return ok && (entry.Capabilities.Files == tool.FilesWrite || entry.Capabilities.Exec != "" || entry.Capabilities.Store)
}
