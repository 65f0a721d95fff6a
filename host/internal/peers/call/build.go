//go:build bench

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
)

// outDir is the directory for all built files, outside of this Go module and ignored by
// git.
const outDir = "../../../bin/peers"

// build builds a command of this module into outDir, and returns the file.
func build(file, source string, env []string, flags ...string) (string, error) {
	bench.Progress("build %s", file)
	file, err := filepath.Abs(filepath.Join(outDir, file))
	if err != nil {
		return "", err
	}
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-o", file}, flags...)
	cmd := exec.Command("go", append(args, source)...)
	cmd.Env = append(os.Environ(), env...)
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", strings.Join(cmd.Args, " "), err, output)
	}
	return file, nil
}

// wasip1 is the environment for building a module.
var wasip1 = []string{"GOOS=wasip1", "GOARCH=wasm"}

func buildTool(job string) (string, error) {
	return build(job+".wasm", "./workloads/call/"+job, wasip1, "-buildmode=c-shared", "-ldflags=-s -w")
}

func buildPlugin(job string) (string, error) {
	return build(job+"-extism.wasm", "./workloads/call/"+job, wasip1, "-buildmode=c-shared", "-ldflags=-s -w", "-tags=extism")
}

// buildNative builds a static program, which starts fastest.
func buildNative(job string) (string, error) {
	return build(job+"-native", "./workloads/call/"+job, []string{"CGO_ENABLED=0"}, "-ldflags=-s -w")
}

func buildProbe() (string, error) {
	return build("probe", "./call/probe", []string{"CGO_ENABLED=0"}, "-ldflags=-s -w", "-tags=bench")
}
