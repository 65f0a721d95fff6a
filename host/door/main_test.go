package door

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/stockade-dev/stockade/guests"
)

// TestMain skips the examples where other tests are skipped by [gueststest.Need].
func TestMain(m *testing.M) {
	flag.Parse()
	if !guests.Built() && os.Getenv("REQUIRE_GUESTS") != "1" {
		fmt.Println("the built-in tools are not built, so the examples are skipped: run `make guests`")
		_ = flag.Set("test.skip", "^Example")
	}
	os.Exit(m.Run())
}
