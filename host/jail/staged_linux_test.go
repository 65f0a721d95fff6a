package jail

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/jail/walk"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/stage"
)

var (
	random   = flag.Int("programs", 20, "how many random programs run plainly and on a stage")
	program1 = flag.Uint64("program", 0, "the seed of the first of them")
)

// stager runs commands on a stage.
type stager struct {
	*Jail
	area *stage.Area
	dir  string       // of the area
	show func(string) // sees what commands write
}

func newStager(t testing.TB, opts Options) *stager {
	t.Helper()
	s := &stager{dir: t.TempDir()}
	s.area = stage.NewArea(s.dir, t.Errorf)
	t.Cleanup(func() {
		if err := s.area.Close(); err != nil {
			t.Error(err)
		}
	})
	opts.Areas = slices.Values([]*stage.Area{s.area})
	s.Jail = newJail(t, opts)
	return s
}

// run runs a command without committing its changes.
func (s *stager) run(t testing.TB, dir, command string, opts policy.Options) (services.CommandResult, *stage.Set) {
	t.Helper()
	ended, set, err := s.try(t, dir, command, opts)
	if err != nil {
		t.Fatal(err)
	}
	return ended, set
}

// try is run for a command whose changes may exceed a limit.
func (s *stager) try(t testing.TB, dir, command string, opts policy.Options) (services.CommandResult, *stage.Set, error) {
	t.Helper()
	if opts.Mounts == nil {
		opts.Mounts = []policy.Mount{{Host: dir, Write: true}}
	}
	opts.WhyNotStaged = s.WhyNotStaged
	if why := s.WhyNotStaged(opts.Mounts); why != "" {
		t.Fatal("nothing is staged: ", why)
	}
	set, err := stage.New(&stage.Options{Dir: s.area.Dir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Drop() })
	cmd := bash(dir, command)
	cmd.Stage = set
	ended, err := s.Run(t.Context(), grantWith(t, dir, command, opts), cmd)
	return ended, set, err
}

// wholeTree describes all that can be seen below a directory. Names of the same file have the
// same number, and times appear if they were set.
func wholeTree(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	files := map[uint64]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if d != nil && errors.Is(err, fs.ErrPermission) {
			return nil // its mode is told
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrPermission) {
			return nil // it is in a directory that can only be listed
		}
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(name, dir)
		st := info.Sys().(*syscall.Stat_t)
		text := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(name)
			if err != nil && info.Mode()&0o400 != 0 {
				return err
			}
			if len(data) > 64<<10 {
				data = fmt.Appendf(nil, "%d bytes, %x", len(data), sha256.Sum256(data))
			}
			text += fmt.Sprintf(" %q", data)
			if st.Nlink > 1 {
				if files[st.Ino] == "" {
					files[st.Ino] = rel
				}
				text += " is " + files[st.Ino]
			}
		case info.Mode().Type() == fs.ModeSymlink:
			target, err := os.Readlink(name)
			if err != nil {
				return err
			}
			text += " to " + target
		}
		var names, value [1 << 10]byte
		n, _ := unix.Llistxattr(name, names[:])
		for attr := range strings.SplitSeq(string(names[:max(n, 0)]), "\x00") {
			if strings.HasPrefix(attr, "user.") && attr != plantedMark {
				n, _ := unix.Lgetxattr(name, attr, value[:])
				text += fmt.Sprintf(" %s=%q", attr, value[:max(n, 0)])
			}
		}
		if info.ModTime().Year() < 2010 && !info.IsDir() {
			text += " of " + strconv.FormatInt(info.ModTime().Unix(), 10)
		}
		out[rel] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// openUp lets the owner of a file or directory read it.
func openUp(name string, d fs.DirEntry) error {
	info, err := os.Lstat(name)
	if err != nil || info.Mode().Type() == fs.ModeSymlink {
		return err
	}
	mode := info.Mode() | 0o400
	if d.IsDir() {
		mode |= 0o700
	}
	return os.Chmod(name, mode)
}

