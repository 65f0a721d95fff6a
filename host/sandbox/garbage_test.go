package sandbox_test

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"

	"github.com/stockade-dev/stockade/host/sandbox"
)

// TestGarbageIsLimited: GOGC falls when more memory is in use.
func TestGarbageIsLimited(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	sandbox.LimitGarbage(400)
	until := func(what string, want func(percent uint64) bool) {
		for range 1000 {
			runtime.GC()
			runtime.Gosched()
			sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
			if metrics.Read(sample); want(sample[0].Value.Uint64()) {
				return
			}
		}
		t.Errorf("with %s in use GOGC stays as it was", what)
	}
	large := make([]byte, 256<<20)
	until("256 MiB", func(p uint64) bool { return p == 100 })
	runtime.KeepAlive(large) // and no longer
	until("little", func(p uint64) bool { return p > 300 })
}
