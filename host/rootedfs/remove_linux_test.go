package rootedfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// nest makes directories in each other, with a mode.
func nest(t *testing.T, dir string, levels int, mode uint32) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	for i := 0; err == nil && i < levels; i++ {
		err = unix.Mkdirat(at, "d", 0o700)
		var next int
		if err == nil {
			next, err = unix.Openat(at, "d", unix.O_PATH|unix.O_CLOEXEC, 0)
		}
		if err == nil && mode != 0o700 && i > 0 {
			err = unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", at), mode)
		}
		unix.Close(at)
		at = next
	}
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(at)
}

// fewFiles limits the number of files that this process can still open.
func fewFiles(t *testing.T) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	var old unix.Rlimit
	if err := errors.Join(err, unix.Getrlimit(unix.RLIMIT_NOFILE, &old)); err != nil {
		t.Fatal(err)
	}
	few := unix.Rlimit{Cur: uint64(len(open)) + 40, Max: old.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &old) })
}

func TestAnyTreeIsRemovedAndNothingElse(t *testing.T) {
	put := func(t *testing.T, name string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for name, make := range map[string]func(t *testing.T, tree, outside string){
		"30,000 levels": func(t *testing.T, tree, _ string) { nest(t, tree, 30_000, 0o700) },
		"levels that let nobody in": func(t *testing.T, tree, _ string) {
			nest(t, tree, 300, 0)
		},
		"wide and deep": func(t *testing.T, tree, _ string) {
			for i := range 300 {
				put(t, filepath.Join(tree, fmt.Sprint(i), "a/b/c/d/e/f", fmt.Sprint(i)))
			}
		},
		"names of any bytes": func(t *testing.T, tree, _ string) {
			for _, n := range []string{"\xff\xfe", "-rf", " ", "\n", "*", "0", strings.Repeat("n", 255)} {
				put(t, filepath.Join(tree, n, n, n, n))
			}
		},
		"links to what is outside": func(t *testing.T, tree, outside string) {
			put(t, filepath.Join(tree, "a/b/c"))
			for _, at := range []string{"link", "a/link", "a/b/link"} {
				if err := os.Symlink(outside, filepath.Join(tree, at)); err != nil {
					t.Fatal(err)
				}
			}
		},
		"what a removal that was killed has left": func(t *testing.T, tree, _ string) {
			put(t, filepath.Join(tree, ".stockade-AAAA/0/a/b"))
			put(t, filepath.Join(tree, ".stockade-AAAA/7/.stockade-BBBB/0/a/b"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			tree, outside := filepath.Join(base, "tree"), filepath.Join(base, "outside")
			put(t, filepath.Join(outside, "d/file"))
			if err := os.Mkdir(tree, 0o700); err != nil {
				t.Fatal(err)
			}
			make(t, tree, outside)
			fewFiles(t)
			if err := RemoveAll(tree); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(tree); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it is there: %v", err)
			}
			if _, err := os.Lstat(filepath.Join(outside, "d/file")); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWhoExchangesDirectoriesLeadsNoRemovalOut exchanges directories with links that lead out,
// and back, while the tree is removed.
func TestWhoExchangesDirectoriesLeadsNoRemovalOut(t *testing.T) {
	base := t.TempDir()
	outside := filepath.Join(base, "outside")
	if err := errors.Join(os.MkdirAll(outside+"/x/y/z", 0o700), os.WriteFile(outside+"/x/y/file", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		tree := filepath.Join(base, "tree")
		for i := range 50 {
			dir := filepath.Join(tree, fmt.Sprint(i))
			if err := errors.Join(os.MkdirAll(dir+"/x/y/z", 0o700), os.Symlink(outside, dir+".link")); err != nil {
				t.Fatal(err)
			}
		}
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for {
				for i := range 50 {
					select {
					case <-stop:
						return
					default:
						dir := filepath.Join(tree, fmt.Sprint(i))
						_ = unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, dir+".link", unix.RENAME_EXCHANGE)
					}
				}
			}
		}()
		err := RemoveAll(tree)
		close(stop)
		<-done
		if err != nil {
			t.Error(err)
		}
		for _, name := range []string{"x/y/z", "x/y/file"} {
			if _, err := os.Lstat(filepath.Join(outside, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestDiscardedTreesAreRemovedByALaterProcess kills a process that removes a tree, and lets
// two others go on.
func TestDiscardedTreesAreRemovedByALaterProcess(t *testing.T) {
	const job = "STOCKADE_TEST_DISCARD"
	if bin := os.Getenv(job); bin != "" {
		if err := Discard(filepath.Join(bin, "tree"), bin); err != nil {
			t.Fatal(err)
		}
		Sweep(bin)
		fmt.Println("discarded")
		AwaitRemovals(time.Minute)
		return
	}
	bin := t.TempDir()
	tree := filepath.Join(bin, "tree")
	if err := errors.Join(os.Mkdir(tree, 0o700), os.MkdirAll(filepath.Join(bin, "other/stockade-gone-x"), 0o700), os.WriteFile(filepath.Join(bin, discardPrefix+"file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // one of another user
		if err := errors.Join(os.Mkdir(filepath.Join(bin, discardPrefix+"theirs"), 0o777), os.Chown(filepath.Join(bin, discardPrefix+"theirs"), 65534, 65534)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 200 {
		dir := filepath.Join(tree, fmt.Sprint(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		nest(t, dir, 50, 0o500)
	}
	process := func() *exec.Cmd {
		c := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$")
		c.Env = append(os.Environ(), job+"="+bin)
		return c
	}
	killed := process()
	out, err := killed.StdoutPipe()
	if err := errors.Join(err, killed.Start()); err != nil {
		t.Fatal(err)
	}
	if line := make([]byte, 9); !func() bool { _, err := out.Read(line); return err == nil && bytes.Equal(line, []byte("discarded")) }() {
		t.Fatalf("it says %q", line)
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	if _, err := os.Lstat(tree); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is at its place: %v", err)
	}
	left := func() (names []string) {
		entries, err := os.ReadDir(bin)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	theirs := 0
	if os.Geteuid() == 0 {
		theirs = 1
	}
	if n := len(left()); n != 3+theirs {
		t.Fatalf("the process that was killed has left %v: it shows nothing", left())
	}
	second, third := process(), process()
	for _, err := range []error{second.Start(), third.Start(), second.Wait(), third.Wait()} {
		if err != nil {
			t.Error(err)
		}
	}
	if got := left(); len(got) != 2+theirs || got[0] != "other" || got[1] != discardPrefix+"file" {
		t.Errorf("there are %v", got)
	}
}
