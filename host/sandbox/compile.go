package sandbox

import (
	"context"
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
	"github.com/stockade-dev/stockade/host/tool"
)

// compiled is a module ready to be instantiated. Each has a runtime of its
// own, so that closing it frees everything.
type compiled struct {
	mod     *tool.Module
	facts   *admitted
	runtime wazero.Runtime
	module  wazero.CompiledModule
	cache   wazero.CompilationCache // nil without a cache directory
}

func (c *compiled) close() error {
	err := c.runtime.Close(context.Background())
	if c.cache != nil {
		err = errors.Join(err, c.cache.Close(context.Background()))
	}
	return err
}

// compile admits a module and turns it into native code, or loads that from
// the cache. Damaged code in the cache is thrown away and made again.
func (s *Sandbox) compile(ctx context.Context, mod *tool.Module) (*compiled, error) {
	a, err := admit(mod)
	if err != nil {
		return nil, err
	}
	if s.opts.CacheDir == "" || s.opts.Interpreter {
		return s.build(ctx, mod, a, nil, false)
	}
	for attempt := 0; ; attempt++ {
		cache, dir, err := openCache(s.opts.CacheDir, mod.Digest)
		if err != nil {
			return nil, err
		}
		hit := cached(dir)
		c, err := s.build(ctx, mod, a, cache, hit)
		if err == nil {
			return c, nil
		}
		err = errors.Join(err, cache.Close(ctx))
		if !hit || attempt > 0 {
			return nil, err
		}
		s.opts.Logger.Warn("compiled code is damaged, compiling again", "module", mod.Name, "dir", dir, "err", err)
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
	}
}

func (s *Sandbox) build(ctx context.Context, mod *tool.Module, a *admitted, cache wazero.CompilationCache, hit bool) (_ *compiled, err error) {
	if !hit {
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
	config = config.WithCoreFeatures(api.CoreFeaturesV2).
		// Slow (several times in guest loops), and blind to recursion without
		// loops, but the only deadline that the engine has; fuel replaces it.
		WithCloseOnContextDone(true)
	if cache != nil {
		config = config.WithCompilationCache(cache)
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
	module, err := rt.CompileModule(experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0)), a.code)
	if err != nil {
		return nil, &RefusedError{mod.Name, "it does not compile: " + firstLine(err.Error())}
	}
	return &compiled{mod: mod, facts: a, runtime: rt, module: module, cache: cache}, nil
}
