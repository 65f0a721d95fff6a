package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// slot is an instance that serves one call after another. After each call it is reset to the
// snapshot, or closed.
type slot struct {
	snap   *snapshot
	mod    api.Module
	memory *memory
	state  []api.MutableGlobal

	since   time.Time // start of its wait for a call
	trimmed bool      // the pages of the slot were freed during this wait
}

// newSlot returns a slot for calls of the module c: an instance in the state of the snapshot
// snap, which must not be nil, with at most limit bytes of memory.
func (s *Sandbox) newSlot(ctx context.Context, c *compiledModule, snap *snapshot, limit uint64) (_ *slot, err error) {
	memory, err := newMemory(limit, snap.image, s.memoryBudget)
	if err != nil {
		return nil, &hostError{err}
	}
	sl := &slot{snap: snap, memory: memory}
	defer func() {
		if err != nil {
			sl.close()
		}
	}()
	if err := memory.begin(memory.start); err != nil {
		return nil, err
	}
	if sl.mod, err = instantiateModule(ctx, c, memory); err != nil {
		return nil, &hostError{err}
	}
	if sl.state = stateOf(sl.mod); len(sl.state) != len(snap.state) {
		return nil, &hostError{fmt.Errorf("an instance has %d globals, and its snapshot %d", len(sl.state), len(snap.state))}
	}
	// The engine has copied the data segments over the image.
	if err := sl.putBack(); err != nil {
		return nil, &hostError{err}
	}
	return sl, nil
}

// putBack resets memory and globals to the snapshot, for the next call.
func (sl *slot) putBack() error {
	if _, err := sl.memory.mapped.Reset(); err != nil {
		return err
	}
	for i, g := range sl.state {
		if v := sl.snap.state[i]; g.Get() != v {
			g.Set(v)
		}
	}
	return nil
}

func (sl *slot) verify() error {
	if err := sl.memory.mapped.Verify(); err != nil {
		return err
	}
	if !slices.EqualFunc(sl.state, sl.snap.state, func(g api.MutableGlobal, v uint64) bool { return g.Get() == v }) {
		return errors.New("a global differs from the snapshot")
	}
	if size := sl.mod.Memory().Size(); uint64(size) != sl.memory.start {
		return fmt.Errorf("the memory has %d bytes, and the image %d", size, sl.memory.start)
	}
	return nil
}

func (sl *slot) close() {
	if sl.mod != nil {
		_ = sl.mod.Close(context.Background())
	}
	sl.memory.Free()
}

// pool holds the slots of one module that wait for a call. The slot that was used last is
// reused first, because the processor's caches hold its pages.
type pool struct {
	mu     sync.Mutex // guards the fields below
	idle   []*slot    // waiting slots, the most recently used slot at the end
	closed bool
}

// maxIdle limits the waiting slots of one module. Only half as many guests run at once.
var maxIdle = 2 * runtime.GOMAXPROCS(0)

// get removes and returns a slot with this limit of memory, in bytes; nil: no such slot waits.
func (p *pool) get(limit uint64) *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.idle) - 1; i >= 0; i-- {
		if sl := p.idle[i]; uint64(len(sl.memory.mapped.Bytes())) == limit {
			p.idle = append(p.idle[:i], p.idle[i+1:]...)
			return sl
		}
	}
	return nil
}

// put adds a slot that was reset. If the pool is full, the slot that has waited longest is
// closed; if the pool is closed, sl is.
func (p *pool) put(sl *slot) {
	sl.since, sl.trimmed = time.Now(), false
	p.mu.Lock()
	var out *slot
	switch {
	case p.closed:
		out = sl
	case len(p.idle) == maxIdle:
		out, p.idle = p.idle[0], append(p.idle[1:], sl)
	default:
		p.idle = append(p.idle, sl)
	}
	p.mu.Unlock()
	if out != nil {
		out.close()
	}
}

// Times of waiting slots, which take half a megabyte to a few megabytes. After trimAfter the
// pages are freed, and the next call takes them from the image again; after closeAfter the
// slot is closed.
const (
	trimAfter  = 30 * time.Second
	closeAfter = 5 * time.Minute
)

// trim frees pages of slots that have waited for trimAfter, and closes those that have waited
// for closeAfter. It reports whether any slots still wait. See RATIONALE, "Why are idle
// instances trimmed, and not counted?"
func (p *pool) trim(now time.Time) (more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	keep := p.idle[:0]
	for _, sl := range p.idle {
		waited := now.Sub(sl.since)
		if waited >= trimAfter && !sl.trimmed {
			sl.trimmed = true
			if sl.memory.mapped.Trim() != nil {
				waited = closeAfter // its content is unknown now
			}
		}
		if waited >= closeAfter {
			sl.close()
		} else {
			keep = append(keep, sl)
		}
	}
	clear(p.idle[len(keep):])
	p.idle = keep
	return len(p.idle) > 0
}

func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, sl := range idle {
		sl.close()
	}
}

// begin makes a slot the guest of a call, and gives its random generator, if the snapshot has
// found it, a new seed.
func (i *instance) begin(sl *slot) error {
	i.slot, i.mod, i.memory = sl, sl.mod, sl.memory
	if err := sl.memory.begin(sl.memory.start); err != nil {
		return err
	}
	if at := sl.snap.generatorOffset; at != 0 {
		_, _ = rand.Read(sl.memory.mapped.Bytes()[at+generatorSeed : at+generatorNext]) // rand.Read never fails
	}
	return nil
}

// end ends a call. If the guest has a slot and returned normally, the slot is reset and goes
// back to the pool, unless its memory cannot shrink; otherwise the instance is closed. verify
// asks for a comparison with the snapshot. The error means that the slot could not be reset,
// or differs from the snapshot.
func (i *instance) end(p *pool, verify bool) error {
	sl := i.slot
	if sl == nil || !i.returned || sl.mod.IsClosed() {
		i.close()
		return nil
	}
	var err error
	if sl.memory.grown {
		var shrunk bool
		if shrunk, err = sl.memory.shrink(sl.mod.Memory()); !shrunk {
			i.close()
			return nil
		}
	}
	i.account.Close()
	_ = i.world.Close()
	if err == nil {
		err = sl.putBack()
	}
	if err == nil && verify {
		err = sl.verify()
	}
	if err != nil {
		sl.close()
		return fmt.Errorf("an instance differs from a new one after its reset: %w", err)
	}
	sl.memory.returnQuota()
	p.put(sl)
	return nil
}
