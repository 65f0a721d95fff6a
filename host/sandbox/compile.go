package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/cpu"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/sandbox/codecache"
	"github.com/stockade-dev/stockade/host/sandbox/dialect"
	"github.com/stockade-dev/stockade/host/sandbox/dialect/command"
	"github.com/stockade-dev/stockade/host/sandbox/dialect/extism"
	"github.com/stockade-dev/stockade/host/sandbox/dialect/tools"
	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/sandbox/native"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
)

const features = api.CoreFeaturesV2

// dialects holds the dialect of each kind of module that runs.
var dialects = admit.Dialects{
	wasm.Native:  tools.Dialect{},
	wasm.Command: command.Dialect{},

	wasm.Extism:     extism.Dialect{Kind: wasm.Extism},
	wasm.HyperMCPv1: extism.Dialect{Kind: wasm.HyperMCPv1},
	wasm.HyperMCPv2: extism.Dialect{Kind: wasm.HyperMCPv2},
}

// traits holds the facts about a module, besides its code, that its calls need.
type traits struct {
	Kind     wasm.ShapeKind
	About    *tool.Manifest             `json:",omitempty"` // manifest in the custom section; nil: none, or Native
	Unstable bool                       `json:",omitempty"` // the module imports wasi_unstable instead of preview 1
	Missing  []preview1.MissingFunction `json:",omitempty"` // imported functions of WASI that the host does not have
}

// admitWithTraits is admit that also returns the traits of the module. It fails if the manifest
// in the module is wrong; that of a native module is not read.
func (s *Sandbox) admitWithTraits(ctx context.Context, mod *tool.Module) (a *admit.Module, t traits, err error) {
	if a, err = s.admit(ctx, mod); err != nil {
		return nil, t, err
	}
	t = traits{Kind: a.Kind, Unstable: a.Unstable, Missing: a.Missing}
	if section, ok := wasm.CustomSection(a.Decoded, wasm.ManifestSection); ok && a.Kind != wasm.Native {
		var m tool.Manifest
		m, err = sectionManifest(mod, a, section)
		t.About = &m
	}
	return a, t, err
}

// compiledModule is a module that is ready to be instantiated. Each has a runtime and an
// engine of its own, so that close frees everything that belongs to the module. See RATIONALE,
// "Why a runtime for each module?"
type compiledModule struct {
	traits
	dialect  dialect.Dialect
	minBytes uint64 // linear memory at its start, in bytes
	cacheErr error  // reason why the module could not be cached; nil: none is known
	runtime  wazero.Runtime
	module   wazero.CompiledModule
	engine   wazero.CompilationCache // holds the loaded native code; nil with the interpreter

	snap          *snapshot // nil: each call initialises a new instance
	whyNoSnapshot string    // reason why snap is nil, for people
	pool          pool      // instances that wait for the next call

	storing sync.WaitGroup // waits for the goroutine that puts the module into the cache, if there is one
}

func (c *compiledModule) close() error {
	c.storing.Wait()
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

// cacheKey returns the name of a module's entry in the cache. It covers the build, because an
// entry is not admitted again, and the processor with its extensions, because native code
// depends on them.
func cacheKey(digest, build string) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q", append(codeKeyParts(digest), build, fmt.Sprint(cpu.X86, cpu.ARM64)))))
}

// codeKeyParts returns the parts of the cache's key on which the code and the snapshot depend,
// except for the processor and the build.
func codeKeyParts(digest string) []string {
	return []string{
		codecache.Layout, digest,
		fmt.Sprint(fuel.Version, admit.MaxDepth, admit.MaxTableElements),
		native.LinkedVersion(), fmt.Sprint(uint64(features), mapsNative),
		runtime.GOOS, runtime.GOARCH,
	}
}

// mapsNative is set if the engine gets native code from files of our own format, which are
// mapped into memory; otherwise from files of its own.
var mapsNative = native.Supported()

