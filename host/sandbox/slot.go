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

// slot is an instance that is used for one call after another. After each it
// is put back to the snapshot, or closed.
type slot struct {
	snap   *snapshot
	mod    api.Module
	memory *memory
	state  []api.MutableGlobal

	since   time.Time // when it began to wait for a call
	trimmed bool      // since then
}

// newSlot makes a slot for guests with so much memory at most.
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
	// Instantiating has copied the data segments over the image.
	if err := sl.putBack(); err != nil {
		return nil, &hostError{err}
	}
	return sl, nil
}

// putBack makes what the next call begins with.
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

// verify compares the slot with the snapshot.
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

// pool keeps the slots of one module that wait for a call. The one that was
// used last comes first: its pages are in the caches.
type pool struct {
	mu     sync.Mutex
	idle   []*slot
	closed bool
}

// mostIdle is how many slots of one module wait. More cannot run at once.
var mostIdle = 2 * runtime.GOMAXPROCS(0)

// get returns a slot with this limit of memory, or nil.
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

// put takes a slot in that has been put back.
func (p *pool) put(sl *slot) {
	sl.since, sl.trimmed = time.Now(), false
	p.mu.Lock()
	var out *slot
	switch {
	case p.closed:
		out = sl
	case len(p.idle) == mostIdle:
		out, p.idle = p.idle[0], append(p.idle[1:], sl)
	default:
		p.idle = append(p.idle, sl)
	}
	p.mu.Unlock()
	if out != nil {
		out.close()
	}
}

// What a slot costs while it waits, half a megabyte to a few, is given back
// when it has waited long: first its pages, which a next call takes from the
// image again, then all of it.
const (
	trimAfter  = 30 * time.Second
	closeAfter = 5 * time.Minute
)

// trim gives back what has waited long, and reports whether something waits
// that will have to be looked at again. See RATIONALE, "Why are idle instances
// trimmed, and not counted?"
func (p *pool) trim(now time.Time) (more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	keep := p.idle[:0]
	for _, sl := range p.idle {
		waited := now.Sub(sl.since)
		if waited >= trimAfter && !sl.trimmed {
			sl.trimmed = true
			if sl.memory.mapped.Trim() != nil {
				waited = closeAfter // nobody knows what is in it
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

// begin makes a slot the guest of a call, whose generator of random numbers it
// gives a new seed.
func (i *instance) begin(sl *slot) error {
	i.slot, i.mod, i.memory = sl, sl.mod, sl.memory
	if err := sl.memory.begin(sl.memory.start); err != nil {
		return err
	}
	if at := sl.snap.generatorOffset; at != 0 {
		_, _ = rand.Read(sl.memory.mapped.Bytes()[at+generatorSeed : at+generatorNext]) // which never fails
	}
	return nil
}

// end ends a call. Its guest is put back if it has ended as it should; what it has
// done to itself otherwise is nobody's to repair.
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
		return fmt.Errorf("an instance that was put back is not like a new one: %w", err)
	}
	sl.memory.returnQuota()
	p.put(sl)
	return nil
}
