// Package gueststest is for tests that call the built-in tools.
package gueststest

import (
	"os"
	"testing"

	"github.com/stockade-dev/stockade/guests"
)

// Need skips a test if the built-in tools were not built, as in a new clone. With
// REQUIRE_GUESTS=1 in the environment, which make test and CI set, the test fails instead.
func Need(t testing.TB) {
	t.Helper()
	const missing = "the built-in tools are not built: run `make guests helper`"
	switch {
	case guests.Built():
	case os.Getenv("REQUIRE_GUESTS") == "1":
		t.Fatal(missing)
	default:
		t.Skip(missing)
	}
}
