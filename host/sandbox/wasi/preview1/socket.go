package preview1

import "github.com/stockade-dev/stockade/host/sandbox/wasi"

// sock is every function of sockets. There are no sockets, so an open descriptor is ENOTSOCK.
func sock(g guest) wasi.Errno {
	if _, errno := g.w.fd(g.u32(0)); errno != 0 {
		return errno
	}
	return wasi.ENOTSOCK
}
