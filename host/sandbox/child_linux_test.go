package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/services"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// TestBombsAreStopped: modules that are made to compile slowly or to large code are killed
// within their limits. Meanwhile this process does next to nothing, and other modules are
// compiled and run.
func TestBombsAreStopped(t *testing.T) {
	const memory = 512 << 20
	for _, c := range []struct {
		name string
		code []byte
		cpu  time.Duration
		says string
	}{
		{"2000 nested loops with 2000 locals", nestedLoops(2000), time.Second, "1s of processor time"},
		{"10 functions of a MiB of loads", loads(10), 30 * time.Second, "512 MiB of memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			started := make(chan struct{})
			var end services.CommandResult
			box := newBox(t, sandbox.Options{Spawn: func(ctx context.Context, dir string, args ...string) (_ services.CommandResult, err error) {
				close(started)
				end, err = jail.RunHelper(ctx, dir, args...)
				return end, err
			}})
			sandbox.SetLimits(box, c.cpu, memory, 0)
			before := resources(t)
			ended := make(chan error)
			go func() { ended <- sandbox.Build(t.Context(), box, module(c.code), c.code) }()
			<-started
			idle := resources(t).cpu - before.cpu

			others := newBox(t, sandbox.Options{})
			for i := range 3 {
				answer := strconv.Itoa(i)
				if got := output(t, granted(t, probe(w.ToolOptions{Call: w.ReturnOK(answer)}), ask{}).mustRun(t, others)); got != answer {
					t.Errorf("another module answers %q", got)
				}
			}
			between := resources(t)
			select {
			case err := <-ended:
				t.Fatalf("the bomb ended before other modules had been run: %v", err)
			default:
			}
			err := <-ended
			if why := refused(t, err).Why; !strings.Contains(why, c.says) || !strings.Contains(why, strconv.Itoa(len(c.code))+" bytes") {
				t.Errorf("it does not say %q: %s (%s)", c.says, why, end.CPU)
			}
			if end.CPU > c.cpu+time.Second {
				t.Errorf("it took %s of processor time", end.CPU)
			}
			after := resources(t)
			if took := idle + after.cpu - between.cpu; took > time.Second {
				t.Errorf("this process took %s of processor time", took)
			}
			if grown := after.peak - before.peak; grown > 200<<20 {
				t.Errorf("this process grew by %d MiB", grown>>20)
			}
			if after.largestChild > max(before.largestChild, memory+memory/4) { // the maximum of all children so far
				t.Errorf("the largest child had %d MiB", after.largestChild>>20)
			}
		})
	}
}

type taken struct {
	cpu          time.Duration
	peak         int
	largestChild int
}

func resources(t *testing.T) taken {
	t.Helper()
	var own, children unix.Rusage
	if err := errors.Join(unix.Getrusage(unix.RUSAGE_SELF, &own), unix.Getrusage(unix.RUSAGE_CHILDREN, &children)); err != nil {
		t.Fatal(err)
	}
	return taken{
		time.Duration(own.Utime.Nano() + own.Stime.Nano()),
		int(own.Maxrss) << 10, int(children.Maxrss) << 10,
	}
}

// TestEveryLimitHolds tests each limit separately, with its own message.
func TestEveryLimitHolds(t *testing.T) {
	for name, c := range map[string]struct {
		code   []byte
		cpu    time.Duration
		memory uint64
		file   uint64
		says   string
	}{
		"processor time": {branches(50_000), time.Second, 0, 0, "limit of 1s of processor time"},
		"memory":         {loads(2), 0, 128 << 20, 0, "limit of 128 MiB of memory"},
		"a file":         {loads(1), 0, 0, 1 << 20, "limit of 1 MiB of native code"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tmp := t.TempDir()
			box := newBox(t, sandbox.Options{CacheDir: tmp})
			sandbox.SetLimits(box, c.cpu, c.memory, c.file)
			err := sandbox.Build(t.Context(), box, module(c.code), c.code)
			if why := refused(t, err).Why; !strings.Contains(why, c.says) {
				t.Errorf("it does not say %q: %s", c.says, why)
			}
		})
	}
	t.Run("and lets a module through that needs no more", func(t *testing.T) {
		small := branches(500)
		if err := sandbox.Build(t.Context(), newBox(t, sandbox.Options{}), module(small), small); err != nil {
			t.Error(err)
		}
	})
	t.Run("the clock", func(t *testing.T) {
		bomb := branches(50_000)
		box := newBox(t, sandbox.Options{Spawn: func(ctx context.Context, dir string, args ...string) (services.CommandResult, error) {
			ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			defer cancel()
			return jail.RunHelper(ctx, dir, args...)
		}})
		// Spawn's own end of patience is not the limit of the sandbox.
		if why := refused(t, sandbox.Build(t.Context(), box, module(bomb), bomb)).Why; !strings.Contains(why, "signal 9") {
			t.Error(why)
		}
		sandbox.SetWall(box, 100*time.Millisecond)
		if why := refused(t, sandbox.Build(t.Context(), box, module(bomb), bomb)).Why; !strings.Contains(why, "try again") {
			t.Error(why)
		}
	})
}

