package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stockade-dev/stockade/host/sandbox"
)

// sharedCache is a directory for compiled code that tests share, so that the large guests
// are compiled once.
var sharedCache string

// TestMain lets this test binary be the process that compiles.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.ChildCommand {
		os.Exit(sandbox.CompileChild(os.Args[2:]))
	}
	dir, err := os.MkdirTemp("", "stockade-compiled-")
	if err != nil {
		panic(err)
	}
	sharedCache = filepath.Join(dir, "cache")
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}