// compile loads a module from the cache. If it is not there, it is unpacked from the program,
// or admitted and compiled, and then cached. An untrustworthy cache is an error; that nothing
// can be written to the cache is not. With Options.Interpreter there is no cache.
func (s *Sandbox) compile(ctx context.Context, mod *tool.Module) (_ *compiledModule, err error) {
	defer recoverPanic(&err) // runs in a goroutine of its own, where a panic would end the process
	if s.opts.Interpreter {
		return s.prepareInterpreter(ctx, mod)
	}
	place, err := codecache.Open(s.opts.CacheDir, cacheKey(mod.Digest, s.opts.Build))
	if errors.Is(err, codecache.ErrUntrusted) {
		return nil, err
	}
	cacheErr := err
	if err != nil {
		s.warnNotCached(mod, err)
	}
	defer place.Close()
	if c, err := s.loadCached(place, mod); c != nil || err != nil {
		return c, err
	}
	cached := func(ready func(*codecache.Entry) (*compiledModule, error)) (*compiledModule, error) {
		if place != nil {
			c, err := ready(place)
			if !ioFailed(err) && !errors.Is(err, errChild) {
				return c, err
			}
			s.warnNotCached(mod, err)
			cacheErr = err
		}
		c, err := ready(nil)
		if err == nil {
			c.cacheErr = cacheErr
		}
		return c, err
	}
	if p, err := s.prebuilt(mod); p != nil || err != nil {
		var c *compiledModule
		if err == nil {
			c, err = cached(func(place *codecache.Entry) (*compiledModule, error) { return s.unpack(mod, p, place) })
		}
		if err == nil {
			return c, nil
		}
		s.opts.Logger.Warn("the native code that this program was built with cannot be used and is made again", "module", mod.Name, "err", err)
	}
	if err := s.mayCompile(mod); err != nil {
		return nil, err
	}
	a, t, err := s.admitWithTraits(ctx, mod)
	if err != nil {
		return nil, err
	}
	return s.withCompileHooks(mod, func() (*compiledModule, error) {
		return cached(func(place *codecache.Entry) (*compiledModule, error) { return s.build(ctx, mod, a.Code, t, place) })
	})
}

