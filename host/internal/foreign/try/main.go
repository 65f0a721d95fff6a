// Command try runs modules of others that are in no registry: for each WebAssembly file
// in a folder it prints its kind, lists its tools, and calls them. Only the files of a
// new, empty directory are granted. Run it in host/internal/foreign:
//
//	go run ./try DIR
//
// The arguments of the tools are in NAME.json beside NAME.wasm: an object with a list of
// arguments for each tool. Other tools are called with {}.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stockade-dev/stockade/host/internal/foreign"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
)

func main() {
	foreign.RunCompileChild()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: try DIR")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "try:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.wasm"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s holds no *.wasm", dir)
	}
	if err != nil {
		return err
	}
	kept, err := os.MkdirTemp("", "try-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(kept)
	box := foreign.NewSandbox(filepath.Join(kept, "compiled"), "")
	defer box.Close()
	if err := errors.Join(os.Mkdir(filepath.Join(kept, "compiled"), 0o700), os.Mkdir(filepath.Join(kept, "work"), 0o700)); err != nil {
		return err
	}
	for _, file := range files {
		fmt.Printf("== %s\n", filepath.Base(file))
		if err := try(ctx, box, file, filepath.Join(kept, "work")); err != nil {
			fmt.Printf("   %v\n", err)
		}
	}
	return nil
}

func try(ctx context.Context, box *sandbox.Sandbox, file, dir string) error {
	code, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	calls, err := foreign.Calls(file)
	if err != nil {
		return err
	}
	name := strings.TrimSuffix(filepath.Base(file), ".wasm")
	r, err := foreign.Prepare(ctx, box, name, code, "", dir)
	if err != nil {
		return err
	}
	fmt.Printf("   %s; %s\n", r.Manifest.ABI, strings.Join(r.Manifest.Notes, "; "))
	for _, spec := range r.Manifest.Tools {
		fmt.Printf("   %s %s\n      %.200s\n", spec.Name, spec.Parameters, spec.Description)
		for _, args := range calls(spec.Name) {
			result, err := r.Call(ctx, box, spec.Name, args, policy.Limits{}, func(p tool.Progress) { fmt.Printf("      says %s\n", tool.Marshal(p)) })
			if err != nil {
				return err
			}
			fmt.Printf("      %s -> %s\n", args, result)
		}
	}
	return nil
}
