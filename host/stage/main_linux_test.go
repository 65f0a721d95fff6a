package stage

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/internal/hosttest"
	"github.com/stockade-dev/stockade/host/rootedfs"
)

// The tests make and remove tens of thousands of small files, for which a disk takes
// twice as long as memory. Those of jail and cmd/stockade commit on a disk.
func TestMain(m *testing.M) {
	const memory = "/dev/shm"
	probe := filepath.Join(memory, fmt.Sprint("stage", os.Getpid()))
	if os.Getenv("TMPDIR") == "" && os.Mkdir(probe, 0o700) == nil {
		// An overlay needs extended attributes, which tmpfs has since Linux 6.6.
		if unix.Setxattr(probe, "user.overlay.opaque", []byte("y"), 0) == nil {
			os.Setenv("TMPDIR", memory)
		}
		os.Remove(probe)
	}
	hosttest.Main(m)
}

// Modes mean nothing to root. Without openat2, every directory on the way must be one
// that can be listed.
func TestAsNobody(t *testing.T) {
	if os.Getuid() != 0 || hosttest.NoOpenat2() {
		return
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "stage")
	if err != nil {
		t.Fatal(err)
	}
	defer rootedfs.RemoveAll(dir)
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	tests := []string{"TestModesThatKeepTheirOwnerOut"}
	if hosttest.Whole() {
		tests = append(tests, "TestACommitOfAnOverlayIsWhole")
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.v", "-test.run=^("+strings.Join(tests, "|")+")$/^(modes|)$")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "\n--- PASS") != len(tests) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestWithoutOpenat2 leaves out slow tests whose lookups other tests do, too.
func TestWithoutOpenat2(t *testing.T) {
	if hosttest.NoOpenat2() {
		return
	}
	hosttest.WithoutOpenat2(t, "^(TestTheHostInterferesWithACommit(OfAnOverlay)?|TestForgedLayers|TestACommitThatFailsIsUndone|TestAChangeSetIsBounded|TestTheNamesOfChangesAreBounded)$",
		"TestChanges", "TestACommitIsRefused")
}
