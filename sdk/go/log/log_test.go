//go:build !wasip1

package log

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stockade-dev/stockade/sdk/go/internal/abi"
)

func TestLevelsAndTexts(t *testing.T) {
	var got []string
	hostLog = func(level, ptr, size uint32) {
		got = append(got, fmt.Sprintf("%d %s", level, abi.Take(ptr, size)))
	}
	Tracef("a")
	Debugf("b %d", 1)
	Infof("%s", "bad \xff text")
	Warnf("")
	Errorf("e")
	if want := []string{"0 a", "1 b 1", "2 bad \uFFFD text", "3 ", "4 e"}; !slices.Equal(got, want) {
		t.Errorf("host got %q, want %q", got, want)
	}
	if n := abi.Live(); n != 0 {
		t.Errorf("%d blocks left", n)
	}
}
