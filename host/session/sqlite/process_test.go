//go:build cgo && unix

package sqlite

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/session/sessiontest"
)

// childEnv names the child that the test binary runs instead of the tests.
const childEnv = "STOCKADE_SQLITE_TEST_CHILD"

// children holds the functions of child processes for the store at path. The parent test
// reads their output.
var children = map[string]func(path string) error{
	"endless": childEndless,
	"fifty":   childFifty,
	"full":    childFull,
}

func TestMain(m *testing.M) {
	name := os.Getenv(childEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := children[name](os.Args[1]); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

// child prepares a child process; it is killed when the test ends.
func child(t *testing.T, name, path string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0], path)
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	cmd.Stderr = os.Stderr
	return cmd
}

// childAppend appends drafts and prints each acknowledged event.
func childAppend(store *Store, drafts ...session.Draft) error {
	events, err := store.Append(context.Background(), drafts...)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "event %d %x\n", e.Seq, e.Hash)
	}
	_, err = os.Stdout.WriteString(b.String()) // in one piece
	return err
}

// childEndless appends from four goroutines until it is killed.
func childEndless(path string) error {
	fmt.Println("begin")
	store, err := Open(context.Background(), path)
	if err != nil {
		return err
	}
	failed := make(chan error)
	for w := range 4 {
		go func() {
			id := fmt.Sprint("s", w)
			for {
				drafts := sessiontest.Drafts(id, 1+rand.IntN(3))
				if rand.IntN(8) == 0 { // larger than a page
					drafts[0].Body = json.RawMessage(`"` + strings.Repeat("x", rand.IntN(30_000)) + `"`)
				}
				if err := childAppend(store, drafts...); err != nil {
					failed <- err
				}
			}
		}()
	}
	return <-failed
}

// acknowledged reads the output of a child to its end. It calls seen with the number of
// lines after each line.
func acknowledged(t *testing.T, out io.Reader, seen func(lines int)) map[uint64]string {
	t.Helper()
	events := map[uint64]string{}
	lines := 0
	for r := bufio.NewReader(out); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return events // an unfinished line acknowledges nothing
		}
		lines++
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "event "); ok {
			seq, hash, _ := strings.Cut(rest, " ")
			n, err := strconv.ParseUint(seq, 10, 64)
			if err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			if _, twice := events[n]; twice {
				t.Errorf("event %d was acknowledged twice", n)
			}
			events[n] = hash
		} else if line != "begin" {
			t.Errorf("a child says %q", line)
		}
		seen(lines)
	}
}

// checkAfterCrash verifies the store, and checks that it has the acknowledged events.
func checkAfterCrash(t *testing.T, path string, want map[uint64]string) {
	t.Helper()
	before := folder(t, path)
	v, err := Verify(t.Context(), path, "")
	if _, unborn := errors.AsType[*OpenError](err); err != nil && (!unborn || len(want) > 0) || v.Problems != nil || v.Events < uint64(len(want)) {
		t.Errorf("verify: %d events, %v, %q", v.Events, err, v.Problems)
	}
	if diff := cmp.Diff(before, folder(t, path)); diff != "" {
		t.Errorf("verifying changed the files: %s", diff)
	}
	checkIntegrity(t, path)
	store, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	found := 0
	report, err := session.VerifyStore(func(yield func(session.Event, error) bool) {
		for e, err := range store.All(t.Context()) {
			if hash, ok := want[e.Seq]; ok && hash == fmt.Sprintf("%x", e.Hash) {
				found++
			}
			if !yield(e, err) {
				return
			}
		}
	})
	if err != nil {
		t.Fatalf("verify: %v", err) // this also finds gaps
	}
	if found != len(want) {
		t.Fatalf("%d of %d acknowledged events are in the store of %d", found, len(want), report.Events)
	}
}

