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

// ChildCommand is the first argument of the process that compiles. A program that is started
// with it passes the other arguments to [CompileChild] and does nothing else. See RATIONALE,
// "Why is a module compiled in another process?"
const ChildCommand = "compile-child"

// Exit codes of a child. A Go program that crashes exits with 2.
const (
	childDone     = 0
	childRefused  = 65 // the compiler refuses the module; the reason is on stdout
	childTooLarge = 73 // the native code is larger than the limit of a file
	childFailed   = 74 // the child cannot do its work; the reason is on stdout
	childTooSlow  = 75 // out of processor time, on systems that only send a signal
)

// childJob holds the limits and the number of workers of a child.
type childJob struct {
	workers int           // goroutines that compile
	cpu     time.Duration // processor time of all threads together, a whole number of seconds
	memory  uint64        // bytes, in addition to what the program itself takes
	file    uint64        // bytes of each file that it writes
	wall    time.Duration // time after which the parent kills the child, see wallPerCPU
}

// Limits of a child; a child that exceeds one is ended, and the module is refused. The base is
// for the first MiB of the module. A module of the standard Go toolchain takes 0.7 s and 20 MiB
// for each MiB of code, so honest modules reach the limits only on a machine that is four times
// slower than a common one. A module that is made to compile slowly can be small, so it is
// ended soon.
const (
	cpuBase, cpuPerMiB, cpuMax          = 5 * time.Second, 3 * time.Second, 60 * time.Second
	memoryBase, memoryPerMiB, memoryMax = 1 << 30, 64 << 20, 4 << 30
	fileBase, filePerMiB                = 64 << 20, 16 << 20
)

// newChildJob returns the job for a module of this size, in bytes.
func newChildJob(bytes, workers int) childJob {
	over := max(bytes-1<<20, 0)
	perMiB := func(n int) uint64 { return uint64(over) * uint64(n) >> 20 }
	cpu := cpuBase + time.Duration(perMiB(int(cpuPerMiB.Milliseconds())))*time.Millisecond
	cpu = min(cpu.Round(time.Second), cpuMax) * raceFactor
	return childJob{
		workers: workers,
		cpu:     cpu,
		memory:  min(memoryBase+perMiB(memoryPerMiB), memoryMax) * raceFactor,
		file:    fileBase + perMiB(filePerMiB),
		wall:    wallPerCPU * cpu,
	}
}

// withLongTimeout returns the job with long time limits, for a module that is part of the
// program. No stranger wrote it, and under emulation honest code takes a hundred times as
// long. A child that hangs by our own fault still ends, after some days at the latest.
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

// MissingLimits names the limits on a child that this system lacks, for people; "": none.
func MissingLimits() string { return missingLimits }

// CompileChild is the main function of the child. It limits the process and compiles the
// module in the working directory, into the same directory. It returns the exit code.
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

// limit lowers the limits of this process to those of the job. The child must call it before
// it reads anything that a stranger wrote.
func (j childJob) limit() error {
	runtime.GOMAXPROCS(j.workers) // further processors would collect garbage, at the cost of the job's time
	debug.SetMemoryLimit(int64(min(j.memory/4*3, math.MaxInt64)))
	return j.limitProcess()
}

// compileInto compiles a module into a directory. Besides the interpreter, only this function
// compiles modules: in a child, or in this process if the module is as trusted as the program.
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
