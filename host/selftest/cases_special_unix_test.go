//go:build unix

package selftest

import (
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/policy"
)

// specialCases are on what is neither a file nor a directory.
func specialCases() []numbered {
	const special, outside = "EACCES", "EPERM"
	// tried is what a guest can do with a name.
	tried := func(x *onMount, name string) {
		x.want(x.stat(x.in(name), 0), "see "+name, "ok", "ok", outside)
		x.reads(name, special, special, outside)
		x.writes(name, 0, special, "EACCES EROFS", outside)
		x.writes(name, oCreate|oTruncate, special, "EACCES EROFS", outside)
		x.want(x.open(x.in(name), oTruncate, mayRead, 0).call, "truncate "+name, special, "EACCES EROFS", outside)
		x.want(x.open(x.in(name), 0, mayWrite, fdAppend).call, "append to "+name, special, "EACCES EROFS", outside)
		x.want(x.open(x.in(name), 0, 0, 0).call, "open with no right "+name, special, special, outside)
	}
	return []numbered{
		{id: "F27", title: "named pipe", files: func(x *onMount) {
			x.must(unix.Mkfifo(x.host("ws/pipe"), 0o600), x.link("pipe", "ws/l"))
			tried(x, "ws/pipe")
			x.reads("ws/l", special, special, outside)
		}},
		{id: "F28", title: "socket and devices", files: func(x *onMount) {
			l, err := (&net.ListenConfig{}).Listen(x.ctx, "unix", x.host("ws/socket"))
			x.must(err)
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			x.must(l.Close())
			tried(x, "ws/socket")
			names := map[string]uint32{"ws/null": unix.S_IFCHR, "ws/block": unix.S_IFBLK}
			for name, kind := range names {
				number := int(unix.Mkdev(1, 3)) // memory: null
				if kind == unix.S_IFBLK {
					number = int(unix.Mkdev(7, 0)) // loop
				}
				if err := unix.Mknod(x.host(name), kind|0o600, number); err != nil {
					x.t.Logf("only root makes devices; those of /dev are tried: %v", err)
					devices(x)
					return
				}
				tried(x, name)
			}
		}},
		{id: "F29", title: "files without an end, by a mount that holds them", files: func(x *onMount) {
			devices(x)
			x.must(x.link("/dev/zero", "ws/zero"))
			x.reads("ws/zero", "EPERM EACCES", "EPERM EACCES", outside)
		}},
	}
}

// devices mounts the devices of the system, as ws is, and tries them.
func devices(x *onMount) {
	if x.kind != absent {
		x.guest.Mounts = append(x.guest.Mounts, policy.Mount{Host: "/dev", Write: x.kind == writable})
	}
	for _, n := range []string{"dev/zero", "dev/null", "dev/tty", "dev/random"} {
		if _, err := os.Lstat("/" + n); err != nil {
			continue
		}
		x.want(x.stat(x.at(n), 0), "see "+n, "ok", "ok", "EPERM")
		x.readsAt(x.at(n), "read "+n, "EACCES", "EACCES", "EPERM")
		x.want(x.open(x.at(n), 0, mayWrite, 0).call, "write to "+n, "EACCES", "EACCES EROFS", "EPERM")
	}
}