func TestKilledWhileAppending(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	want := map[uint64]string{}
	for round := range 40 {
		if round%8 == 0 { // a new file: also creating it may be interrupted
			path = filepath.Join(t.TempDir(), "sessions.db")
			clear(want)
		}
		cmd := child(t, "endless", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// From the first line on, which comes before the store is opened.
		killAt := 1
		if round%4 != 0 {
			killAt += rand.IntN(400) // enough for the log to be written back now and then
		}
		events := acknowledged(t, out, func(lines int) {
			if lines == killAt {
				// At any point of a transaction, not only after its end.
				time.AfterFunc(rand.N(4*time.Millisecond), func() { cmd.Process.Kill() })
			}
		})
		if err := cmd.Wait(); cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("the child has ended by itself: %v", err)
		}
		for seq, hash := range events {
			if _, twice := want[seq]; twice {
				t.Fatalf("event %d was acknowledged in two rounds", seq)
			}
			want[seq] = hash
		}
		checkAfterCrash(t, path, want)
	}
}

// childFifty appends fifty times from two goroutines.
func childFifty(path string) error {
	store, err := Open(context.Background(), path)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for w := range errs {
		wg.Go(func() {
			for range 25 {
				// One session of this process, and one that all processes share.
				drafts := append(sessiontest.Drafts(fmt.Sprint("p", os.Getpid()), 1), sessiontest.Drafts("shared", 1)...)
				if errs[w] = childAppend(store, drafts...); errs[w] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, err := range append(errs, store.Close()) {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestManyProcessesAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db") // which they also create
	const processes = 6
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		want = map[uint64]string{}
	)
	for range processes {
		cmd := child(t, "fifty", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			events := acknowledged(t, out, func(int) {})
			if err := cmd.Wait(); err != nil {
				t.Errorf("child: %v", err)
			}
			if len(events) != 100 {
				t.Errorf("a child has %d events acknowledged, want 100", len(events))
			}
			mu.Lock()
			defer mu.Unlock()
			for seq, hash := range events {
				if _, twice := want[seq]; twice {
					t.Errorf("event %d was acknowledged to two processes", seq)
				}
				want[seq] = hash
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for verified, running := uint64(0), true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		v, err := Verify(t.Context(), path, "")
		if _, unborn := errors.AsType[*OpenError](err); unborn && verified == 0 {
			continue
		}
		if err != nil || v.Problems != nil || v.Events < verified {
			t.Errorf("verify while others append: %d events, after %d before, %v, %q", v.Events, verified, err, v.Problems)
		}
		verified = v.Events
	}
	checkAfterCrash(t, path, want)
	sessiontest.Verify(t, openAt(t, path), processes*100)
}

// childFull limits the size of files, appends until that fails, and continues when the
// limit is lifted.
func childFull(path string) error {
	signal.Ignore(syscall.SIGXFSZ) // as a full disk: an error, no signal
	ctx := context.Background()
	store, err := Open(ctx, path)
	if err != nil {
		return err
	}
	body := json.RawMessage(`"` + strings.Repeat("x", 5000) + `"`)
	d := session.Draft{Session: "a", Type: session.TypeMessage, Body: body}
	written := uint64(0)
	count := func(when string) error {
		report, err := session.VerifyStore(store.All(ctx))
		if err != nil {
			return fmt.Errorf("verify %s: %w", when, err)
		}
		if report.Events != written {
			return fmt.Errorf("%s there are %d events, want %d", when, report.Events, written)
		}
		return nil
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	for round := range 3 {
		info, err := os.Stat(path + "-wal")
		if err != nil {
			return err
		}
		small := limit
		small.Cur = uint64(info.Size()) + 100_000 + uint64(rand.IntN(10_000))
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
			return err
		}
		failures := 0
		for failures < 3 {
			if _, err := store.Append(ctx, d); err != nil {
				failures++
			} else if written++; written > 1000 {
				return fmt.Errorf("round %d: no append fails", round)
			}
		}
		if err := count("while full"); err != nil {
			return err
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		for range 3 {
			if _, err := store.Append(ctx, d); err != nil {
				return fmt.Errorf("append with room again: %w", err)
			}
			written++
		}
		if err := count("with room again"); err != nil {
			return err
		}
	}
	fmt.Println("written", written)
	return store.Close()
}

func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	out, err := child(t, "full", path).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var written int
	if _, err := fmt.Sscanf(string(out), "written %d", &written); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	checkIntegrity(t, path)
	sessiontest.Verify(t, openAt(t, path), written)
}
