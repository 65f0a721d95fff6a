//go:build linux && (amd64 || arm64)

package probe

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/jail/seccomp"
)

// filtered is the first argument of this test binary, before the arguments of a probe, if it
// has to run under the filter alone.
const filtered = "filtered"

func TestMain(m *testing.M) {
	args := os.Args[1:]
	switch {
	case len(args) > 0 && args[0] == Command:
		os.Exit(Main(args[1:]))
	case len(args) > 0 && args[0] == filtered:
		runtime.LockOSThread()
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			err = seccomp.Install(seccomp.Filter(seccomp.Options{NoNamespaces: true}))
		}
		if err == nil {
			err = unix.Exec(self, append(os.Args[:1], args[1:]...), os.Environ())
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// alsoAsNobody runs a test a second time as nobody if this is root.
func alsoAsNobody(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "n-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = []string{"TMPDIR=" + dir}
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+" (") {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

func start(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Dir, cmd.Env = dir, []string{}
	if err := cmd.Start(); err != nil {
		return err
	}
	_ = cmd.Wait()
	return nil
}

// attack runs all probes, and compares their results with everything that can be seen from
// outside.
func attack(t *testing.T, first ...string) map[string]Result {
	t.Helper()
	dir, err := os.MkdirTemp("", "p-") // short, for the name of a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	workspace := filepath.Join(dir, "workspace")
	if err := os.Mkdir(workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	v, err := NewVictim(dir, workspace, start)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if done, err := v.Check(); len(done) != 0 || err != nil {
		t.Fatalf("before anything was tried: %v, %v", done, err)
	}
	cmd := exec.CommandContext(t.Context(), self, append(first, v.Args()...)...)
	cmd.Dir, cmd.Env, cmd.Stderr = workspace, []string{}, os.Stderr
	if os.Getuid() == 0 { // whose mounts are to stay those of the machine
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	results, err := Read(out)
	if err != nil {
		t.Fatal(err)
	}
	done, err := v.Check()
	if err != nil {
		t.Fatal(err)
	}
	for probe, r := range results {
		seen := done[probe] != ""
		if seen && r.Outcome != Succeeded {
			t.Errorf("%s: it says %v, but %s", probe, r, done[probe])
		}
		if !seen && r.Outcome == Succeeded && slices.Contains(visible, probe) {
			t.Errorf("%s: it says that it succeeded, but nothing was done", probe)
		}
		if seen && !slices.Contains(visible, probe) {
			t.Errorf("%s: %s, which nobody expects", probe, done[probe])
		}
	}
	for _, name := range Work() {
		if results[name].Outcome != Succeeded {
			t.Errorf("%s: %v", name, results[name])
		}
	}
	return results
}

// visible names the probes whose success can be seen from outside.
var visible = []string{
	"create", "truncate", "open and truncate", "append", "unlink", "move in", "move out", "hard link",
	"write through symlink", "chmod", "utimes", "setxattr", "reopen descriptor", "self root", "shared memory file", "device",
	"process cwd", "pidfd_getfd", "setpriority", "sched_setaffinity", "prlimit", "System V memory",
	"tcp", "mptcp", "tcp fast open", "udp", "unix socket", "abstract socket",
}

// failsUnprotected maps probes that fail without any confinement to the reasons, as nobody
// and as root. All other probes can succeed. A probe that fails in both cases is shown
// nowhere to work.
var failsUnprotected = map[bool]map[string]string{
	false: {
		"sysctl":        "it belongs to root",
		"device":        "needs CAP_MKNOD",
		"raw socket":    "needs CAP_NET_RAW",
		"packet socket": "needs CAP_NET_RAW",
		"mount":         "needs CAP_SYS_ADMIN",
		"remount":       "needs CAP_SYS_ADMIN",
		"chroot":        "needs CAP_SYS_CHROOT",
		"bpf":           "the kernel is set up to let only root",
		"su":            "asks for a password",
		"af_alg":        "the kernel does not have it",
		"x32":           "the kernel does not have it",
		"mount table":   "there is no directory of ours",
	},
	true: {
		"set-uid program": "this is root already",
		"af_alg":          "the kernel does not have it",
		"x32":             "the kernel does not have it",
		"mount table":     "there is no directory of ours",
	},
}

// filterStops lists the probes that only the filter stops: as any user, and as root in
// addition.
var (
	filterStops = []string{
		"ptrace", "process_vm_readv", "pidfd_getfd", "setpriority", "sched_setaffinity", "prlimit", "System V memory",
		"tcp", "mptcp", "tcp fast open", "tcp listen", "udp", "unix socket", "abstract socket", "netlink", "vsock",
		"io_uring", "user namespace", "mount in user namespace", "perf", "userfaultfd", "add_key", "lease", "directory notification", "set-uid program", "TIOCSTI",
	}
	filterStopsRoot = []string{"device", "raw socket", "packet socket", "mount", "remount", "chroot", "bpf",
		"su", // which wants to tell the kernel's log by netlink
	}
)

func TestWithoutWalls(t *testing.T) {
	alsoAsNobody(t)
	root := os.Getuid() == 0
	for name, r := range attack(t) {
		if why, fails := failsUnprotected[root][name]; fails == (r.Outcome == Succeeded) {
			t.Errorf("%s: %v; %s", name, r, why)
		}
	}
}

func TestFilterAlone(t *testing.T) {
	alsoAsNobody(t)
	root := os.Getuid() == 0
	for name, r := range attack(t, filtered) {
		if name == "keys of others" && !root {
			continue // nobody has some only where something has made them
		}
		_, fails := failsUnprotected[root][name]
		stopped := slices.Contains(filterStops, name) || root && slices.Contains(filterStopsRoot, name)
		if (fails || stopped) == (r.Outcome == Succeeded) {
			t.Errorf("%s: %v", name, r)
		}
		if r.Outcome == Impossible && name != "set-uid program" {
			t.Errorf("%s: %v: that is for the filter to say", name, r)
		}
	}
}

func TestRead(t *testing.T) {
	var all strings.Builder
	for _, name := range slices.Concat(Work(), Attacks()) {
		fmt.Fprintf(&all, "{\"probe\":%q,\"outcome\":\"held\"}\n", name)
	}
	const first, odd = `{"probe":"read","outcome":"held"}`, `{"probe":"read","outcome":"asleep"}`
	for _, c := range []struct{ name, output, err string }{
		{"all", all.String(), ""},
		{"nothing", "", "nothing about write a file"},
		{"one is missing", strings.Replace(all.String(), first, "", 1), "nothing about read"},
		{"one is there twice", all.String() + first, `"read", "held" is no result`},
		{"one says something else", strings.Replace(all.String(), first, odd, 1), `"asleep" is no result`},
		{"one is unknown", all.String() + `{"probe":"x","outcome":"held"}`, `"x", "held" is no result`},
		{"it is cut", all.String()[:all.Len()-3], "unexpected EOF"},
		{"other text", "killed", "invalid character"},
	} {
		switch _, err := Read([]byte(c.output)); {
		case err == nil && c.err != "":
			t.Errorf("%s: it is read", c.name)
		case err != nil && (c.err == "" || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v, want %s", c.name, err, c.err)
		}
	}
}

func TestNumberOfProbes(t *testing.T) {
	if a, w := len(Attacks()), len(Work()); a != 70 || w != 4 {
		t.Errorf("there are %d attacks and %d others", a, w)
	}
}
