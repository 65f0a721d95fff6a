//go:build unix

package jail

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/jail/probe"
	"github.com/stockade-dev/stockade/host/services"
)

// programs are roles of this test binary, by its first argument.
var programs = map[string]func(args []string){}

// TestMain lets this test binary be a helper, which does what its first
// argument says, or attack the jail.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == probe.Command {
		os.Exit(probe.Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && programs[os.Args[1]] != nil {
		programs[os.Args[1]](os.Args[2:])
		return
	}
	if os.Getenv(helperMark) == "" {
		os.Exit(m.Run())
	}
	switch os.Args[1] {
	case "tell":
		dir, _ := os.Getwd()
		input, _ := io.ReadAll(os.Stdin)
		fmt.Printf("%q %q %q %s", os.Args[2:], os.Environ(), input, dir)
		fmt.Fprint(os.Stderr, "a complaint")
		os.Exit(7)
	case "flood":
		out := bufio.NewWriter(os.Stdout)
		for range 1 << 20 {
			fmt.Fprint(out, "0123456789")
		}
		_ = out.Flush()
	case "spin":
		for os.Getpid() > 0 {
		}
	case "again":
		_, err := RunHelper(context.Background(), "/", "tell")
		fmt.Print(err)
	}
}

func TestAHelper(t *testing.T) {
	t.Setenv("STOCKADE_TEST_SECRET", "secret")
	dir, err := os.MkdirTemp("/tmp", "helper-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	run := func(t *testing.T, ctx context.Context, args ...string) services.CommandResult {
		t.Helper()
		out, err := RunHelper(ctx, dir, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	t.Run("gets its arguments and nothing of ours", func(t *testing.T) {
		out := run(t, t.Context(), "tell", "one", "two words")
		if want := fmt.Sprintf(`["one" "two words"] ["STOCKADE_HELPER=1"] "" %s`, dir); string(out.Stdout) != want {
			t.Errorf("it says %s, want %s", out.Stdout, want)
		}
		if out.Code == nil || *out.Code != 7 || out.Signal != nil || string(out.Stderr) != "a complaint" || out.CPU <= 0 {
			t.Errorf("it ended with %+v", out)
		}
	})
	t.Run("is not stored without end", func(t *testing.T) {
		if out := run(t, t.Context(), "flood"); len(out.Stdout) > helperOutput+100 || !bytes.Contains(out.Stdout, []byte("left out")) {
			t.Errorf("%d bytes are kept", len(out.Stdout))
		}
	})
	t.Run("ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if out := run(t, ctx, "spin"); out.Signal == nil || *out.Signal != int(syscall.SIGKILL) {
			t.Errorf("it ended with %+v", out)
		}
	})
	t.Run("starts no helpers", func(t *testing.T) {
		if out := run(t, t.Context(), "again"); !strings.Contains(string(out.Stdout), "starts no helpers") {
			t.Errorf("it says %q", out.Stdout)
		}
	})
	t.Run("is not started where there is no directory", func(t *testing.T) {
		if _, err := RunHelper(t.Context(), dir+"/none", "tell"); err == nil {
			t.Error("it is")
		}
	})
}
