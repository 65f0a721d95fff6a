package wasi

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// noOpenat2 in the environment says which error the tests are to get from
// openat2, so that all of them, or those that one names, can be run as on a
// host that does not have it.
const noOpenat2 = "STOCKADE_TEST_NO_OPENAT2"

var openat2Errors = map[string]unix.Errno{"ENOSYS": unix.ENOSYS, "EPERM": unix.EPERM}

func TestMain(m *testing.M) {
	if name := os.Getenv(noOpenat2); name != "" {
		if err := forbidOpenat2(openat2Errors[name]); err != nil {
			fmt.Fprintf(os.Stderr, "filter out openat2 with %s: %v\n", name, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// forbidOpenat2 makes openat2 fail in this process and those it starts, as the
// filter of a container does.
func forbidOpenat2(errno unix.Errno) error {
	if errno == 0 {
		return fmt.Errorf("use one of %v", openat2Errors)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_OPENAT2, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, err := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if err != 0 {
		return err
	}
	return nil
}

// What the kernel does for us, os.Root has to do as well.
func TestWithoutOpenat2(t *testing.T) {
	if !hasOpenat2() {
		t.Log("there is no openat2 here, so all tests are without")
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(errno string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), self, append(args, "-test.v")...)
		cmd.Env = append(os.Environ(), noOpenat2+"="+errno)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("with %s: %v\n%s", errno, err, out)
		}
		return string(out)
	}
	for errno := range openat2Errors {
		run(errno, "-test.run=^TestRootOfTheHost$")
	}
	// Those that take long look up no names that the others do not, and the
	// exchanges are done in both ways anyway.
	out := run("EPERM", "-test.skip=^(TestExchangeOfDirectoryAndLink|TestTheHostInterferesWithACommit|TestACommitThatFailsIsUndone|TestListingStreams|Fuzz.*)$")
	for _, test := range []string{"TestAttacks", "TestLinkInsideTheMountWorks", "TestMaskedDirectoryIsNotReached", "TestAStagedGuestSeesWhatAnyOtherSees"} {
		if !strings.Contains(out, "--- PASS: "+test+" (") {
			t.Errorf("%s was not run without openat2", test)
		}
	}
}

// TestRootOfTheHost also shows that the two are told apart.
func TestRootOfTheHost(t *testing.T) {
	w := newWorld(t)
	m := w.open(w.rw("ws")).mounts[0]
	_, fallback := m.root.(*osRoot)
	if want := os.Getenv(noOpenat2) != "" || !hasOpenat2(); fallback != want {
		t.Errorf("the mount is a %T", m.root)
	}
}
