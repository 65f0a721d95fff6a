package fueltest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
)

const (
	budget = math.MaxInt64 / 8 // never used up
	depth  = 1 << 20           // deeper than any call but the runaway ones
	tables = 1 << 20           // elements, larger than any table
)

// A machine executes one script.
type machine struct {
	way
	ctx        context.Context
	runtime    wazero.Runtime
	suite      string
	dir        string
	latest     *instance
	named      map[string]*instance
	registered map[string]*instance
	all        []*instance
	at         int            // index of the current command
	used       map[int]uint64 // fuel, by command
}

type instance struct {
	mod     api.Module
	account *meter.Account    // nil unless metered
	depth   api.MutableGlobal // nil unless limited
}

func newMachine(ctx context.Context, w way, s suite, dir string) (*machine, error) {
	m := &machine{way: w, suite: s.name, dir: dir, named: map[string]*instance{}, registered: map[string]*instance{}, used: map[int]uint64{}}
	// A module gets the name under which others import it after it was instantiated. In
	// wazero none has a name.
	m.ctx = experimental.WithImportResolver(ctx, func(name string) api.Module {
		if inst, ok := m.registered[name]; ok {
			return inst.mod
		}
		return nil
	})
	m.runtime = wazero.NewRuntimeWithConfig(m.ctx, w.config().WithCoreFeatures(s.features))
	if w.slice > 0 {
		if err := meter.Instantiate(m.ctx, m.runtime); err != nil {
			return nil, err
		}
	}
	spectest, err := m.instantiate(filepath.Join("..", "..", "testdata", "spectest.wasm"))
	m.registered["spectest"] = spectest
	return m, err
}

// load returns the code to compile of a module. An error means that this host refuses the
// module.
func (m *machine) load(file string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(m.dir, file))
	if err != nil {
		return nil, errHarness{err}
	}
	if m.slice == 0 {
		return data, nil
	}
	decoded, err := wasm.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	data, err = fuel.Rewrite(decoded, m.options)
	if err != nil {
		return nil, fmt.Errorf("rewrite: %w", err)
	}
	return data, nil
}

func (m *machine) instantiate(file string) (*instance, error) {
	data, err := m.load(file)
	if err != nil {
		return nil, err
	}
	return m.start(data)
}

func (m *machine) start(data []byte) (*instance, error) {
	compiled, err := m.runtime.CompileModule(m.ctx, data)
	if err != nil {
		return nil, err
	}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	mod, err := m.runtime.InstantiateModule(m.ctx, compiled, config)
	if err != nil {
		return nil, err
	}
	inst := &instance{mod: mod}
	m.all = append(m.all, inst)
	if m.slice == 0 {
		return inst, nil
	}
	inst.account = meter.New(m.ctx, budget, m.slice)
	if err := inst.account.Attach(mod); err != nil {
		return nil, errHarness{err}
	}
	if m.options.MaxDepth > 0 {
		inst.depth = mod.ExportedGlobal(fuel.ExportDepth).(api.MutableGlobal)
	}
	if start := mod.ExportedFunction(fuel.ExportStart); start != nil {
		_, err = m.call(inst, start)
	}
	return inst, err
}

// errHarness is an error that no command may expect.
type errHarness struct{ error }

// run executes a command. It returns an error unless the command ends as the suite
// expects.
func (m *machine) run(c command) error {
	switch c.Type {
	case "module":
		inst, err := m.instantiate(c.Filename)
		if err != nil {
			inst = nil
		}
		m.latest = inst
		if c.Name != "" {
			m.named[c.Name] = inst
		}
		if m.options.MaxDepth > 0 && slices.Contains(tooTyped, m.suite+"/"+c.Filename) {
			if err == nil {
				return errors.New("it is supported; it need not be tolerated")
			}
			return nil
		}
		return err
	case "register":
		inst, err := m.instance(c.Name)
		if err != nil {
			return err
		}
		m.registered[c.As] = inst
		return nil
	case "action":
		_, err := m.act(c.Action)
		return err
	case "assert_return":
		got, err := m.act(c.Action)
		if err != nil {
			return err
		}
		return matchAll(c.Expected, got)
	case "assert_trap":
		_, err := m.act(c.Action)
		return wantTrap(err, trapOf(c.Text))
	case "assert_exception":
		_, err := m.act(c.Action)
		return wantTrap(err, "uncaught exception")
	case "assert_exhaustion":
		_, err := m.act(c.Action)
		delete(m.used, m.at) // the possible depth of calls depends on the engine
		if m.options.MaxDepth > 0 && errors.Is(err, meter.ErrDepth) {
			return nil
		}
		return wantTrap(err, "stack overflow")
	case "assert_malformed", "assert_invalid":
		data, err := m.load(c.Filename)
		if err == nil {
			// Most of these could not be instantiated anyway: their imports are missing.
			_, err = m.runtime.CompileModule(m.ctx, data)
		}
		if slices.Contains(toleratedFailures, m.suite+"/"+c.Filename) {
			if err != nil && m.slice == 0 {
				return fmt.Errorf("wazero has learned to refuse it; it need not be tolerated: %w", err)
			}
			return nil
		}
		return wantRefusal(err)
	case "assert_unlinkable":
		data, err := m.load(c.Filename)
		if err != nil {
			return err // the module is valid
		}
		_, err = m.start(data)
		return wantRefusal(err)
	case "assert_uninstantiable":
		_, err := m.instantiate(c.Filename)
		if c.Text == "out of bounds table access" && err == nil {
			return nil // see [toleratedFailures]
		}
		return wantTrap(err, c.Text)
	}
	return errors.New("unknown command")
}

