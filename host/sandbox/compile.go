package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// LargeModuleBytes is the size from which on a module is compiled only if a
// person has asked for it, see Options.Large.
const LargeModuleBytes = 16 << 20

// features are what a module may use of the language.
const features = api.CoreFeaturesV2

// compiled is a module ready to be instantiated. Each has a runtime of its
// own, so that closing it frees everything.
type compiled struct {
	minBytes uint64 // of linear memory
	unkept   error  // why it is not in the cache, if it should be
	runtime  wazero.Runtime
	module   wazero.CompiledModule
	engine   wazero.CompilationCache // nil with the interpreter

	snap  *snapshot // what calls begin with; nil: each initialises its own instance
	plain string    // why snap is nil
	pool  pool
}

func (c *compiled) close() error {
	ctx := context.Background()
	c.pool.close()
	if c.snap != nil {
		c.snap.image.Close()
	}
	err := c.runtime.Close(ctx)
	if c.engine != nil {
		err = errors.Join(err, c.engine.Close(ctx))
	}
	return err
}

// compile loads a module from the cache; what is not there is admitted,
// compiled by a child and put there. A cache that cannot be trusted is an
// error; one that cannot be written to is done without.
func (s *Sandbox) compile(ctx context.Context, mod *tool.Module) (*compiled, error) {
	if s.opts.Interpreter {
		return s.interpret(ctx, mod)
	}
	cache, err := openCache(s.opts.CacheDir, cacheKey(mod.Digest, s.opts.Build))
	if errors.Is(err, errUntrusted) {
		return nil, err
	}
	unkept := err
	if err != nil {
		s.notKept(mod, err)
	}
	defer cache.close()
	if c, err := s.loadKept(cache, mod); c != nil || err != nil {
		return c, err
	}
	if err := s.mayCompile(mod); err != nil {
		return nil, err
	}
	a, err := s.admit(ctx, mod)
	if err != nil {
		return nil, err
	}
	return s.timed(mod, func() (*compiled, error) {
		if cache != nil {
			c, err := s.build(ctx, mod, a.code, cache)
			if !ioFailed(err) && !errors.Is(err, errChild) {
				return c, err
			}
			s.notKept(mod, err)
			unkept = err
		}
		c, err := s.build(ctx, mod, a.code, nil)
		if err == nil {
			c.unkept = unkept
		}
		return c, err
	})
}

