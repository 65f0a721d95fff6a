package sandbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/stockade-dev/stockade/host/sandbox/codecache"
	"github.com/stockade-dev/stockade/host/tool"
)

// moduleEntry is a module that is compiled, or being compiled.
type moduleEntry struct {
	stop    context.CancelCauseFunc
	waiting int           // callers; guarded by Sandbox.mu
	done    chan struct{} // closed when the next two are set
	c       *compiledModule
	err     error
}

var errUnwanted = errors.New("nobody waits for the module any more")

// Compile makes a module ready to run, as its first call would, and fails if
// the next process will not find it ready. A module that may not run is a
// [admit.RefusedError].
func (s *Sandbox) Compile(ctx context.Context, mod *tool.Module) error {
	c, err := s.load(ctx, mod)
	if err == nil && c.cacheErr != nil {
		err = fmt.Errorf("module %s compiles, but what became of it cannot be kept: %w", mod.Name, c.cacheErr)
	}
	return err
}

// Ready reports whether a module need not be compiled, as far as can be seen
// without reading what became of it.
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

// Preload begins to load a built-in module with native code of the program's own that will
// probably be called soon, so that its call need not wait for that. Nothing of it runs. What
// others wrote is not touched before a call of it is granted.
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

// load returns the compiled module. It compiles the module once, however many callers want it
// at the same time, and as long as one of them waits. Everything that compiles or runs a
// module gets it here, if the options permit the module.
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

// beginLoad begins to compile a module that is not there. s.mu is held.
func (s *Sandbox) beginLoad(ctx context.Context, mod *tool.Module) *moduleEntry {
	// The first caller's patience must not decide for the others.
	ctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	e := &moduleEntry{stop: stop, done: make(chan struct{})}
	s.modules[mod.Digest] = e
	s.compiling.Go(func() { s.finishLoad(ctx, e, mod) })
	return e
}

// finishLoad compiles the module of an entry. What failed is tried again by the
// next call, except for a refusal that costs seconds each time.
func (s *Sandbox) finishLoad(ctx context.Context, e *moduleEntry, mod *tool.Module) {
	defer e.stop(nil)
	c, err := s.compile(ctx, mod)
	s.mu.Lock()
	defer s.mu.Unlock()
	var dear *costlyRefusal
	switch wanted := s.modules[mod.Digest] == e; {
	case !wanted && c != nil:
		c, err = nil, errors.Join(context.Cause(ctx), c.close())
	case wanted && err != nil && !errors.As(err, &dear):
		delete(s.modules, mod.Digest)
	}
	e.c, e.err = c, err
	close(e.done)
}

// stopWaiting ends a caller's wait. Nobody is left to wait for an entry that is not
// done: it is stopped, and whoever comes next makes another.
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