// The changes of a program on a stage, when they are committed, are the same as without a
// stage.
func TestRandomProgramsOnAStage(t *testing.T) {
	if *tier < 2 || *noRoot {
		return
	}
	base := shortDir(t)
	s := newStager(t, Options{})
	bin := filepath.Join(base, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(bin, "program")
	data, err := os.ReadFile("/proc/self/exe") // the binary may be where only root looks
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(self, data, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(base) // and back in the end
	changed := 0
	for seed := *program1; seed < *program1+uint64(*random); seed++ {
		var dirs [2]string
		for i := range dirs {
			// Of one name, as names are in the output, and of another directory.
			dirs[i] = filepath.Join(base, strconv.Itoa(i), "w")
			if err := os.MkdirAll(dirs[i], 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chdir(dirs[i]); err != nil { //nolint:usetesting // it would keep a descriptor of each
				t.Fatal(err)
			}
			program{Rand: rand.New(rand.NewPCG(seed, 2))}.plant()
			if os.Getuid() == 0 {
				_ = filepath.WalkDir(dirs[i], func(name string, _ fs.DirEntry, err error) error { return os.Lchown(name, nobody, nobody) })
			}
		}
		if err := os.Chdir(base); err != nil { //nolint:usetesting // see above
			t.Fatal(err)
		}
		args := []string{programArg, strconv.FormatUint(seed, 10), "40"}
		plain := exec.CommandContext(t.Context(), self, args...)
		plain.Dir = dirs[0]
		if os.Getuid() == 0 {
			plain.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		want, err := plain.Output()
		if err != nil {
			t.Fatal(err)
		}
		before := wholeTree(t, dirs[1])
		ended, set := s.run(t, dirs[1], self+" "+strings.Join(args, " "), policy.Options{Mounts: []policy.Mount{{Host: dirs[1], Write: true}, {Host: bin}}})
		if ended.Code == nil || *ended.Code != 0 {
			t.Fatal(describe(ended))
		}
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(ended.Stdout), "\n")); diff != "" {
			t.Errorf("program %d (-plain +staged):\n%s", seed, diff)
		}
		if diff := cmp.Diff(before, wholeTree(t, dirs[1])); diff != "" {
			t.Errorf("program %d changed something before it was made:\n%s", seed, diff)
		}
		changes, err := set.Changes(t.Context())
		if err == nil {
			changed += len(changes)
			err = set.Commit(context.Background())
		}
		if err != nil {
			t.Errorf("program %d: %v", seed, err)
		}
		for _, lookInto := range []bool{false, true} {
			if lookInto {
				for _, dir := range dirs {
					_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, _ error) error { return openUp(name, d) })
				}
			}
			if diff := cmp.Diff(wholeTree(t, dirs[0]), wholeTree(t, dirs[1])); diff != "" && err == nil {
				t.Errorf("program %d (-plain +staged and made), looked into: %v:\n%s", seed, lookInto, diff)
			}
		}
		for _, dir := range dirs {
			removeTree(dir)
		}
		if t.Failed() {
			t.Fatalf("run it again with -run %s -programs 1 -program %d", t.Name(), seed)
		}
	}
	t.Logf("%d changes", changed)
	if changed == 0 {
		t.Error("they have changed nothing")
	}
}

// A command whose files somebody else has changed meanwhile runs again, and a note reports
// it.
func TestAStagedCommandRunsAgain(t *testing.T) {
	if *tier < 2 || *noRoot {
		return
	}
	s, dir := newStager(t, Options{}), t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Error(err)
		}
	}
	write("a", "one\n")
	write("go", "no")
	set, err := stage.New(&stage.Options{Dir: s.area.Dir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set.Drop() }()
	const command = "echo here >> a; echo ready; until grep -q yes go; do :; done; cat a"
	cmd := bash(dir, command)
	cmd.Stage, cmd.MergeStderr = set, true
	cmd.OnOutput = func(string) {
		write("a", "two\n")
		write("go", "yes") // in place, so that the command sees it
	}
	ended, err := s.Run(t.Context(), grantWith(t, dir, command, policy.Options{Mounts: []policy.Mount{{Host: dir, Write: true}}, WhyNotStaged: s.WhyNotStaged}), cmd)
	if err != nil {
		t.Fatal(err)
	}
	if string(ended.Stdout) != "ready\ntwo\nhere\n" || len(ended.Notes) == 0 || !strings.Contains(ended.Notes[len(ended.Notes)-1], "it ran 2 times") {
		t.Errorf("%s, %q", describe(ended), ended.Notes)
	}
}