// admit calls [admit.Check], for one module at a time because that takes much memory. A large
// module needs no consent if it is in the cache, or with Options.Interpreter.
func (s *Sandbox) admit(ctx context.Context, mod *tool.Module) (*admit.Module, error) {
	select {
	case s.admitting <- struct{}{}:
		defer func() { <-s.admitting }()
		permitted := *mod
		permitted.AllowLarge = mod.AllowLarge || s.opts.AllowLarge || s.opts.Interpreter || s.isCached(mod)
		return admit.Check(&permitted, dialects)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *Sandbox) warnNotCached(mod *tool.Module, err error) {
	s.opts.Logger.Warn("compiled code is not kept", "module", mod.Name, "dir", s.opts.CacheDir, "err", err)
}

func (s *Sandbox) withCompileHooks(mod *tool.Module, compile func() (*compiledModule, error)) (*compiledModule, error) {
	if s.opts.OnCompile != nil {
		s.opts.OnCompile(mod)
	}
	start := time.Now()
	c, err := compile()
	if s.opts.OnCompiled != nil {
		s.opts.OnCompiled(mod, time.Since(start), err)
	}
	return c, err
}

// loadCached loads a module from its entry in the cache. It returns nil if there is no cache,
// or if the entry is empty or was damaged; a damaged entry is removed.
func (s *Sandbox) loadCached(place *codecache.Entry, mod *tool.Module) (*compiledModule, error) {
	if place == nil {
		return nil, nil
	}
	contents, err := place.Get()
	switch {
	case errors.Is(err, codecache.ErrMissing):
		return nil, nil
	case errors.Is(err, codecache.ErrUntrusted):
		return nil, err
	case err == nil:
		defer contents.CloseNative()
		var state *savedState
		if state, err = parseState(contents); err == nil {
			var c *compiledModule
			if c, err = loadNative(place.Dir(), contents, state.traits, state.Native); err == nil {
				c.snap = state.snapshot(contents.Image)
				c.whyNoSnapshot = state.Plain
				return c, nil
			}
		}
		contents.Image.Close()
	}
	s.opts.Logger.Warn("compiled code was damaged and is made again", "module", mod.Name, "err", err)
	if err := place.Remove(); err != nil {
		s.warnNotCached(mod, err)
	}
	return nil, nil
}

// mayCompile returns an error if the file is so large that compiling it lacks a person's
// consent, or if it needs a child process that this sandbox cannot start. It leaves the checks
// of admission to admit.
func (s *Sandbox) mayCompile(mod *tool.Module) error {
	if mod.Bytes > admit.MaxBytes {
		return nil // admission refuses it
	}
	if mod.Bytes > admit.LargeBytes && !s.opts.AllowLarge && !mod.AllowLarge {
		return &admit.LargeError{RefusedError: admit.Refuse(mod, "it has %d bytes; above %d MiB a module is compiled only if a person asks for it",
			mod.Bytes, admit.LargeBytes>>20)}
	}
	if s.opts.Spawn == nil && mod.Origin != tool.OriginBuiltin {
		return admit.Refuse(mod, "it is not compiled: this program has no separate process for compiling, which could be stopped; "+
			"only built-in modules are compiled without one")
	}
	return nil
}

// build compiles the module code in a new directory, loads it from there and makes its
// snapshot. The directory then becomes the entry place; without a cache (nil), or after a
// failure, it is removed. If only caching fails, that is no error.
func (s *Sandbox) build(ctx context.Context, mod *tool.Module, code []byte, t traits, place *codecache.Entry) (*compiledModule, error) {
	dir, err := place.NewDir()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // does nothing once the directory is in the cache
	if err := os.WriteFile(filepath.Join(dir, codecache.ModuleFile), code, 0o600); err != nil {
		return nil, err
	}
	if err := s.compileDir(ctx, mod, dir, code); err != nil {
		return nil, err
	}
	// The child's files are checked: it has read a stranger's module, which may have taken it
	// over.
	found, err := codecache.Inspect(dir, false)
	switch {
	case err != nil:
		return nil, err
	case len(found.Names) != 2 || !bytes.Equal(found.Code, code):
		found.Close()
		return nil, fmt.Errorf("compile %s: the process that compiles left %q instead of native code", mod.Name, found.Names)
	}
	name := ""
	if mapsNative {
		if name, found, err = align(found, dir); err != nil {
			return nil, fmt.Errorf("compile %s: %w", mod.Name, err)
		}
	}
	c, err := loadNative(dir, found, t, name)
	found.CloseNative() // open files cannot be moved on every system
	if err != nil {
		return nil, fmt.Errorf("compile %s: what the process that compiles left cannot be loaded: %w", mod.Name, err)
	}
	var why error
	if c.snap, why = s.newSnapshot(c, code); why != nil {
		c.whyNoSnapshot = printable([]byte(why.Error()))
	}
	if place == nil {
		return c, nil
	}
	if err = s.cacheModule(dir, name, c, why, place); err != nil {
		s.warnNotCached(mod, err)
		c.cacheErr = err
	}
	return c, nil
}

// align rewrites the engine's file of native code in a directory as a file of our own. It
// returns the name that the engine gives to the code, and the new contents of the directory.
func align(c *codecache.Contents, dir string) (name string, _ *codecache.Contents, _ error) {
	defer c.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", nil, err
	}
	defer root.Close()
	engineFile := c.Names[slices.IndexFunc(c.Names, func(name string) bool { return name != codecache.ModuleFile })]
	from, err := root.Open(engineFile)
	if err != nil {
		return "", nil, err
	}
	defer from.Close()
	to, err := root.OpenFile(codecache.NativeFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", nil, err
	}
	if err := errors.Join(native.Align(to, from), to.Close()); err != nil {
		return "", nil, err
	}
	first, _, _ := strings.Cut(engineFile, "/")
	if err := root.RemoveAll(first); err != nil {
		return "", nil, err
	}
	found, err := codecache.Inspect(dir, false)
	return path.Base(engineFile), found, err
}

