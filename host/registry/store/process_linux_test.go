package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/tool"
)

var kills = flag.Int("kills", 20, "how many processes are killed while they change a store")

// childEnv is the variable with the name of the child that the test binary runs as.
const childEnv = "STOCKADE_STORE_TEST_CHILD"

// children are the functions of child processes, which work on a store.
var children = map[string]func(s *Store, arg string) error{
	"endless": childEndless,
	"twenty":  childTwenty,
	"full":    childFull,
}

func TestMain(m *testing.M) {
	name := os.Getenv(childEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := children[name](Open(os.Args[1]), os.Args[2]); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

// child prepares a child process; it is killed when the test ends.
func child(t *testing.T, name string, s *Store, arg string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0], s.dir, arg)
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	cmd.Stderr = os.Stderr
	return cmd
}

// The changes of the endless child are numbered from 1. Each adds or updates one
// of three modules; each fifth removes one instead.
func step(n int) (name, version string, removes bool) {
	return fmt.Sprint("m", n%3), strconv.Itoa(n), n%5 == 0
}

// after returns a summary of the store after a change.
func after(n int) string {
	state := map[string]string{}
	for i := max(1, n-10); i <= n; i++ {
		name, version, removes := step(i)
		if state[name] = name + " " + version; removes {
			delete(state, name)
		}
	}
	var out []string
	for _, entry := range state {
		out = append(out, entry)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// padded is a sample whose module has a size at which a write takes a while.
func padded(name, version string) ([]byte, Record) {
	code, r := sample(name, version)
	code = append(code, make([]byte, 200_000)...)
	r.Digest, r.Bytes = tool.SHA256(code), int64(len(code))
	return code, r
}

func childEndless(s *Store, arg string) error {
	fmt.Println("begin")
	last, err := strconv.Atoi(arg)
	if err != nil {
		return err
	}
	for n := last + 1; ; n++ {
		name, version, removes := step(n)
		code, added := padded(name, version)
		err := s.Change([][]byte{code}, func(all []Record) ([]Record, error) {
			all = slices.DeleteFunc(all, func(r Record) bool { return r.Name == name })
			if !removes {
				all = append(all, added)
			}
			return all, nil
		})
		if err != nil {
			return err
		}
		if _, err := os.Stdout.WriteString(fmt.Sprintln("done", n)); err != nil {
			return err
		}
		if n%4 == 0 {
			if err := s.Sweep(); err != nil {
				return err
			}
		}
	}
}

// TestKilledProcessesLeaveTheOldStateOrTheNewOne kills at all moments of adding,
// updating, removing and sweeping.
func TestKilledProcessesLeaveTheOldStateOrTheNewOne(t *testing.T) {
	s := Open(t.TempDir())
	must(t, os.Chmod(s.dir, 0o700))
	last, unfinished := 0, 0
	for range *kills {
		cmd := child(t, "endless", s, strconv.Itoa(last))
		pipe, err := cmd.StdoutPipe()
		must(t, err, cmd.Start())
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			if lines.Text() == "begin" {
				time.AfterFunc(time.Duration(rand.IntN(30_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
				continue
			}
			n, err := strconv.Atoi(strings.TrimPrefix(lines.Text(), "done "))
			if err != nil || n != last+1 {
				t.Fatalf("after change %d the child says %q", last, lines.Text())
			}
			last = n
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != -1 {
			t.Fatalf("it ended by itself: %v", err)
		}
		var now []string
		for _, r := range records(t, s) {
			now = append(now, r.Name+" "+r.Manifest.Version)
		}
		switch state := strings.Join(now, ", "); state {
		case after(last):
		case after(last + 1): // it was killed before it could say so
			last++
		default:
			t.Fatalf("after change %d, or the next one, there is %q; want %q or %q", last, state, after(last), after(last+1))
		}
		for _, f := range s.Verify() {
			if !f.Unneeded {
				t.Fatalf("after change %d: %+v", last, f)
			}
			unfinished++
		}
		if rand.IntN(2) == 0 { // else the next one finds what was left
			must(t, s.Sweep())
			if found := s.Verify(); found != nil {
				t.Fatalf("after a sweep: %v", found)
			}
		}
	}
	t.Logf("%d changes, %d files that nothing named", last, unfinished)
}

func childTwenty(s *Store, prefix string) error {
	for i := range 20 {
		if err := add(s, "1.0.0", fmt.Sprint(prefix, i)); err != nil {
			return err
		}
	}
	return nil
}

func TestProcessesThatAddAtTheSameTimeLoseNothing(t *testing.T) {
	s := Open(t.TempDir() + "/modules")
	failed := make(chan error)
	var running atomic.Int32
	for _, prefix := range []string{"a", "b"} {
		running.Add(1)
		cmd := child(t, "twenty", s, prefix)
		go func() {
			out, err := cmd.Output()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			running.Add(-1)
			failed <- err
		}()
	}
	for running.Load() > 0 { // a sweep must not take what one of them is about to name
		must(t, s.Sweep())
	}
	must(t, <-failed, <-failed)
	if n := len(records(t, s)); n != 40 {
		t.Errorf("there are %d", n)
	}
	if found := s.Verify(); found != nil {
		t.Errorf("found %v", found)
	}
}

// childFull adds what does not fit: a module, and then a record.
func childFull(s *Store, _ string) error {
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 20_000, Max: 20_000}); err != nil {
		return err
	}
	large, record := padded("large", "1")
	if err := s.Change([][]byte{large}, func(all []Record) ([]Record, error) { return append(all, record), nil }); !errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("a module that does not fit: %w", err)
	}
	code, record := sample("wordy", "1")
	record.Evidence = json.RawMessage(`"` + strings.Repeat("x", 30_000) + `"`)
	if err := s.Change([][]byte{code}, func(all []Record) ([]Record, error) { return append(all, record), nil }); !errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("a record that does not fit: %w", err)
	}
	return nil
}

func TestAFullDiskLeavesTheOldState(t *testing.T) {
	s := filled(t)
	before, err := os.ReadFile(s.indexPath())
	must(t, err)
	if out, err := child(t, "full", s, "").Output(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if now, err := os.ReadFile(s.indexPath()); err != nil || !bytes.Equal(before, now) {
		t.Errorf("the index was changed: %v", err)
	}
	for _, f := range s.Verify() {
		if !f.Unneeded {
			t.Errorf("found %+v", f)
		}
	}
	must(t, s.Sweep())
	if found := s.Verify(); found != nil {
		t.Errorf("after a sweep: %v", found)
	}
}

func TestAPipeInTheIndexesPlaceIsNotWaitedFor(t *testing.T) {
	s := filled(t)
	must(t, os.Remove(s.indexPath()), syscall.Mkfifo(s.indexPath(), 0o600))
	if _, err := s.Records(); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got %v", err)
	}
}
