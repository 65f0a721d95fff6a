package sandbox_test

import (
	"os"
	"testing"

	"github.com/stockade-dev/stockade/host/sandbox"
)

// TestMain lets this test binary be the process that compiles.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.ChildCommand {
		os.Exit(sandbox.CompileChild(os.Args[2:]))
	}
	os.Exit(m.Run())
}