// cacheModule completes the directory of a module and puts it into the cache. name is the name
// that the engine gives to the native code. why is the reason why the module has no snapshot;
// nil: it has one. With a reason other than errNotReusable, which may vanish, nothing is cached:
// an error. With a snapshot, and if mapsNative is set, the module is replaced by its skeleton,
// which loads ten times faster.
func (s *Sandbox) cacheModule(dir, name string, c *compiledModule, why error, place *codecache.Entry) error {
	state := &savedState{traits: c.traits, Native: name, Plain: c.whyNoSnapshot}
	switch {
	case why == nil:
		if mapsNative { // the engine would not find its own file with a skeleton
			var err error
			if state.Native, err = replaceWithSkeleton(filepath.Join(dir, codecache.ModuleFile)); err != nil {
				return err
			}
		}
	case !errors.Is(why, errNotReusable):
		return fmt.Errorf("initialise it: %w", why) // it may work the next time
	}
	return c.store(dir, state, place)
}

// store writes the remaining files of an entry into a directory that holds a module and its
// native code, and puts the directory into the cache.
func (c *compiledModule) store(dir string, state *savedState, place *codecache.Entry) error {
	if c.snap != nil {
		if err := c.snap.save(state, dir); err != nil {
			return err
		}
	}
	data, err := json.Marshal(state)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, codecache.StateFile), data, 0o600); err != nil {
		return err
	}
	if err := place.Put(dir); err != nil {
		return err
	}
	place.Sweep(time.Now())
	return nil
}

// replaceWithSkeleton replaces the module in a file by its skeleton. It returns the name that
// the engine gives to the skeleton's native code.
func replaceWithSkeleton(file string) (name string, _ error) {
	code, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	m, err := wasm.Decode(code)
	if err != nil {
		return "", err
	}
	skeleton := wasm.Skeleton(m)
	if err := os.WriteFile(file, skeleton, 0o600); err != nil {
		return "", err
	}
	return nameOf(skeleton)
}

// nameOf returns the engine's name for the native code of a module, on this processor.
func nameOf(code []byte) (string, error) {
	ctx := context.Background()
	engine, askedFor := native.NewCache("", nil)
	rt := wazero.NewRuntimeWithConfig(ctx, engineConfig().WithCompilationCache(engine))
	if _, err := findCode(rt, code); err != nil && askedFor() == "" {
		return "", errors.Join(err, rt.Close(ctx), engine.Close(ctx))
	}
	return askedFor(), errors.Join(rt.Close(ctx), engine.Close(ctx))
}

// compileDir compiles a module into the directory dir, which already holds code as a file.
func (s *Sandbox) compileDir(ctx context.Context, mod *tool.Module, dir string, code []byte) error {
	if s.opts.Spawn != nil {
		bytes := int(mod.Bytes)
		if s.opts.AllowLarge || mod.AllowLarge { // its functions may be as large as those of a large module
			bytes = max(bytes, admit.LargeBytes)
		}
		job := s.job(bytes, 2) // more workers would need more memory
		if mod.Origin == tool.OriginBuiltin {
			job = s.job(int(mod.Bytes), runtime.GOMAXPROCS(0)).withLongTimeout()
		}
		return s.spawn(ctx, mod, dir, job)
	}
	err := compileInto(ctx, dir, code, 1) // one worker: recoverPanic cannot catch panics in goroutines of the engine
	if err != nil && !ioFailed(err) {
		return admit.Refuse(mod, "it does not compile: %s", printable([]byte(err.Error())))
	}
	return err
}

// engineConfig returns the configuration of the engine, the same for compiling and loading.
// It demands the compiler: the default on other systems is the interpreter, which would read
// a stranger's module in this process.
func engineConfig() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfigCompiler().WithCoreFeatures(features)
}