// admit is [admit], for one module at a time: it takes some ten times the
// module's size in memory.
func (s *Sandbox) admit(ctx context.Context, mod *tool.Module) (*admitted, error) {
	select {
	case s.admitting <- struct{}{}:
		defer func() { <-s.admitting }()
		return admit(mod)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *Sandbox) notKept(mod *tool.Module, err error) {
	s.opts.Logger.Warn("compiled code is not kept", "module", mod.Name, "dir", s.opts.CacheDir, "err", err)
}

// timed tells whoever wants to know that something is compiled, and how long
// that took.
func (s *Sandbox) timed(mod *tool.Module, compile func() (*compiled, error)) (*compiled, error) {
	if s.opts.Compiling != nil {
		s.opts.Compiling(mod)
	}
	start := time.Now()
	c, err := compile()
	if s.opts.Compiled != nil {
		s.opts.Compiled(mod, time.Since(start), err)
	}
	return c, err
}

// loadKept loads a module that is in the cache. One that is not there, or is
// damaged and so thrown away, is nil.
func (s *Sandbox) loadKept(cache *cache, mod *tool.Module) (*compiled, error) {
	if cache == nil {
		return nil, nil
	}
	kept, err := cache.get()
	switch {
	case errors.Is(err, errMissing):
		return nil, nil
	case errors.Is(err, errUntrusted):
		return nil, err
	case err == nil:
		var c *compiled
		if c, err = link(cache.path(cache.key), kept.code); err == nil {
			var state *savedState
			if state, err = kept.parse(); err == nil {
				c.snap = state.snapshot(kept.image)
				c.plain = state.Plain
				return c, nil
			}
			_ = c.close()
		}
		kept.close()
	}
	s.opts.Logger.Warn("compiled code was damaged and is made again", "module", mod.Name, "err", err)
	if err := cache.remove(cache.key); err != nil {
		s.notKept(mod, err)
	}
	return nil, nil
}

// mayCompile refuses what takes a person's word, or a protection that this
// sandbox does not have.
func (s *Sandbox) mayCompile(mod *tool.Module) error {
	if mod.Bytes > MaxModuleBytes {
		return nil // which is refused for everybody
	}
	if mod.Bytes > LargeModuleBytes && !s.opts.Large {
		return &RefusedError{mod.Name, fmt.Sprintf(
			"it has %d bytes; above %d MiB a module is compiled only if a person asks for it: stockade tool compile --large", mod.Bytes, LargeModuleBytes>>20)}
	}
	if s.opts.Spawner == nil && mod.Origin != tool.OriginBuiltin {
		return &RefusedError{mod.Name, "it is not compiled: this program has no process of its own for that, which could be stopped; " +
			"only built-in modules are compiled without"}
	}
	return nil
}

// build compiles a module in a new directory and loads it from there. The
// directory goes to the cache, or away if there is none.
func (s *Sandbox) build(ctx context.Context, mod *tool.Module, code []byte, cache *cache) (*compiled, error) {
	dir, err := os.MkdirTemp(cache.place(), stagingPrefix+"*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // of no effect once it is in the cache
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, moduleFile), code, 0o600); err != nil {
		return nil, err
	}
	if err := s.fill(ctx, mod, dir, code); err != nil {
		return nil, err
	}
	// What the child has left is not believed: it has read what a stranger wrote.
	found, err := inspect(dir, false)
	switch {
	case err != nil:
		return nil, err
	case len(found.names) != 2 || !bytes.Equal(found.code, code):
		return nil, fmt.Errorf("compile %s: the process that compiles left %q instead of native code", mod.Name, found.names)
	}
	c, err := link(dir, code)
	if err != nil {
		return nil, fmt.Errorf("compile %s: what the process that compiles left cannot be loaded: %w", mod.Name, err)
	}
	var why error
	if c.snap, why = s.newSnapshot(c, code); why != nil {
		c.plain = printable([]byte(why.Error()))
	}
	switch {
	case cache == nil:
		return c, nil
	case why == nil:
		dir, found, err = s.shrink(ctx, mod, dir, code, found, c.snap)
	case errors.Is(why, errNotReusable):
		if err = writeState(dir, &savedState{Plain: c.plain}); err == nil {
			found, err = inspect(dir, false)
		}
	default:
		err = fmt.Errorf("initialise %s: %w", mod.Name, why) // perhaps it works the next time
	}
	if err == nil {
		err = cache.put(dir, found)
	}
	if err != nil {
		s.notKept(mod, err)
		c.unkept = err
	}
	return c, nil
}

// shrink makes of the directory of a compiled module, which has a snapshot, one
// that is loaded ten times faster: with the module's skeleton in its place,
// under whose name the engine finds the native code, and the snapshot.
func (s *Sandbox) shrink(ctx context.Context, mod *tool.Module, dir string, code []byte, found *contents, snap *snapshot) (string, *contents, error) {
	m, err := wasm.Decode(code)
	if err != nil {
		return "", nil, err
	}
	skeleton := wasm.Skeleton(m)
	small := filepath.Join(dir, "skeleton")
	if err := os.Mkdir(small, 0o700); err != nil {
		return "", nil, err
	}
	if err := os.WriteFile(filepath.Join(small, moduleFile), skeleton, 0o600); err != nil {
		return "", nil, err
	}
	// Compiling it tells the name that the engine has for it.
	if err := s.fill(ctx, mod, small, skeleton); err != nil {
		return "", nil, err
	}
	named, err := inspect(small, false)
	switch {
	case err != nil:
		return "", nil, err
	case len(named.names) != 2 || !bytes.Equal(named.code, skeleton):
		return "", nil, fmt.Errorf("compile %s: the process that compiles left %q instead of native code", mod.Name, named.names)
	}
	if err := os.Rename(filepath.Join(dir, found.native()), filepath.Join(small, named.native())); err != nil {
		return "", nil, err
	}
	if err := snap.save(small); err != nil {
		return "", nil, err
	}
	found, err = inspect(small, false)
	return small, found, err
}