func (m *machine) instance(name string) (*instance, error) {
	inst := m.latest
	if name != "" {
		inst = m.named[name]
	}
	if inst == nil {
		return nil, errNoModule
	}
	return inst, nil
}

// errNoModule is returned for a command on a module that was not accepted.
var errNoModule = errHarness{errors.New("there is no such module")}

// act returns the results of a function or the value of a global.
func (m *machine) act(a action) ([]uint64, error) {
	inst, err := m.instance(a.Module)
	if err != nil {
		return nil, err
	}
	if a.Type == "get" { // the other type is invoke
		global := inst.mod.ExportedGlobal(a.Field)
		if global == nil {
			return nil, errHarness{fmt.Errorf("there is no global %q", a.Field)}
		}
		return []uint64{global.Get()}, nil
	}
	fn := inst.mod.ExportedFunction(a.Field)
	if fn == nil {
		return nil, errHarness{fmt.Errorf("there is no function %q", a.Field)}
	}
	var args []uint64
	for _, arg := range a.Args {
		bits, err := arg.bits()
		if err != nil {
			return nil, errHarness{err}
		}
		args = append(args, bits...)
	}
	return m.call(inst, fn, args...)
}

func (m *machine) call(inst *instance, fn api.Function, args ...uint64) ([]uint64, error) {
	if m.slice == 0 {
		return fn.Call(m.ctx, args...)
	}
	before := m.fuel()
	got, err := fn.Call(meter.With(m.ctx, inst.account), args...)
	m.used[m.at] = m.fuel() - before
	for _, inst := range m.all {
		switch {
		case inst.depth == nil, inst.depth.Get() == depth:
		case err == nil:
			return nil, errHarness{fmt.Errorf("the depth is %d after the call, want %d", inst.depth.Get(), depth)}
		default:
			inst.depth.Set(depth) // a host would discard the instance
		}
	}
	return got, err
}

// fuel returns the fuel used by all instances. That of one means nothing: its calls into
// another use the counter of the other, which is filled from the other's account.
func (m *machine) fuel() uint64 {
	var sum uint64
	for _, inst := range m.all {
		sum += inst.account.Used()
	}
	return sum
}

func matchAll(want []value, got []uint64) error {
	size := 0
	for _, v := range want {
		size += v.size()
	}
	if len(got) != size {
		return fmt.Errorf("got %d numbers, want %d", len(got), size)
	}
	for i, v := range want {
		if err := v.match(got[:v.size()]); err != nil {
			return fmt.Errorf("result %d: %w", i, err)
		}
		got = got[v.size():]
	}
	return nil
}

// trapOf returns wazero's words for a trap, which are fewer than those of the suites.
func trapOf(text string) string {
	switch {
	case text == "indirect call":
		return "indirect call type mismatch"
	case text == "undefined", text == "undefined element", text == "out of bounds table access",
		strings.HasPrefix(text, "uninitialized"):
		return "invalid table access"
	}
	return text
}

func wantTrap(err error, trap string) error {
	if err == nil {
		return fmt.Errorf("it succeeded, want the trap %q", trap)
	}
	// After "wasm error: " or the action during which it happened.
	if line, _, _ := strings.Cut(err.Error(), "\n"); line != trap && !strings.HasSuffix(line, ": "+trap) {
		return fmt.Errorf("want the trap %q, got %w", trap, err)
	}
	return nil
}

func wantRefusal(err error) error {
	if err == nil {
		return errors.New("the module was accepted")
	}
	if harness, ok := errors.AsType[errHarness](err); ok {
		return harness
	}
	return nil
}
