package registry

import (
	"os"
	"testing"

	"github.com/stockade-dev/stockade/host/internal/hosttest"
)

// Each damaged module is a store of its own.
func TestMain(m *testing.M) {
	hosttest.UseMemoryTemp()
	os.Exit(m.Run())
}
