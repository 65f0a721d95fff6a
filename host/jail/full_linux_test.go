package jail

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/policy"
)

// TestACommandIsToldThatItHasFilledTheDisk runs in a mount namespace with a small disk.
func TestACommandIsToldThatItHasFilledTheDisk(t *testing.T) {
	needHelper(t)
	if *tier < 1 {
		return // nobody looks
	}
	if os.Getenv(again) != "full disk" {
		c := exec.CommandContext(t.Context(), "unshare", "-rm", "/proc/self/fd/3", "-test.v", "-test.run=^"+t.Name()+"$")
		toNobody(t, c)
		self, err := os.Open("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		defer self.Close()
		c.ExtraFiles = []*os.File{self}
		c.Env = append(c.Env, again+"=full disk")
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+" (") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }()
	for command, full := range map[string]bool{"head -c 1M /dev/zero >f": false, "head -c 9M /dev/zero >f; true": true} {
		*tier = int(New(Options{}).Tiers().Tier)
		out := run(t, dir, command, policy.Limits{})
		if got := strings.Contains(strings.Join(out.Notes, "\n"), "the disk is full where "+dir); got != full {
			t.Errorf("%s: %s, %q", command, describe(out), out.Notes)
		}
		if err := os.Remove(dir + "/f"); err != nil {
			t.Fatal(err)
		}
	}
}
