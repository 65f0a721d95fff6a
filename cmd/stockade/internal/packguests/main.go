// Command packguests finishes the built-in modules after the Go toolchain has built them.
// It asks each module for its manifest, in the sandbox, adds the manifest to the module as a
// custom section, and compresses the module. It writes index.json, from which the program
// lists its tools without running WebAssembly. If the program embeds native code on this
// platform, it compiles the modules for it. DIR is the directory guests.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/stockade-dev/stockade/guests"
	"github.com/stockade-dev/stockade/host/registry/author"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
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
	files, err := filepath.Glob(filepath.Join(dir, "wasm", "*.wasm"))
	if err != nil {
		return err
	}
	box := sandbox.New(sandbox.Options{Interpreter: true})
	defer box.Close()
	var index []guests.Module
	for _, file := range files {
		e, err := packOne(ctx, box, file, filepath.Join(dir, "dist"))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		index = append(index, e)
	}
	if err := compile(ctx, dir, index); err != nil {
		return err
	}
	data, err := json.Marshal(index)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "dist", guests.IndexFile), append(data, '\n'), 0o644)
}

// compile replaces the native code for this platform by that of the modules in dir.
func compile(ctx context.Context, dir string, index []guests.Module) error {
	out := filepath.Join(dir, filepath.FromSlash(guests.NativeDir()))
	before, err := os.ReadDir(out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // native code for this platform is not embedded
	}
	for _, d := range before {
		if d.IsDir() {
			err = errors.Join(err, os.RemoveAll(filepath.Join(out, d.Name())))
		}
	}
	if err != nil {
		return err
	}
	cache, err := os.MkdirTemp("", "packguests-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(cache)
	box := sandbox.New(sandbox.Options{CacheDir: cache})
	defer box.Close()
	errs := make([]error, len(index))
	var wg sync.WaitGroup
	for i, m := range index {
		wg.Go(func() {
			errs[i] = compileOne(ctx, box, filepath.Join(dir, "wasm", m.File), filepath.Join(out, m.Digest))
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func compileOne(ctx context.Context, box *sandbox.Sandbox, file, out string) error {
	code, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	mod := module(file, code)
	mod.Origin = tool.OriginBuiltin // built-in modules are compiled in this process
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	if err := box.Pack(ctx, mod, out); err != nil {
		return fmt.Errorf("compile %s: %w", file, err)
	}
	return nil
}

func packOne(ctx context.Context, box *sandbox.Sandbox, file, dist string) (guests.Module, error) {
	code, err := os.ReadFile(file)
	if err != nil {
		return guests.Module{}, err
	}
	p, err := author.Pack(ctx, box, module(file, code))
	if err != nil {
		return guests.Module{}, err
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return guests.Module{}, err
	}
	if err := errors.Join(
		os.WriteFile(file, p.Code, 0o644),
		os.WriteFile(filepath.Join(dist, filepath.Base(file)+guests.ModuleSuffix), encoder.EncodeAll(p.Code, nil), 0o644)); err != nil {
		return guests.Module{}, err
	}
	return guests.Module{File: filepath.Base(file), Digest: p.Module.Digest, Bytes: p.Module.Bytes, Manifest: p.Section}, nil
}

func module(file string, code []byte) *tool.Module {
	return tool.NewModule(strings.TrimSuffix(filepath.Base(file), ".wasm"), tool.OriginFile, file, code)
}