// TestACancelledCompilationIsKilled: it ends at once, the call reports the cancellation, and
// no process is left.
func TestACancelledCompilationIsKilled(t *testing.T) {
	bomb := branches(50_000)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	var end services.CommandResult
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	box := newBox(t, sandbox.Options{Spawn: func(ctx context.Context, dir string, args ...string) (_ services.CommandResult, err error) {
		cancelWhenItWorks(t, dir, func() { cancel(enough) })
		end, err = jail.RunHelper(ctx, dir, args...)
		return end, err
	}})
	if err := sandbox.Build(ctx, box, module(bomb), bomb); !errors.Is(err, enough) {
		t.Errorf("Build says %v", err)
	}
	if end.Signal == nil || *end.Signal != int(syscall.SIGKILL) || end.CPU > 2*time.Second {
		t.Errorf("the child ended with signal %v after %s", end.Signal, end.CPU)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// cancelWhenItWorks calls f when a child starts to write to its directory.
func cancelWhenItWorks(t *testing.T, dir string, f func()) {
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err == nil {
		_, err = unix.InotifyAddWatch(watch, dir, unix.IN_CREATE) // the engine's directory
	}
	if err != nil {
		t.Error(err)
	}
	go func() {
		defer unix.Close(watch)
		_, _ = unix.Read(watch, make([]byte, 4096))
		f()
	}()
}

// parentEnv makes this test binary a program that compiles a bomb.
const parentEnv = "STOCKADE_TEST_PARENT"

// TestAChildEndsWithItsParent, also when the parent is killed and can do
// nothing about it.
func TestAChildEndsWithItsParent(t *testing.T) {
	if os.Getenv(parentEnv) != "" {
		bomb := branches(50_000)
		box := newBox(t, sandbox.Options{})
		sandbox.SetLimits(box, time.Hour, 0, 0)
		t.Error(sandbox.Build(t.Context(), box, module(bomb), bomb))
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), parentEnv+"=1", "TMPDIR="+t.TempDir())
	must(t, cmd.Start())
	kill := sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	defer kill()
	child := childOf(t, cmd.Process.Pid)
	fd, err := unix.PidfdOpen(child, 0)
	must(t, err)
	defer unix.Close(fd)
	ends := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if n, err := unix.Poll(ends, 0); err != nil || n != 0 {
		t.Fatalf("the child has ended by itself: %d, %v", n, err)
	}
	kill()
	if n, err := unix.Poll(ends, 10_000); err != nil || n != 1 {
		t.Errorf("the child lives on: %d, %v", n, err)
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

// childOf waits for a process to have a child that compiles.
func childOf(t *testing.T, parent int) int {
	t.Helper()
	for t.Context().Err() == nil {
		tasks, err := filepath.Glob("/proc/" + strconv.Itoa(parent) + "/task/*/children")
		must(t, err)
		if len(tasks) == 0 {
			t.Fatal("the program has ended, or this system does not list children")
		}
		for _, task := range tasks {
			pids, _ := os.ReadFile(task)
			for _, field := range strings.Fields(string(pids)) {
				args, _ := os.ReadFile("/proc/" + field + "/cmdline")
				if bytes.Contains(args, []byte("\x00"+sandbox.ChildCommand+"\x00")) {
					pid, err := strconv.Atoi(field)
					must(t, err)
					return pid
				}
			}
		}
	}
	t.Fatal("there is no child")
	return 0
}

// TestAChildGetsNothingOfOurs: no environment, no open file, no input.
func TestAChildGetsNothingOfOurs(t *testing.T) {
	t.Setenv("STOCKADE_TEST_SECRET", "secret")
	bomb := branches(50_000)
	type found struct{ env, fds, dir string }
	var child found
	ctx, cancel := context.WithCancel(t.Context())
	var made string
	box := newBox(t, sandbox.Options{Spawn: func(ctx context.Context, dir string, args ...string) (services.CommandResult, error) {
		made = dir
		cancelWhenItWorks(t, dir, func() {
			defer cancel()
			proc := "/proc/" + strconv.Itoa(childOf(t, os.Getpid()))
			env, _ := os.ReadFile(proc + "/environ")
			child.env = string(env)
			fds, _ := filepath.Glob(proc + "/fd/*")
			for _, fd := range fds {
				to, _ := os.Readlink(fd)
				child.fds += strings.TrimRight(to, "[]:0123456789") + " "
			}
			child.dir, _ = os.Readlink(proc + "/cwd")
		})
		return jail.RunHelper(ctx, dir, args...)
	}})
	_ = sandbox.Build(ctx, box, module(bomb), bomb)
	if child.env != "STOCKADE_HELPER=1\x00" {
		t.Errorf("its environment is %q", child.env)
	}
	if child.dir != made {
		t.Errorf("its directory is %s, not %s", child.dir, made)
	}
	for fd := range strings.FieldsSeq(child.fds) {
		its := strings.HasPrefix(fd, "anon_inode") || strings.HasPrefix(fd, "/sys/fs/cgroup/") // Go's own
		if fd != "/dev/null" && fd != "pipe" && !its {
			t.Errorf("it has open: %s", child.fds)
		}
	}
}

// TestAModuleOfTheGoToolchain has the room that it needs also where everything
// is slower.
func TestAModuleOfTheGoToolchain(t *testing.T) {
	bytes, err := tck()
	must(t, err)
	var end services.CommandResult
	box := newBox(t, sandbox.Options{Spawn: func(ctx context.Context, dir string, args ...string) (_ services.CommandResult, err error) {
		end, err = jail.RunHelper(ctx, dir, args...)
		return end, err
	}})
	must(t, sandbox.Load(box, module(bytes)))
	cpu, memory, _ := sandbox.Limits(len(bytes))
	t.Logf("%d bytes: %s of %s, at most %d MiB of %d", len(bytes), end.CPU, cpu, resources(t).largestChild>>20, memory>>20)
	if end.CPU > cpu/2*sandbox.Slow {
		t.Errorf("it took %s of %s", end.CPU, cpu)
	}
}
