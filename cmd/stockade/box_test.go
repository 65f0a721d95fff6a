package main

import (
	"math"
	"runtime/debug"
	"testing"
)

// TestTheProcessHasAMemoryLimit: it is the limit of the tools and our own, unless a person
// sets another one.
func TestTheProcessHasAMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	for _, own := range []string{"1GiB", ""} {
		a := &app{s: &stdio{env: func(name string) string { return map[string]string{"GOMEMLIMIT": own}[name] }}}
		a.Config.ToolMemoryTotal = 64 << 20
		a.sandboxOptions()
		want := int64(math.MaxInt64)
		if own == "" {
			want = 64<<20 + ownMemory
		}
		if got := debug.SetMemoryLimit(-1); got != want {
			t.Errorf("GOMEMLIMIT %q: the limit is %d, want %d", own, got, want)
		}
	}
}
