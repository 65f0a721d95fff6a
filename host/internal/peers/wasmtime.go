package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/bytecodealliance/wasmtime-go/v37"
)

// wasmtimeProgram is a module compiled by wasmtime.
type wasmtimeProgram struct {
	engine *wasmtime.Engine
	module *wasmtime.Module
	linker *wasmtime.Linker
	fuel   bool
}

func compileWasmtime(code []byte, fuel bool) (*wasmtimeProgram, error) {
	config := wasmtime.NewConfig()
	config.SetConsumeFuel(fuel)
	p := &wasmtimeProgram{engine: wasmtime.NewEngineWithConfig(config), fuel: fuel}
	var err error
	if p.module, err = wasmtime.NewModule(p.engine, code); err != nil {
		return nil, err
	}
	p.linker = wasmtime.NewLinker(p.engine)
	return p, p.linker.DefineWasi()
}

func (p *wasmtimeProgram) close() error {
	p.linker.Close()
	p.module.Close()
	p.engine.Close()
	return nil
}

func (p *wasmtimeProgram) run(arg string) (outcome, error) {
	// wasmtime's WASI writes to files only.
	dir, err := os.MkdirTemp("", "peers-")
	if err != nil {
		return outcome{}, err
	}
	defer os.RemoveAll(dir)
	stdout := filepath.Join(dir, "stdout")
	wasi := wasmtime.NewWasiConfig()
	wasi.SetArgv([]string{"guest", arg})
	if err := wasi.SetStdoutFile(stdout); err != nil {
		return outcome{}, err
	}
	store := wasmtime.NewStore(p.engine)
	defer store.Close()
	store.SetWasi(wasi)
	if p.fuel {
		if err := store.SetFuel(math.MaxUint64); err != nil {
			return outcome{}, err
		}
	}
	instance, err := p.linker.Instantiate(store, p.module)
	if err != nil {
		return outcome{}, err
	}
	start := instance.GetFunc(store, "_start")
	if start == nil {
		return outcome{}, errors.New("there is no function _start")
	}
	var o outcome
	o.CPU, err = cpuTime(func() error {
		_, err := start.Call(store)
		if exit, ok := errors.AsType[*wasmtime.Error](err); ok {
			if code, ok := exit.ExitStatus(); ok && code == 0 {
				return nil
			}
		}
		return err
	})
	if err != nil {
		return outcome{}, fmt.Errorf("wasmtime: %w", err)
	}
	if p.fuel {
		left, err := store.GetFuel()
		if err != nil {
			return outcome{}, err
		}
		o.Fuel = math.MaxUint64 - left
	}
	store.Close() // flushes the file
	output, err := os.ReadFile(stdout)
	o.output = string(output)
	return o, err
}
