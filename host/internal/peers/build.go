package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
)

// outDir is the directory for the modules, outside of this Go module and ignored by git.
const outDir = "../../../bin/peers"

// workload is one of the modules with an argument.
type workload struct{ name, module, arg string }

var workloads = []workload{
	{"c-bulk", "c", "bulk"},
	{"c-bytel", "c", "bytel"},
	{"c-bytelsimd", "csimd", "bytel"},
	{"c-core", "c", "core"},
	{"c-fib", "c", "fib"},
	{"c-interp", "c", "interp"},
	{"c-malloc", "c", "malloc"},
	{"c-mat", "c", "mat"},
	{"c-matsimd", "csimd", "mat"},
	{"c-qs", "c", "qs"},
	{"c-qsort", "c", "qsort"},
	{"c-sha256", "c", "sha256"},
	{"c-tight", "c", "tight"},
	{"go-flate", "go", "flate"},
	{"go-grep", "go", "grep"},
	{"go-json", "go", "json"},
	{"go-map", "go", "map"},
	{"go-mandel", "go", "mandel"},
	{"go-nbody", "go", "nbody"},
	{"go-regexp", "go", "regexp"},
	{"go-sha256", "go", "sha256"},
	{"go-sort", "go", "sort"},
}

// modules lists the modules of the workloads.
var modules = []string{"go", "c", "csimd"}

// build compiles the modules and returns their code.
func build() (map[string][]byte, error) {
	sources, err := filepath.Glob("workloads/c/*.c")
	if err != nil {
		return nil, err
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("there are no workloads here: run it in host/internal/peers")
	}
	if err := os.MkdirAll(outDir, 0o755); err != nil {
		return nil, err
	}
	// The features are those that newer versions of clang use by default. The output is
	// not stripped, as most modules are not.
	clang := []string{"clang", "--target=wasm32-wasi", "-O2", "-mbulk-memory", "-msign-ext", "-mnontrapping-fptoint"}
	clang = append(clang, sources...)
	commands := map[string][]string{
		"c":     clang,
		"csimd": append(append([]string{}, clang...), "-msimd128"),
		"go":    {"env", "GOOS=wasip1", "GOARCH=wasm", "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w"},
	}
	code := map[string][]byte{}
	for _, name := range modules {
		file := filepath.Join(outDir, name+".wasm")
		args := append(commands[name], "-o", file)
		if name == "go" {
			args = append(args, "./workloads/go")
		}
		bench.Progress("build %s", name)
		cmd := exec.Command(args[0], args[1:]...)
		if output, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", name, err, output)
		}
		if code[name], err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	return code, nil
}