// loadNative loads the native code of a module from the files found in dir. name is the name
// that the engine gives to the code; it matters only if mapsNative is set.
func loadNative(dir string, found *codecache.Contents, t traits, name string) (_ *compiledModule, err error) {
	ctx := context.Background()
	if dialects[t.Kind] == nil {
		return nil, fmt.Errorf("it is of the kind %d, which does not run", t.Kind)
	}
	var engine wazero.CompilationCache
	if mapsNative {
		engine, _ = native.NewCache(name, found.Native)
	} else if engine, err = wazero.NewCompilationCacheWithDir(dir); err != nil {
		return nil, err
	}
	rt := wazero.NewRuntimeWithConfig(ctx, engineConfig().WithCompilationCache(engine))
	// A second processor helps here: providing the imports takes an eighth of the time.
	var imports sync.WaitGroup
	var importErr error
	imports.Go(func() { importErr = provide(ctx, rt, t) })
	module, err := findCode(rt, found.Code)
	imports.Wait()
	if err := errors.Join(err, importErr); err != nil {
		return nil, errors.Join(err, rt.Close(ctx), engine.Close(ctx))
	}
	return &compiledModule{traits: t, dialect: dialects[t.Kind], minBytes: minMemory(module), runtime: rt, module: module, engine: engine}, nil
}

// findCode loads the native code of a module from the engine's cache. It never compiles: with
// several workers the engine checks its context before each function, and this context has
// already ended.
func findCode(rt wazero.Runtime, code []byte) (wazero.CompiledModule, error) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	module, err := compileModule(experimental.WithCompilationWorkers(canceled, 2), rt, code)
	if errors.Is(err, context.Canceled) {
		err = errors.New("there is no native code for it")
	}
	return module, err
}

// prepareInterpreter makes a module ready for the interpreter. Nobody may set
// Options.Interpreter to run strangers' modules: this process reads them here.
func (s *Sandbox) prepareInterpreter(ctx context.Context, mod *tool.Module) (*compiledModule, error) {
	a, t, err := s.admitWithTraits(ctx, mod)
	if err != nil {
		return nil, err
	}
	return s.withCompileHooks(mod, func() (*compiledModule, error) {
		rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features))
		if err := provide(ctx, rt, t); err != nil {
			return nil, errors.Join(err, rt.Close(ctx))
		}
		module, err := compileModule(ctx, rt, a.Code)
		if err != nil {
			_ = rt.Close(ctx)
			return nil, admit.Refuse(mod, "it does not compile: %s", printable([]byte(err.Error())))
		}
		return &compiledModule{traits: t, dialect: dialects[t.Kind], minBytes: minMemory(module), runtime: rt, module: module, whyNoSnapshot: "the interpreter runs it"}, nil
	})
}

func provide(ctx context.Context, rt wazero.Runtime, t traits) (err error) {
	defer recoverPanic(&err)
	name := preview1.ModuleName
	if t.Unstable {
		name = preview1.UnstableName
	}
	if err := preview1.Instantiate(ctx, rt, name, t.Missing...); err != nil {
		return err
	}
	if err := dialects[t.Kind].Provide(ctx, rt); err != nil {
		return err
	}
	return meter.Instantiate(ctx, rt)
}

// minMemory returns the bytes of a module's linear memory at its start. 0: none, or empty.
func minMemory(m wazero.CompiledModule) uint64 {
	memory, ok := m.ExportedMemories()[abi.ExportMemory]
	if !ok {
		return 0
	}
	return uint64(memory.Min()) << 16 // pages of WebAssembly
}

func compileModule(ctx context.Context, rt wazero.Runtime, code []byte) (_ wazero.CompiledModule, err error) {
	defer recoverPanic(&err)
	// Mapped native code faults if the disk is damaged or the file was cut off.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	return rt.CompileModule(ctx, code)
}

// recoverPanic sets err if the caller panics. The engine is large and processes modules of
// strangers; its panics must not end the host.
func recoverPanic(err *error) {
	if r := recover(); r != nil {
		cause, ok := r.(error)
		if !ok {
			cause = fmt.Errorf("%v", r)
		}
		*err = fmt.Errorf("the engine panicked: %w", cause)
	}
}

// ioFailed reports whether an error comes from reading or writing files.
func ioFailed(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	return errors.As(err, &path) || errors.As(err, &link)
}
