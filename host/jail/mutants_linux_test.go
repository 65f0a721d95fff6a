package jail

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/jail/probe"
)

// mutant is a jail without one layer, and perhaps without other layers that stop the same
// attacks.
type mutant struct {
	layer   string
	also    string // without these, too, and so is what it is compared with
	another bool   // in the workspace of another user, if this is root
	opens   string // what succeeds without the layer and not with it; "root:" if only for root
}

// The layers are those of package helper, and of the kernel's namespaces. What the
// kinds of jail have and have not is a layer, too: "root" is a root and a pid
// namespace of the command's own, "namespaces" are all.
var (
	layerNamespaces = map[string]uintptr{"net": unix.CLONE_NEWNET, "ipc": unix.CLONE_NEWIPC, "uts": unix.CLONE_NEWUTS}
	layerKinds      = map[string]int{"root": 2, "namespaces": 3} // of kinds
)

// A layer that is never the last one is left out together with those that stop
// the same.
var mutants = []mutant{
	{layer: "landlock", opens: "(plant a named pipe)"},
	{layer: "landlock", also: "read-only root", opens: "self mem, root:sysctl, (plant a named pipe), (plant in the root)"},
	{layer: "seccomp", opens: "add_key, directory notification, io_uring, lease, netlink, perf, user namespace, userfaultfd, vsock"},
	{layer: "capabilities", also: "bounding set", opens: "root:(look into the helper), (enter what is closed)"},
	{layer: "bounding set", opens: "(hold capabilities in reserve)"},
	{layer: "bounding set", also: "capabilities", opens: "root:(look into the helper), root:(enter what is closed), (hold capabilities in reserve)"},
	{layer: "no_new_privs", also: "landlock,seccomp,nosuid", another: true, opens: "root:set-uid program"},
	{layer: "nosuid", also: "landlock,seccomp,no_new_privs", another: true, opens: "root:set-uid program"},
	{layer: "user", another: true, opens: "root:(be another user)"},
	{layer: "rlimits", opens: "(dump core)"},
	{layer: "masks", opens: "(open masked file)"},
	{layer: "masks of /proc", opens: "keys of others"},
	{layer: "inotify", opens: "inotify instances"},
	{layer: "dumpable", opens: "(look into the helper)"},
	{layer: "read-only binds", also: "landlock", opens: "(write what is mounted to be read)"},
	{layer: "read-only root", also: "landlock", opens: "self mem, root:sysctl, (plant in the root)"},
	{layer: "ipc", opens: "System V memory"},
	{layer: "uts", opens: "(be in the machine's uts namespace)"},
	{layer: "net", also: "seccomp", opens: "mptcp, tcp, tcp fast open, tcp listen, udp"},
	{layer: "root", opens: "chdir, chmod, setxattr, stat, utimes"},
	{layer: "root", also: "landlock", opens: "append, chdir, chmod, create, flock, hard link, keys of others, move in, move out, " +
		"open and truncate, process cmdline, process fd, read, read through symlink, reopen descriptor, self mem, self root, setxattr, " +
		"shared memory file, stat, root:sysctl, truncate, unlink, utimes, write through symlink, " +
		"(write what is mounted to be read)"},
	{layer: "namespaces", also: "root", opens: "inotify instances, (be in the machine's uts namespace)"},
}

