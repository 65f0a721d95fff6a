package preview1_test

import (
	"os"
	"testing"

	"github.com/stockade-dev/stockade/host/internal/hosttest"
)

// Each row has a workspace of its own.
func TestMain(m *testing.M) {
	hosttest.UseMemoryTemp()
	os.Exit(m.Run())
}
