package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/tool"
)

// compiled is a module ready to be instantiated. Each has a runtime of its
// own, so that closing it frees everything.
type compiled struct {
	minBytes uint64 // of linear memory
	runtime  wazero.Runtime
	module   wazero.CompiledModule
	cache    *cache // nil without a cache directory
}

func (c *compiled) close() error {
	return errors.Join(c.runtime.Close(context.Background()), c.cache.close())
}

// compile admits a module and turns it into native code, or loads that from
// the cache. A cache that cannot be trusted is an error; one that cannot be
// written to is done without.
func (s *Sandbox) compile(ctx context.Context, mod *tool.Module) (*compiled, error) {
	a, err := admit(mod)
	if err != nil {
		return nil, err
	}
	if s.opts.CacheDir == "" || s.opts.Interpreter {
		return s.build(ctx, mod, a, nil)
	}
	cache, err := openCache(s.opts.CacheDir, mod.Digest)
	if errors.Is(err, errUntrusted) {
		return nil, err
	}
	if err == nil {
		var c *compiled
		if c, err = s.build(ctx, mod, a, cache); err == nil {
			if err := cache.seal(); err != nil {
				s.opts.Logger.Warn("compiled code is not kept", "module", mod.Name, "dir", cache.dir, "err", err)
			}
			return c, nil
		}
		err = errors.Join(err, cache.close())
		if !cache.hit && !ioFailed(err) {
			return nil, err
		}
		_ = os.RemoveAll(cache.dir) // else it would fail again the next time
	}
	s.opts.Logger.Warn("compiled code is not kept", "module", mod.Name, "dir", s.opts.CacheDir, "err", err)
	return s.build(ctx, mod, a, nil)
}

func (s *Sandbox) build(ctx context.Context, mod *tool.Module, a *admitted, cache *cache) (_ *compiled, err error) {
	if cache == nil || !cache.hit {
		if s.opts.Compiling != nil {
			s.opts.Compiling(mod)
		}
		start := time.Now()
		defer func() {
			if s.opts.Compiled != nil {
				s.opts.Compiled(mod, time.Since(start), err)
			}
		}()
	}
	config := wazero.NewRuntimeConfig()
	if s.opts.Interpreter {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	config = config.WithCoreFeatures(api.CoreFeaturesV2)
	if cache != nil {
		config = config.WithCompilationCache(cache.engine)
	}
	rt := wazero.NewRuntimeWithConfig(ctx, config)
	defer func() {
		if err != nil {
			err = errors.Join(err, rt.Close(ctx))
		}
	}()
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, rt); err != nil {
		return nil, err
	}
	if err := hostmod.Instantiate(ctx, rt); err != nil {
		return nil, err
	}
	if err := meter.Instantiate(ctx, rt); err != nil {
		return nil, err
	}
	workers := 1
	if mod.Origin == tool.OriginBuiltin {
		// Faster, but a panic of the compiler in a goroutine of its own ends
		// the process; so only for what is as trusted as this program.
		workers = runtime.GOMAXPROCS(0)
	}
	module, err := compileModule(experimental.WithCompilationWorkers(ctx, workers), rt, a.code)
	switch {
	case ioFailed(err):
		return nil, err
	case err != nil:
		return nil, &RefusedError{mod.Name, "it does not compile: " + firstLine(err.Error())}
	}
	return &compiled{minBytes: a.minBytes, runtime: rt, module: module, cache: cache}, nil
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
