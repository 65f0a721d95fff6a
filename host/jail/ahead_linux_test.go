package jail

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/jail/wire"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/stage"
)

// next waits for the spare helper of a jail and returns it.
func next(j *Jail) *spareHelper {
	j.background.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.spare
}

func TestTheHelperThatWaits(t *testing.T) {
	needHelper(t)
	if *tier < 1 {
		return // there is none
	}
	// A world has a mount namespace of its own, or a supervisor.
	world := func(h *helper) string { return strconv.Itoa(h.cmd.Process.Pid) }
	script := "echo $PPID"
	if *tier > 1 {
		world = func(h *helper) string {
			file := fmt.Sprintf("/proc/%d/ns/mnt", h.cmd.Process.Pid)
			held, err := os.Open(file) // its name will not be another's
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { held.Close() })
			name, err := os.Readlink(file)
			if err != nil {
				t.Fatal(err)
			}
			return name
		}
		script = "readlink /proc/$$/ns/mnt"
	}
	where := func(t *testing.T, j *Jail, dir string) string {
		out := runAt(t, t.Context(), j, dir, "touch mark; "+script)
		ended(t, out, 0)
		if _, err := os.Stat(filepath.Join(dir, "mark")); err != nil {
			t.Error(err)
		}
		return strings.TrimSpace(string(out.Stdout))
	}
	for name, c := range map[string]struct {
		then func(t *testing.T, j *Jail, dir string) string // after the first command; where the second ran
		used bool
	}{
		"is used by the next command": {where, true},
		"is not used by another plan": {func(t *testing.T, j *Jail, _ string) string { return where(t, j, t.TempDir()) }, false},
		"is not used where a directory is another one": {func(t *testing.T, j *Jail, dir string) string {
			if err := os.Rename(dir, dir+".old"); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			ran := where(t, j, dir)
			if _, err := os.Stat(filepath.Join(dir+".old", "mark")); err == nil {
				t.Error("it ran in what the name led to before")
			}
			return ran
		}, false},
		"is not used where something was mounted since": {func(t *testing.T, j *Jail, dir string) string {
			sub := filepath.Join(dir, "sub")
			if err := os.Mkdir(sub, 0o755); err != nil {
				t.Fatal(err)
			}
			if os.Getuid() != 0 {
				return "" // who cannot mount
			}
			if err := unix.Mount("test", sub, "tmpfs", 0, ""); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Unmount(sub, unix.MNT_DETACH) })
			return where(t, j, dir)
		}, false},
		"ends when it was not used": {func(t *testing.T, j *Jail, _ string) string {
			n := next(j)
			n.timer.Reset(0)
			<-n.helper.exited
			if next(j) != nil {
				t.Error("it is still kept")
			}
			return ""
		}, false},
		"ends with the jail": {func(t *testing.T, j *Jail, _ string) string {
			if err := j.Close(); err != nil {
				t.Error(err)
			}
			return ""
		}, false},
		"removes its directories when this program cannot": {func(t *testing.T, j *Jail, _ string) string {
			h := next(j).helper
			h.cleanups = nil
			if !h.world.NewRoot {
				files(t, h.world.Home, map[string]string{"read-only/file": ""})
				if err := os.Chmod(filepath.Join(h.world.Home, "read-only"), 0o555); err != nil {
					t.Fatal(err)
				}
			}
			h.kill()
			if home := filepath.Dir(h.world.Home); !h.world.NewRoot {
				if _, err := os.Stat(home); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s is there: %v", home, err)
				}
			}
			return ""
		}, false},
		"is replaced when what waits inside was killed": {func(t *testing.T, j *Jail, dir string) string {
			h := next(j).helper
			for *tier == 1 && h.alive() { // it starts when the helper is ready
				tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", h.cmd.Process.Pid))
				for _, task := range tasks {
					text, _ := os.ReadFile(task)
					if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
						_ = unix.Kill(pid, unix.SIGKILL)
					}
				}
			}
			return where(t, j, dir)
		}, *tier > 1},
		"is replaced when it was killed": {func(t *testing.T, j *Jail, dir string) string {
			h := next(j).helper
			_ = h.cmd.Process.Kill()
			<-h.exited
			return where(t, j, dir)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			j, dir := newJail(t, Options{}), t.TempDir()
			ended(t, runAt(t, t.Context(), j, dir, "true"), 0)
			n := next(j)
			if n == nil {
				t.Fatal("none waits")
			}
			waited := world(n.helper)
			if ran := c.then(t, j, dir); (ran == waited) != c.used {
				t.Errorf("it is %s, and the command ran in %s", waited, ran)
			}
			<-n.helper.exited
		})
	}
}

// A call does not wait for a starting helper beyond its own deadline.
func TestTheDeadlineOfWhoWaitsForAHelper(t *testing.T) {
	if *tier < 1 {
		return
	}
	j, dir := newJail(t, Options{}), t.TempDir()
	ended(t, runAt(t, t.Context(), j, dir, "true"), 0)
	next(j)
	j.startSem <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // more than it needs to get there
	defer cancel()
	if out := runAt(t, ctx, j, dir, "touch mark"); !out.TimedOut {
		t.Errorf("it ended: %s", describe(out))
	}
}

