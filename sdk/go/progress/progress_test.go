//go:build !wasip1

package progress

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stockade-dev/stockade/sdk/go/internal/abi"
)

func TestReport(t *testing.T) {
	var got []string
	hostReport = func(done uint64, hasTotal uint32, total uint64, ptr, size uint32) {
		got = append(got, fmt.Sprintf("%d/%d/%d %s", done, hasTotal, total, abi.Take(ptr, size)))
	}
	Report(1, 0, "")
	Report(1<<63, 1<<63+1, "half")
	if want := []string{"1/0/0 ", "9223372036854775808/1/9223372036854775809 half"}; !slices.Equal(got, want) {
		t.Errorf("host got %q, want %q", got, want)
	}
	if n := abi.Live(); n != 0 {
		t.Errorf("%d blocks left", n)
	}
}

func TestCancelled(t *testing.T) {
	if Cancelled() {
		t.Error("cancelled without a host")
	}
	hostCancelled = func() uint32 { return 1 }
	if !Cancelled() {
		t.Error("not cancelled")
	}
}