// fill has a module compiled into the directory in which it lies.
func (s *Sandbox) fill(ctx context.Context, mod *tool.Module, dir string, code []byte) error {
	workers := 2 // more would also need more memory
	if mod.Origin == tool.OriginBuiltin {
		workers = runtime.GOMAXPROCS(0)
	}
	if s.opts.Spawner != nil {
		return s.spawn(ctx, mod, dir, s.job(int(mod.Bytes), workers))
	}
	err := compileInto(ctx, dir, code, features, 1) // a panic in a goroutine of the engine's could not be contained
	if err != nil && !ioFailed(err) {
		return &RefusedError{mod.Name, "it does not compile: " + printable([]byte(err.Error()))}
	}
	return err
}

// engineConfig is the same wherever code is compiled or loaded. It names the
// compiler: where that does not work the default would be the interpreter,
// which reads a module in this process.
func engineConfig(features api.CoreFeatures) wazero.RuntimeConfig {
	return wazero.NewRuntimeConfigCompiler().WithCoreFeatures(features)
}

// link loads the native code of a module from a directory. It compiles
// nothing: with several workers the engine looks whether its context has ended
// before each function, and this one has from the start.
func link(dir string, code []byte) (*compiled, error) {
	ctx := context.Background()
	engine, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, err
	}
	rt, err := newRuntime(ctx, engineConfig(features).WithCompilationCache(engine))
	if err != nil {
		return nil, errors.Join(err, engine.Close(ctx))
	}
	ended, end := context.WithCancel(ctx)
	end()
	module, err := compileModule(experimental.WithCompilationWorkers(ended, 2), rt, code)
	if errors.Is(err, context.Canceled) {
		err = errors.New("there is no native code for it")
	}
	if err != nil {
		return nil, errors.Join(err, rt.Close(ctx), engine.Close(ctx))
	}
	return &compiled{minBytes: minMemory(module), runtime: rt, module: module, engine: engine}, nil
}

// interpret makes a module ready for the interpreter. That is not done for
// modules of strangers.
func (s *Sandbox) interpret(ctx context.Context, mod *tool.Module) (*compiled, error) {
	a, err := s.admit(ctx, mod)
	if err != nil {
		return nil, err
	}
	return s.timed(mod, func() (*compiled, error) {
		rt, err := newRuntime(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features))
		if err != nil {
			return nil, err
		}
		module, err := compileModule(ctx, rt, a.code)
		if err != nil {
			_ = rt.Close(ctx)
			return nil, &RefusedError{mod.Name, "it does not compile: " + printable([]byte(err.Error()))}
		}
		return &compiled{minBytes: minMemory(module), runtime: rt, module: module, plain: "the interpreter runs it"}, nil
	})
}

// newRuntime makes an engine with all that a guest can import.
func newRuntime(ctx context.Context, config wazero.RuntimeConfig) (wazero.Runtime, error) {
	rt := wazero.NewRuntimeWithConfig(ctx, config)
	err := preview1.Instantiate(ctx, rt)
	if err == nil {
		err = hostmod.Instantiate(ctx, rt)
	}
	if err == nil {
		err = meter.Instantiate(ctx, rt)
	}
	if err != nil {
		return nil, errors.Join(err, rt.Close(ctx))
	}
	return rt, nil
}

// minMemory is how much linear memory a module starts with.
func minMemory(m wazero.CompiledModule) uint64 {
	memory, ok := m.ExportedMemories()[abi.ExportMemory]
	if !ok {
		return 0
	}
	return uint64(memory.Min()) * wasmPage
}

func compileModule(ctx context.Context, rt wazero.Runtime, code []byte) (_ wazero.CompiledModule, err error) {
	defer contain(&err)
	return rt.CompileModule(ctx, code)
}

// contain makes an error of a panic. The engine is large and works on what
// strangers wrote; it must not take the host with it.
func contain(err *error) {
	if r := recover(); r != nil {
		cause, ok := r.(error)
		if !ok {
			cause = fmt.Errorf("%v", r)
		}
		*err = fmt.Errorf("the engine panicked: %w", cause)
	}
}
