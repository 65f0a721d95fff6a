//go:build bench

package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
	"github.com/stockade-dev/stockade/host/tool"
)

// This file is for measurements: the benchmark of isolation in this package, and
// host/internal/peers, a separate module that cannot use export_test.go. No program is built
// with this tag, because an instance that keeps the state of earlier calls breaks the promise
// of the sandbox.

// Leaky is one instance that serves many calls and is never reset. Benchmarks compare isolated
// calls with it.
type Leaky struct {
	s   *Sandbox
	mod *tool.Module
	sl  *slot
}

func NewLeaky(ctx context.Context, s *Sandbox, mod *tool.Module, limits policy.Limits) (*Leaky, error) {
	c, err := s.load(ctx, mod)
	if err != nil {
		return nil, err
	}
	sl, err := s.newSlot(ctx, c, c.snap, limits.MemoryBytes)
	return &Leaky{s, mod, sl}, err
}

func (l *Leaky) Close() { l.sl.close() }

// Call does the same as Run without the isolation: the guest gets no fresh seed, does not
// wait in a pool, and is not reset. A failed result or a call that may write is an error.
func (l *Leaky) Call(ctx context.Context, grant policy.Grant, call tool.Call) (json.RawMessage, error) {
	if err := grant.Check(call, l.mod.Digest); err != nil {
		return nil, err
	}
	c, err := l.s.load(ctx, l.mod)
	if err != nil {
		return nil, err
	}
	if stage, err := l.s.newStage(grant); stage != nil || err != nil {
		return nil, errors.Join(errors.New("a call that may write is not measured"), err)
	}
	start := time.Now()
	limits := grant.Limits()
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Timeout, errTimeout)
	defer cancel()
	host := &hostmod.World{Grant: grant, Cwd: call.Cwd, Services: l.s.opts.Services, Redact: l.s.opts.Redact}
	inst := l.s.newInstance(ctx, grant, limits)
	defer inst.account.Close()
	if err := inst.openWorld(grant, nil); err != nil {
		return nil, err
	}
	defer inst.world.Close()
	host.Files = inst.files
	inst.mod, inst.memory = l.sl.mod, l.sl.memory
	if err := inst.account.Attach(inst.mod); err != nil {
		return nil, err
	}
	out, toolErr, err := c.dialect.Call(inst.context(hostmod.WithWorld(ctx, host)), l.s.guest(inst, c, host), call)
	endErr := host.End(inst.account.Charge)
	result, err := judge(callOutcome{ctx: ctx, call: call, limits: limits, inst: inst, host: host, redact: l.s.opts.Redact, out: out, toolErr: toolErr, err: err})
	err = errors.Join(endErr, err)
	result.Usage.Start, result.Usage.Duration = start, time.Since(start)
	switch {
	case err != nil:
		return nil, err
	case result.Err != nil:
		return nil, errors.New(result.Summary())
	}
	return result.Output, nil
}

// FillPool makes n calls, each in an instance of its own that stays open until the last call
// has ended. It returns the number of instances that wait for a next call afterwards.
func FillPool(ctx context.Context, s *Sandbox, mod *tool.Module, grant policy.Grant, call tool.Call, n int) (waiting int, err error) {
	c, err := s.load(ctx, mod)
	if err != nil {
		return 0, err
	}
	var open []*instance
	for range n {
		var inst *instance
		if inst, err = s.open(ctx, c, grant, grant.Limits(), nil); inst != nil {
			open = append(open, inst)
		}
		if err != nil {
			break
		}
		host := &hostmod.World{Grant: grant, Cwd: call.Cwd}
		_, _, err = c.dialect.Call(inst.context(hostmod.WithWorld(ctx, host)), s.guest(inst, c, host), call)
		if err = errors.Join(err, host.End(inst.account.Charge)); err != nil {
			break
		}
		inst.returned = true
	}
	for _, inst := range open {
		err = errors.Join(err, inst.end(&c.pool, false))
	}
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	return len(c.pool.idle), err
}

// Snapshot returns the memory at the beginning of a module's calls, and the mutable globals
// that the module defines, in their order.
func Snapshot(ctx context.Context, s *Sandbox, mod *tool.Module) (memory []byte, globals []uint64, err error) {
	c, err := s.load(ctx, mod)
	if err != nil {
		return nil, nil, err
	}
	snap := c.snap
	if snap == nil {
		return nil, nil, errNotReusable
	}
	const counters = 2 // the counters of fuel and depth, see stateOf
	return bytes.Clone(snap.image.Bytes()), snap.state[counters:], nil
}
