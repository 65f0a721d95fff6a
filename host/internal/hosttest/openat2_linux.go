package hosttest

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

// noOpenat2 is an environment variable with the name of the error that openat2 returns to
// tests. With it tests run as on a host without openat2.
const noOpenat2 = "STOCKADE_TEST_NO_OPENAT2"

// openat2Errors holds the possible errors by their names.
var openat2Errors = map[string]unix.Errno{"ENOSYS": unix.ENOSYS, "EPERM": unix.EPERM}

// NoOpenat2 reports whether the tests run without openat2.
func NoOpenat2() bool { return os.Getenv(noOpenat2) != "" }

// Main runs the tests of a package, without openat2 if the environment demands that.
func Main(m *testing.M) {
	if name := os.Getenv(noOpenat2); name != "" {
		if err := forbidOpenat2(openat2Errors[name]); err != nil {
			fmt.Fprintf(os.Stderr, "filter out openat2 with %s: %v\n", name, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// forbidOpenat2 makes openat2 fail in this process and in all processes that it starts, like
// the filter of a container.
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

// WithoutOpenat2 runs the named tests of a package again without openat2, the first of them
// with each possible error. With -whole it runs all tests except fuzz targets and those whose
// names match skip.
func WithoutOpenat2(t *testing.T, skip string, named ...string) {
	t.Helper()
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
		run(errno, "-test.run=^"+named[0]+"$")
	}
	args := []string{"-test.run=^(" + strings.Join(named, "|") + ")$"}
	if Whole() {
		args = []string{"-whole", "-test.skip=^(TestWithoutOpenat2|Fuzz.*)$|" + skip}
	}
	out := run("EPERM", args...)
	for _, test := range named {
		if !strings.Contains(out, "--- PASS: "+test+" (") {
			t.Errorf("%s was not run without openat2", test)
		}
	}
}
