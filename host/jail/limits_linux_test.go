package jail

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/jail/wire"
	"github.com/stockade-dev/stockade/host/policy"
)

// TestLimits also runs each command without the limit, to show that the limit stops it.
func TestLimits(t *testing.T) {
	if *tier < 1 {
		return // there are none
	}
	for name, c := range map[string]struct {
		command, says string
		limit         func(*wire.World)
		newRoot       bool
	}{
		// The helper has the limit, too, and its runtime begins with 75 MiB.
		"memory": {`head -c 170M /dev/zero | tail -c 160M | wc -c | grep -q 167772160`, "memory exhausted",
			func(w *wire.World) { w.Limits.Memory = 128 << 20 }, false},
		"the size of a file": {`head -c 2M /dev/zero > f`, "File size limit exceeded",
			func(w *wire.World) { w.Limits.FileSize = 1 << 20 }, false},
		"open files": {`{ for i in {20..120}; do eval "exec $i</dev/null" || exit 1; done; }`, "Bad file descriptor",
			func(w *wire.World) { w.Limits.Files = 64 }, false},
		"all that is temporary": {`for d in "$HOME" "$TMPDIR" /dev/shm; do head -c 400K /dev/zero > "$d/f" || exit 1; done`, "No space left on device",
			func(w *wire.World) { w.Scratch = 1 << 20 }, true},
	} {
		if c.newRoot && (*noRoot || *tier < 2) {
			continue // there it lies on a disk, and only the size of each file is limited
		}
		t.Run(name, func(t *testing.T) {
			for _, limited := range []bool{false, true} {
				opts, want := Options{}, "fine\n"
				if limited {
					opts, want = Options{change: c.limit}, ""
				}
				dir := t.TempDir()
				out := runAt(t, t.Context(), newJail(t, opts), dir, c.command+" && echo fine")
				if string(out.Stdout) != want || limited && !bytes.Contains(out.Stderr, []byte(c.says)) {
					t.Errorf("limited %v: %s", limited, describe(out))
				}
				if st, err := os.Stat(filepath.Join(dir, "f")); limited && err == nil && st.Size() > 1<<20 {
					t.Errorf("the file has %d bytes", st.Size())
				}
			}
		})
	}
}

// TestAForkBomb: its processes are limited, it ends, and meanwhile its user can start
// processes.
func TestAForkBomb(t *testing.T) {
	if *tier < 1 {
		return // nothing bounds it
	}
	namespaces := *tier > 1
	owners := []int{os.Getuid()}
	if os.Getuid() == 0 {
		owners = append(owners, 65534)
	}
	for _, owner := range owners {
		if owner == 0 && (*noRoot || !namespaces) {
			continue // the kernel bounds root by nothing but pid namespaces
		}
		t.Run(fmt.Sprint("as user ", owner), func(t *testing.T) {
			const limit, leastPIDs = 64, 301
			most := limit
			if owner == 0 {
				most = leastPIDs
			} else if !namespaces {
				var info unix.Sysinfo_t
				if err := unix.Sysinfo(&info); err != nil {
					t.Fatal(err)
				}
				most += int(info.Procs) + 100 // what others start meanwhile
			}
			dir, mark := t.TempDir(), newMark()
			for _, err := range []error{os.Chmod(filepath.Dir(dir), 0o755), os.Chown(dir, owner, -1)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			j := newJail(t, Options{change: func(w *wire.World) { w.Limits.Processes = limit }})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer cancel()
				peak, before := 0, -1
				for begin := time.Now(); ; { // until it grows no more
					now := len(marked(t, mark))
					peak = max(peak, now)
					if now > 10 && now <= before || time.Since(begin) > 10*time.Second {
						break
					}
					before = now
				}
				for range 20 {
					if err := exec.Command("true").Run(); err != nil {
						t.Errorf("outside of it: %v", err)
					}
					peak = max(peak, len(marked(t, mark)))
				}
				if peak < 10 || peak > most {
					t.Errorf("there were %d processes, want up to %d", peak, most)
				}
			}()
			runAt(t, ctx, j, dir, strings.ReplaceAll("f() { f & f & sleep MARK; }; f", "MARK", mark))
			<-done
			gone(t, mark)
		})
	}
}

func TestAFloodEndsAtTheDeadline(t *testing.T) {
	limits := policy.Limits{ExecTimeout: time.Second, ExecTimeoutMax: time.Second, ExecOutputBytes: 1000}
	if out := run(t, t.TempDir(), "yes & yes >&2 & cat /dev/zero", limits); !out.TimedOut || !out.Truncated || len(out.Stdout)+len(out.Stderr) > 2200 {
		t.Errorf("got %s", describe(out))
	}
}

func TestCommandsGoFirstWhenMemoryRunsOut(t *testing.T) {
	needHelper(t)
	if *tier < 1 {
		return
	}
	dir, mark := t.TempDir(), newMark()
	if err := unix.Mkfifo(filepath.Join(dir, "ready"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		ready(t, dir, 0)
		seen := 0
		for pid := range marked(t, mark) {
			score, _ := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
			if seen++; string(score) != "500\n" {
				t.Errorf("the score is %q", score)
			}
		}
		if seen == 0 {
			t.Error("no process is seen")
		}
	}()
	runAt(t, ctx, testJail(t), dir, "sleep "+mark+" &"+sayReady)
}