// No file that waits for a command is in a directory that another command can change.
func TestDirectoriesOfACommandAreInNoMount(t *testing.T) {
	if *tier < 1 {
		return // it waits for none
	}
	j, dir := newJail(t, Options{}), t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, tmp := range []string{dir, link, "/nonexistent", "relative"} {
		t.Setenv("TMPDIR", tmp)
		out := runAt(t, t.Context(), j, dir, "ls -A")
		ended(t, out, 0)
		if len(out.Stdout) > 0 {
			t.Errorf("with TMPDIR=%s there is %s", tmp, out.Stdout)
		}
	}
}

// A program without open files gets the lowest descriptors, some of which a helper needs for
// itself.
func TestWithoutOpenDescriptors(t *testing.T) {
	c := exec.Command("/proc/self/exe", "-test.run=^TestTheHelperThatWaits$/is_used", "-tier="+strconv.Itoa(*tier), fmt.Sprintf("-no-root=%v", *noRoot))
	c.Env = append(os.Environ(), "GODEBUG=containermaxprocs=0,updatemaxprocs=0") // Go's own
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestAHelperThatCannotWait: if no helper can be started ahead, no call is affected. The next
// command reports the error.
func TestAHelperThatCannotWait(t *testing.T) {
	if *tier < 1 {
		return
	}
	dir, other := t.TempDir(), t.TempDir()
	for _, name := range []string{"ready", "go"} {
		if err := unix.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	j := newJail(t, Options{change: func(w *wire.World) { w.Binds = append(w.Binds, wire.Bind{Path: other}) }})
	go func() {
		ready(t, dir, 0)
		if err := os.Remove(other); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "go"), []byte("x\n"), 0); err != nil {
			t.Error(err)
		}
	}()
	ended(t, runAt(t, t.Context(), j, dir, "echo x > ready; read -r < go"), 0)
	if h := next(j); h != nil && !*noRoot && *tier > 1 { // with a root, what it shows is mounted by then
		t.Error("one waits")
	}
	refused(t, j, grantFor(t, dir, "touch mark", policy.Limits{}), dir, "touch mark", other)
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	ended(t, runAt(t, t.Context(), j, dir, "true"), 0)
}

// TestNothingIsLeftOfManyCommands runs commands one after the other, and two at once.
func TestNothingIsLeftOfManyCommands(t *testing.T) {
	open := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	j, dir := newJail(t, Options{}), t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	if err := testJail(t).Close(); err != nil { // which the grants below use
		t.Fatal(err)
	}
	many := func(rounds int) {
		for range rounds {
			var both sync.WaitGroup
			for range 2 {
				g := grantFor(t, dir, "exit 5", policy.Limits{})
				both.Go(func() {
					if out, err := j.Run(t.Context(), g, bash(dir, "exit 5")); err != nil || out.Code == nil || *out.Code != 5 {
						t.Errorf("%s, %v", describe(out), err)
					}
				})
			}
			both.Wait()
			ended(t, runAt(t, t.Context(), j, dir, "exit 6"), 6)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	many(1)
	files, goroutines := open(), runtime.NumGoroutine()
	many(17)
	if now := open(); now != files {
		t.Errorf("there were %d open files, and are %d", files, now)
	}
	begin := time.Now()
	for runtime.NumGoroutine() > goroutines { // some are about to end
		if time.Since(begin) > 10*time.Second {
			t.Fatalf("there were %d goroutines, and are %d", goroutines, runtime.NumGoroutine())
		}
		runtime.Gosched()
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 0 {
		t.Errorf("temporary files: %v, %v", left, err)
	}
}

// A helper that was started while another directory had a name of its plan does not run
// commands for the present directory.
func TestAHelperOfAnotherDirectory(t *testing.T) {
	if *tier < 2 || *noRoot {
		return
	}
	j, dir := newJail(t, Options{}), filepath.Join(t.TempDir(), "w")
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(dir, 0o755))
	_, k := j.tiers()
	p, err := j.plan(k, policy.Exec{Mounts: []policy.Mount{{Host: dir, Write: true}}}, dir)
	must(err)
	for _, swapped := range []bool{false, true} {
		if swapped {
			must(os.Rename(dir, dir+".old"))
			must(os.Mkdir(dir, 0o755))
		}
		h, err := p.start(t.Context())
		must(err)
		if swapped {
			must(os.Remove(dir))
			must(os.Rename(dir+".old", dir))
		}
		n := &spareHelper{plan: p, helper: h}
		if n.fits(p) == swapped {
			t.Errorf("swapped %t: it fits", swapped)
		}
		h.kill()
	}
	// Nor does one whose layer is like a directory that has another mode by now.
	p.area = stage.NewArea(t.TempDir(), t.Errorf)
	defer func() { must(p.area.Close()) }()
	h, err := p.start(t.Context())
	must(err)
	defer h.kill()
	n := &spareHelper{plan: p, helper: h}
	before := n.fits(p)
	must(os.Chmod(dir, 0o700))
	if after := n.fits(p); !before || after {
		t.Errorf("it fits: %t, and with another mode: %t", before, after)
	}
}
