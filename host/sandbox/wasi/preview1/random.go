package preview1

import (
	"io"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

// randomPiece is the number of random bytes that are made at a time; between two pieces the
// guest may be ended. Each byte costs about a nanosecond, and so a unit of fuel.
const randomPiece = 64 << 10

func randomGet(g guest) wasi.Errno {
	out, errno := g.result(0, uint64(g.u32(1)))
	if errno != 0 {
		return errno
	}
	for len(out) > 0 {
		n := min(len(out), randomPiece)
		g.w.opts.Charge(uint64(n))
		if _, err := io.ReadFull(g.w.opts.Random, out[:n]); err != nil {
			return wasi.EIO
		}
		if out = out[n:]; len(out) > 0 {
			g.w.checkpoint()
		}
	}
	return 0
}