// If one place cannot hold the changes of commands, the next one is used.
func TestTheNextPlaceForAStage(t *testing.T) {
	if *tier < 2 || *noRoot {
		return
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bad, good := stage.NewArea(filepath.Join(file, "x"), func(string, ...any) {}), stage.NewArea(t.TempDir(), t.Errorf)
	defer func() {
		if err := good.Close(); err != nil {
			t.Error(err)
		}
	}()
	mounts := []policy.Mount{{Host: t.TempDir(), Write: true}}
	for want, areas := range map[string][]*stage.Area{"": {bad, good}, "there is no place for what they change: the directory cannot be made": {bad}, "there is no place for what they change": nil} {
		j := newJail(t, Options{Areas: slices.Values(areas)})
		if why := j.WhyNotStaged(mounts); why != want {
			t.Errorf("%d places: %q", len(areas), why)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A command that fills the disk is ended, and none of its changes is kept.
func TestAStageIsBounded(t *testing.T) {
	if *tier < 2 || *noRoot {
		return
	}
	defer func(most uint64) { maxStaged = most }(maxStaged)
	maxStaged = 256 << 20
	s, dir := newStager(t, Options{}), t.TempDir()
	ended, set := s.run(t, dir, "dd if=/dev/zero of=big bs=1M count=4000 status=none", policy.Options{})
	if ended.Signal == nil || len(ended.Notes) == 0 || !strings.Contains(strings.Join(ended.Notes, "\n"), errFull.Error()) {
		t.Errorf("%s, %q", describe(ended), ended.Notes)
	}
	if changes, err := set.Changes(t.Context()); err != nil || len(changes) > 0 {
		t.Errorf("%d changes, %v", len(changes), err)
	}
}

// If not all secrets can be hidden for certain, no command runs before a person is asked.
func TestALargeWorkspaceIsAskedAboutFirst(t *testing.T) {
	if *tier < 2 || *noRoot {
		return
	}
	s, dir := newStager(t, Options{}), t.TempDir()
	for i := range 3 {
		if err := os.MkdirAll(filepath.Join(dir, strconv.Itoa(i), "x"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	defer func(most walk.Budget) { scanBudget = most }(scanBudget)
	scanBudget.Names = 2
	command := "echo ran"
	opts := policy.Options{Mounts: []policy.Mount{{Host: dir, Write: true}}, WhyNotStaged: s.WhyNotStaged}
	for _, rehearsal := range []bool{true, false} {
		set, err := stage.New(&stage.Options{Dir: s.area.Dir()})
		if err != nil {
			t.Fatal(err)
		}
		grant := grantWith(t, dir, command, opts)
		if rehearsal {
			if grant, err = decisionOf(t, dir, map[string]any{"command": command}, opts).Rehearse(); err != nil {
				t.Fatal(err)
			}
		}
		cmd := bash(dir, command)
		cmd.Stage = set
		ended, err := s.Run(t.Context(), grant, cmd)
		_, changesErr := set.Changes(t.Context())
		if rehearsal != errors.Is(err, policy.ErrAskFirst) || rehearsal != errors.Is(changesErr, policy.ErrAskFirst) || rehearsal == (string(ended.Stdout) == "ran\n") {
			t.Errorf("rehearsal %t: %v, %v, %q", rehearsal, err, changesErr, ended.Stdout)
		}
		if err := set.Drop(); err != nil {
			t.Error(err)
		}
	}
}
