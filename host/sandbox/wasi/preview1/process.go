package preview1

import (
	"runtime"

	"github.com/tetratelabs/wazero/sys"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

// argsGet writes none of the arguments and none of the variables: there are
// none.
func argsGet(g guest) wasi.Errno { return 0 }

// argsSizesGet says so.
func argsSizesGet(g guest) wasi.Errno {
	count, errno := g.result(0, 4)
	if errno != 0 {
		return errno
	}
	size, errno := g.result(1, 4)
	if errno != 0 {
		return errno
	}
	le.PutUint32(count, 0)
	le.PutUint32(size, 0)
	return 0
}

// procExit ends the guest. The error is the engine's own, as it would be with
// the engine's WASI. The instance is not closed: whoever made it does that.
func procExit(g guest) wasi.Errno { panic(stop{sys.NewExitError(g.u32(0))}) }

// procRaise sends no signals.
func procRaise(guest) wasi.Errno { return wasi.ENOSYS }

func schedYield(guest) wasi.Errno {
	runtime.Gosched()
	return 0
}
