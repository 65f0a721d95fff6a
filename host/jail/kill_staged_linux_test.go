package jail

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/stage"
)

// nextVersion changes a workspace in all the ways there are. What tells one version
// from another is its number, and a mode.
const nextVersion = `
o=$(<version) i=${o//[!0-9]}; n=v$((i+1)).
echo $n >version
for f in f{0..9}; do echo $n >$f; done
rm -r d-$o x-$o*; mkdir -p d-$n/sub; for f in {0..9}; do echo $n >d-$n/sub/$f; echo $n >x-$n$f; done
rm -r over; mkdir over; echo $n >over/$n
rm -r turns; if (( i%2 )); then mkdir turns; echo $n >turns/x; else echo $n >turns; fi
mv was-$o was-$n
ln -sfn d-$n link; ln -f version twin
(( i%2 )) && chmod 644 mode || chmod 600 mode`

// versionOf returns the tree as version 0 or 1, if all of it is of one version.
func versionOf(t *testing.T, dir string) (version int, tree map[string]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "version"))
	if err == nil {
		version, err = strconv.Atoi(strings.Trim(string(text), "v.\n"))
	}
	if err != nil {
		t.Fatal(err)
	}
	tree = map[string]string{}
	number := strings.NewReplacer(fmt.Sprintf("v%d.", version), "vN.")
	for name, what := range wholeTree(t, dir) {
		tree[number.Replace(name)] = number.Replace(what)
	}
	return version, tree
}

// A host that is killed while a command runs on a stage, while its changes are
// listed or while they are made leaves all of them or none, and no stage, when the
// next one has looked. There are a fifth as many as other kills.
func TestKillsOfTheHost(t *testing.T) {
	if *tier < 2 || *noRoot || *kills == 0 {
		return
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	dir := t.TempDir()
	work, stages := filepath.Join(dir, "work"), filepath.Join(dir, "stages")
	s := newStager(t, Options{})
	if err := os.MkdirAll(filepath.Join(work, "was-v0.", "old"), 0o755); err != nil {
		t.Fatal(err)
	}
	var want [2]map[string]string
	if out, err := exec.CommandContext(t.Context(), "bash", "-c", "cd "+work+` && echo v0. >version && echo x >mode && mkdir -p d-v0. over && touch x-v0. turns`+nextVersion).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, want[1] = versionOf(t, work)
	ended, set := s.run(t, work, nextVersion, policy.Options{})
	if ended.Code == nil || *ended.Code != 0 {
		t.Fatal(describe(ended))
	}
	if err := set.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	last, tree := versionOf(t, work)
	want[0] = tree
	if last != 2 || maps.Equal(want[0], want[1]) {
		t.Fatalf("it is at version %d", last)
	}
	// Helpers that start for the next command would look like some that are left.
	_, _ = s.Close(), testJail(t).Close()
	torn := 0
	look := func() {
		area := stage.NewArea(stages, func(format string, args ...any) {
			if strings.HasPrefix(format, "warning:") { // otherwise it says that a commit was put back or completed
				t.Errorf(format, args...)
			}
		})
		if err := area.Close(); err != nil {
			t.Error(err)
		}
	}
	for i := range (*kills + 4) / 5 {
		// A command takes that long, and a commit.
		moment, within := "run", 30*time.Millisecond
		if i%3 > 0 {
			moment, within = "commit", 6*time.Millisecond
		}
		done := killHost(t, work, stages, moment, within)
		if left, err := filepath.Glob(filepath.Join(stages, "*", "*", "journal")); err != nil || len(left) > 0 {
			torn++
		}
		look()
		now, tree := versionOf(t, work)
		if diff := cmp.Diff(want[now%2], tree); diff != "" {
			t.Fatalf("kill %d left a part of version %d (-want +got):\n%s", i, now, diff)
		}
		if done = max(done, last); now < done || now > done+1 {
			t.Fatalf("kill %d: it is version %d, after %d was made", i, now, done)
		}
		last = now
	}
	look()
	left, err := os.ReadDir(stages)
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	t.Logf("%d killed in the middle of a commit, %d versions", torn, last)
}

// killHost kills a host soon after it has announced a step, and returns the last version that
// it has made.
func killHost(t *testing.T, work, stages, moment string, within time.Duration) (done int) {
	t.Helper()
	before := children()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestHostStandIn$", "-tier="+strconv.Itoa(*tier))
	c.Env = append(os.Environ(), again+"="+work, "STOCKADE_TEST_STAGES="+stages, "TMPDIR="+filepath.Dir(work))
	c.Stdout, c.Stderr = w, os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	lines := bufio.NewReader(r)
	for rounds := 1 + rand.N(2); ; {
		line, err := lines.ReadString('\n')
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("it has ended by itself: %v", c.Wait())
		}
		if version, ok := strings.CutPrefix(line, "done "); ok {
			done, _ = strconv.Atoi(strings.TrimSpace(version))
		}
		if strings.TrimSpace(line) == moment {
			if rounds--; rounds == 0 {
				break
			}
		}
	}
	// What it says meanwhile is read, too, or the pipe would hold it up.
	_ = r.SetReadDeadline(time.Now().Add(rand.N(within)))
	rest, _ := io.ReadAll(lines)
	_ = c.Process.Kill()
	_ = c.Wait()
	_ = r.SetReadDeadline(time.Time{})
	waitForOrphans(t, before)
	more, _ := io.ReadAll(lines)
	for line := range strings.Lines(string(rest) + string(more)) {
		if version, ok := strings.CutPrefix(line, "done "); ok {
			done, _ = strconv.Atoi(strings.TrimSpace(version))
		}
	}
	return done
}

// TestHostStandIn is the host that is killed.
func TestHostStandIn(t *testing.T) {
	work, stages := os.Getenv(again), os.Getenv("STOCKADE_TEST_STAGES")
	if stages == "" {
		return
	}
	s := &stager{area: stage.NewArea(stages, t.Errorf)}
	s.Jail = newJail(t, Options{Areas: slices.Values([]*stage.Area{s.area})})
	for {
		fmt.Println("run")
		_, set := s.run(t, work, nextVersion, policy.Options{})
		if _, err := set.Changes(t.Context()); err != nil {
			t.Fatal(err)
		}
		fmt.Println("commit")
		if err := set.Commit(context.Background()); err != nil {
			t.Fatal(err)
		}
		version, _ := versionOf(t, work)
		fmt.Println("done", version)
	}
}
