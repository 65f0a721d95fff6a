// Command packguests finishes the built-in modules after the Go toolchain has
// built them: it asks each for its manifest, in the sandbox, writes that into
// the module as a custom section, and writes index.json, from which the program
// lists its tools without touching WebAssembly.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stockade-dev/stockade/guests"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: packguests DIR")
		os.Exit(2)
	}
	if err := pack(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "packguests:", err)
		os.Exit(1)
	}
}

func pack(ctx context.Context, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.wasm"))
	if err != nil {
		return err
	}
	box := sandbox.New(sandbox.Options{Interpreter: true})
	defer box.Close()
	var index []guests.Module
	for _, file := range files {
		e, err := packOne(ctx, box, file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		index = append(index, e)
	}
	data, err := json.Marshal(index)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, guests.IndexFile), append(data, '\n'), 0o644)
}

func packOne(ctx context.Context, box *sandbox.Sandbox, file string) (guests.Module, error) {
	code, err := os.ReadFile(file)
	if err != nil {
		return guests.Module{}, err
	}
	manifest, err := box.AskManifest(ctx, module(file, code))
	if err != nil {
		return guests.Module{}, err
	}
	if code, err = wasm.AppendCustom(code, wasm.ManifestSection, manifest); err != nil {
		return guests.Module{}, err
	}
	mod := module(file, code)
	if _, err := box.Describe(ctx, mod); err != nil { // the manifest is good, and the code keeps to it
		return guests.Module{}, err
	}
	if err := os.WriteFile(file, code, 0o644); err != nil {
		return guests.Module{}, err
	}
	return guests.Module{File: filepath.Base(file), Digest: mod.Digest, Bytes: mod.Bytes, Manifest: manifest}, nil
}

func module(file string, code []byte) *tool.Module {
	return tool.ModuleOf(strings.TrimSuffix(filepath.Base(file), ".wasm"), tool.OriginFile, file, code)
}
