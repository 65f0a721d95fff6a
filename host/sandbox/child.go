package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/stockade-dev/stockade/host/sandbox/codecache"
)

// ChildCommand is the first argument of the process that compiles: a program that
// was started with it passes the others to [CompileChild], and does nothing else.
// See RATIONALE, "Why is a module compiled in another process?"
const ChildCommand = "compile-child"

// What a child ends with. A program of Go that crashes ends with 2.
const (
	childDone     = 0
	childRefused  = 65 // the compiler refuses the module; why is on stdout
	childTooLarge = 73 // the native code is larger than a file may be
	childFailed   = 74 // the child cannot do its work; why is on stdout
	childTooSlow  = 75 // where the system only warns
)

// childJob is what a child is told: how to compile, and what it may take.
type childJob struct {
	workers int
	cpu     time.Duration // whole seconds, of all threads together
	memory  uint64        // bytes, beyond what the program takes by itself
	file    uint64        // bytes of each file that it writes

	// wall is when the child is killed from outside, see wallPerCPU.
	wall time.Duration
}

// The limits of a child. A module of the standard Go toolchain takes 0.7 s and
// 20 MiB for each MiB of code, so a machine has to be four times slower than a
// common one before they touch an honest module, and what is made to be slow
// is ended soon: it need not be large.
const (
	cpuBase, cpuPerMiB, cpuMost          = 5 * time.Second, 3 * time.Second, 60 * time.Second
	memoryBase, memoryPerMiB, memoryMost = 1 << 30, 64 << 20, 4 << 30
	fileBase, filePerMiB                 = 64 << 20, 16 << 20
)

// newChildJob is the job of compiling a module of so many bytes.
func newChildJob(bytes, workers int) childJob {
	over := max(bytes-1<<20, 0)
	perMiB := func(n int) uint64 { return uint64(over) * uint64(n) >> 20 }
	cpu := cpuBase + time.Duration(perMiB(int(cpuPerMiB.Milliseconds())))*time.Millisecond
	cpu = min(cpu.Round(time.Second), cpuMost) * raceFactor
	return childJob{
		workers: workers,
		cpu:     cpu,
		memory:  min(memoryBase+perMiB(memoryPerMiB), memoryMost) * raceFactor,
		file:    fileBase + perMiB(filePerMiB),
		wall:    wallPerCPU * cpu,
	}
}

// withLongTimeout is the job for a module that is part of the program: under emulation
// honest code takes a hundred times as long, and no stranger wrote this. A child
// that a fault of ours keeps at work ends some day.
func (j childJob) withLongTimeout() childJob {
	const day = 24 * time.Hour
	j.cpu, j.wall = day, wallPerCPU*day
	return j
}

func (j childJob) args() []string {
	return strings.Fields(fmt.Sprintf("%d %d %d %d", j.workers, j.cpu, j.memory, j.file))
}

func parseJob(args []string) (j childJob, err error) {
	if len(args) != 4 {
		return j, fmt.Errorf("%d arguments, want 4", len(args))
	}
	if _, err := fmt.Sscan(strings.Join(args, " "), &j.workers, &j.cpu, &j.memory, &j.file); err != nil {
		return j, err
	}
	if j.workers < 1 || j.cpu < time.Second || j.memory == 0 || j.file == 0 {
		return j, errors.New("a limit is missing")
	}
	return j, nil
}

// MissingLimits names the limits on a child that this system does not have, for
// people. It is empty where there are all of them.
func MissingLimits() string { return missingLimits }

// CompileChild is the whole of the child: it limits itself, compiles the
// module that lies in its directory, into its directory, and returns what to
// exit with.
func CompileChild(args []string) (exitCode int) {
	return compileChild(args, os.Stdout)
}

func compileChild(args []string, out io.Writer) int {
	job, err := parseJob(args)
	if err == nil {
		err = job.limit()
	}
	var code []byte
	if err == nil {
		code, err = os.ReadFile(codecache.ModuleFile)
	}
	if err != nil {
		fmt.Fprintln(out, err)
		return childFailed
	}
	switch err := compileInto(context.Background(), ".", code, job.workers); {
	case errors.Is(err, syscall.EFBIG):
		return childTooLarge
	case ioFailed(err):
		fmt.Fprintln(out, err)
		return childFailed
	case err != nil:
		fmt.Fprintln(out, err)
		return childRefused
	}
	return childDone
}

// limit lowers what this process may take, for good. It comes before anything
// is read that a stranger wrote.
func (j childJob) limit() error {
	runtime.GOMAXPROCS(j.workers) // idle processors would collect garbage, on the job's time
	debug.SetMemoryLimit(int64(min(j.memory/4*3, math.MaxInt64)))
	return j.limitProcess()
}

// compileInto compiles a module into a directory. Beside the interpreter it is
// the only place where a module is compiled: in a child, or in this process if
// the module is as trusted as the program.
func compileInto(ctx context.Context, dir string, code []byte, workers int) (err error) {
	defer recoverPanic(&err)
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return err
	}
	defer cache.Close(ctx)
	rt := wazero.NewRuntimeWithConfig(ctx, engineConfig().WithCompilationCache(cache))
	defer rt.Close(ctx)
	_, err = rt.CompileModule(experimental.WithCompilationWorkers(ctx, workers), code)
	return err
}
