package sandbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/stockade-dev/stockade/host/sandbox/codecache"
	"github.com/stockade-dev/stockade/host/tool"
)

// moduleEntry is a module that is loaded or being loaded, or whose costlyRefusal is remembered.
type moduleEntry struct {
	stop    context.CancelCauseFunc // ends the compilation
	waiting int                     // number of waiting callers; guarded by Sandbox.mu
	done    chan struct{}           // closed when c and err are set
	c       *compiledModule         // nil after a failure, and until done is closed
	err     error                   // error of loading the module
}

var errUnwanted = errors.New("nobody waits for the module any more")

// Compile makes a module ready to run, as its first call would. It also fails if the compiled
// code could not be written to Options.CacheDir, so that the next process would have to compile
// again; prebuilt code is written later, without this check. The error is an
// [admit.RefusedError] if the module is refused.
func (s *Sandbox) Compile(ctx context.Context, mod *tool.Module) error {
	c, err := s.load(ctx, mod)
	if err == nil && c.cacheErr != nil {
		err = fmt.Errorf("module %s compiles, but the compiled code cannot be cached: %w", mod.Name, c.cacheErr)
	}
	return err
}

// Ready reports whether the compiled code of a module is in the cache, or part of the program
// and made for this processor. It does not read the code.
func (s *Sandbox) Ready(mod *tool.Module) bool {
	if c, err := codecache.Open(s.opts.CacheDir, cacheKey(mod.Digest, s.opts.Build)); err == nil && c != nil {
		defer c.Close()
		if c.Exists() {
			return true
		}
	}
	p, err := s.prebuilt(mod)
	return p != nil && err == nil
}

// Preload begins to load a built-in module that will probably be called soon, so that its call
// waits less. It does nothing unless native code of the module is part of the program, so
// never for modules of other authors. Loading that code runs nothing of the module. If the code
// cannot be used, for example because it is for another processor, the module is compiled and
// initialised instead.
func (s *Sandbox) Preload(mod *tool.Module) {
	if mod.Origin != tool.OriginBuiltin || s.opts.Prebuilt == nil || s.opts.Prebuilt(mod.Digest) == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.modules != nil && s.modules[mod.Digest] == nil {
		s.beginLoad(context.Background(), mod)
	}
}

// load returns the compiled module. However many callers want a module at a time, it is
// compiled once, and is given up when none of them waits any more. All code that runs a call
// or asks for a manifest gets the module here, after Options.Permit was asked.
func (s *Sandbox) load(ctx context.Context, mod *tool.Module) (*compiledModule, error) {
	if s.opts.Permit != nil {
		if err := s.opts.Permit(mod); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	if s.modules == nil {
		s.mu.Unlock()
		return nil, errClosed
	}
	e, ok := s.modules[mod.Digest]
	if !ok {
		e = s.beginLoad(ctx, mod)
	}
	e.waiting++
	s.mu.Unlock()
	defer s.stopWaiting(e, mod.Digest)
	select {
	case <-e.done:
		return e.c, e.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// beginLoad makes the entry of a module and starts to load the module. The caller holds s.mu.
func (s *Sandbox) beginLoad(ctx context.Context, mod *tool.Module) *moduleEntry {
	// The entry must outlive the first caller's context: others may wait for it too.
	ctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	e := &moduleEntry{stop: stop, done: make(chan struct{})}
	s.modules[mod.Digest] = e
	s.compiling.Go(func() { s.finishLoad(ctx, e, mod) })
	return e
}

// finishLoad compiles the module of an entry and sets its result. After a failure the entry
// is removed, so that the next call tries again; a costlyRefusal stays.
func (s *Sandbox) finishLoad(ctx context.Context, e *moduleEntry, mod *tool.Module) {
	defer e.stop(nil)
	c, err := s.compile(ctx, mod)
	s.mu.Lock()
	defer s.mu.Unlock()
	var costly *costlyRefusal
	switch wanted := s.modules[mod.Digest] == e; {
	case !wanted && c != nil:
		c, err = nil, errors.Join(context.Cause(ctx), c.close())
	case wanted && err != nil && !errors.As(err, &costly):
		delete(s.modules, mod.Digest)
	}
	e.c, e.err = c, err
	close(e.done)
}

// stopWaiting ends the wait of one caller. If nobody waits any more and the entry is not
// done, it is stopped and removed; the next caller makes a new one.
func (s *Sandbox) stopWaiting(e *moduleEntry, digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.waiting--
	select {
	case <-e.done:
		return
	default:
	}
	if e.waiting == 0 && s.modules[digest] == e {
		delete(s.modules, digest)
		e.stop(errUnwanted)
	}
}
