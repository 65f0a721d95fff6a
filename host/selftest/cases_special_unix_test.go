//go:build unix

package selftest

import (
	"net"

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
					everything(x)
					return
				}
				tried(x, name)
			}
		}},
		{id: "F29", title: "files without an end, and the host's own memory, by a mount that holds everything", files: func(x *onMount) {
			everything(x)
			x.must(x.link("/dev/zero", "ws/zero"))
			x.reads("ws/zero", "EPERM EACCES", "EPERM EACCES", outside)
		}},
	}
}

// everything mounts all files of the system, as ws is, and tries what shows
// devices and processes.
func everything(x *onMount) {
	const outside = "EPERM"
	if x.kind != absent {
		x.guest.Mounts = append(x.guest.Mounts, policy.Mount{Host: "/", Write: x.kind == writable})
	}
	for _, n := range []string{"dev/zero", "dev/null", "dev/tty", "dev/random", "proc/self/environ", "proc/self/mem"} {
		x.want(x.stat(x.at(n), 0), "see "+n, outside, outside, outside)
		x.readsAt(x.at(n), "read "+n, outside, outside, outside)
		x.want(x.open(x.at(n), 0, mayWrite, 0).call, "write to "+n, outside, "EPERM EROFS", outside)
	}
}