// TestMutants omits one layer after another, and finds the attacks that this layer stops. The
// other layers stop the rest.
func TestMutants(t *testing.T) {
	if !*all {
		return // for its time
	}
	program := filepath.Join(t.TempDir(), "helper")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "mutants", "-o", program, "./helper")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	helper, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	// How a mutant learns what it is without is not in the helper that we ship.
	fd, err := helperImage()
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", fd))
	mark := []byte("mutant without ")
	if err != nil || bytes.Contains(shipped, mark) || !bytes.Contains(helper, mark) {
		t.Fatalf("the helper can go without layers, or the mutant cannot: %v", err)
	}
	_ = testJail(t).Close() // nothing else may start the mutant

	seen := map[string][]string{}
	succeed := func(t *testing.T, another bool, missing ...string) []string {
		slices.Sort(missing)
		what := fmt.Sprint(another, missing)
		if _, ok := seen[what]; !ok {
			t.Run("without "+strings.Join(missing, "+"), func(t *testing.T) { seen[what] = withoutLayers(t, helper, another, missing) })
		}
		return seen[what]
	}
	for _, m := range mutants {
		t.Run(m.layer, func(t *testing.T) {
			also := strings.FieldsFunc(m.also, func(r rune) bool { return r == ',' })
			with := succeed(t, m.another, also...)
			without := succeed(t, m.another, append(also, m.layer)...)
			opened := slices.DeleteFunc(slices.Clone(without), func(name string) bool { return slices.Contains(with, name) })
			t.Logf("%s stops: %s", m.layer, strings.Join(opened, ", "))
			var want []string
			for name := range strings.SplitSeq(m.opens, ", ") {
				if name, root := strings.CutPrefix(name, "root:"); !root || os.Getuid() == 0 {
					want = append(want, name)
				}
			}
			if !slices.Equal(opened, want) {
				t.Errorf("without it, and without %q, there succeed also:\n%q\nwant\n%q", m.also, opened, want)
			}
		})
	}
}

// withoutLayers attacks a jail without some layers, and returns the attacks that succeed.
func withoutLayers(t *testing.T, helper []byte, another bool, missing []string) []string {
	fd, err := unix.MemfdCreate("mutant without "+strings.Join(missing, "+"), unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "mutant")
	defer f.Close()
	if _, err := f.Write(helper); err != nil {
		t.Fatal(err)
	}
	// It cannot be executed while it is open for writing.
	if fd, err = unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		t.Fatal(err)
	}
	f.Close()
	oldImage, oldNamespaces := helperImage, namespaces
	t.Cleanup(func() {
		helperImage, namespaces = oldImage, oldNamespaces
		_ = unix.Close(fd)
	})
	helperImage = func() (int, error) { return fd, nil }
	index := 0
	for _, layer := range missing {
		namespaces &^= layerNamespaces[layer]
		index = max(index, layerKinds[layer])
	}
	k := mechanisms[index]
	j := jailOf(t, k)

	uid := os.Getuid()
	if another && uid == 0 {
		uid = nobody
	}
	v := newVictim(t, uid)
	if k.namespaces { // without them a command is refused where something is masked
		if err := os.WriteFile(filepath.Join(v.workspace, "masked"), []byte("secret"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	uts, err := os.Readlink("/proc/self/ns/uts")
	if err != nil {
		t.Fatal(err)
	}
	command := ""
	for _, c := range []struct{ name, command string }{
		{"(plant a named pipe)", `mkfifo pipe`},
		{"(dump core)", `[ "$(ulimit -Hc)" != 0 ]`},
		{"(open masked file)", `grep secret masked`},
		{"(look into the helper)", `: < /proc/1/mem`},
		{"(write what is mounted to be read)", `: > "` + v.programs + `/planted"`},
		{"(plant in the root)", fmt.Sprintf(`%v && mkdir /planted`, k.newRoot)},
		{"(be another user)", fmt.Sprintf(`[ "$(id -u)" != %d ]`, uid)},
		{"(enter what is closed)", `mkdir -m 0 closed && : > closed/x`},
		{"(hold capabilities in reserve)", `grep '^CapBnd:.*[1-9a-f]' /proc/self/status`},
		{"(be in the machine's uts namespace)", fmt.Sprintf(`[ "$(readlink /proc/self/ns/uts)" = '%s' ]`, uts)},
	} {
		command += fmt.Sprintf("( %s ) > /dev/null 2>&1 && echo \"%s\"\n", c.command, c.name)
	}
	out := runIn(t, j, command+"true", v.mounts())
	ended(t, out, 0)
	succeeded := outcomes(attacked(t, j, v), probe.Succeeded)
	return append(succeeded, strings.Split(strings.TrimSpace(string(out.Stdout)), "\n")...)
}
