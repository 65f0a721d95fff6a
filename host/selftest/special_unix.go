//go:build unix

package selftest

import (
	"net"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/policy"
)

// specialFileAttacks are those on what is neither a file nor a directory, and on
// what only looks like one.
func specialFileAttacks() []fileAttack {
	const special, by = "EACCES", "neither a file nor a directory"
	tried := func(x *onMount) {
		x.plant(x.link("special", "ws/l"))
		x.seesLink("ws/special")
		x.changing("ws/special", special, "EACCES EROFS", outside)
		x.reads("ws/special", special, special, outside)
		x.reads("ws/l", special, special, outside)
		x.opens("ws/special", 0, 0, 0, "open with no right", special, special, outside)
	}
	device := func(kind uint32, major, minor uint32) func(x *onMount) {
		return func(x *onMount) {
			if unix.Mknod(x.host("ws/special"), kind|0o600, int(unix.Mkdev(major, minor))) != nil { // only root can
				everything(x)
				return
			}
			tried(x)
		}
	}
	return []fileAttack{
		{name: "named-pipe", tries: "Hang the host on a named pipe in the workspace that nobody writes to.", by: by, build: func(x *onMount) {
			x.plant(unix.Mkfifo(x.host("ws/special"), 0o600))
			tried(x)
		}},
		{name: "socket", tries: "Talk to a process of the host through a socket in the workspace.", by: by, build: func(x *onMount) {
			l, err := (&net.ListenConfig{}).Listen(x.ctx, "unix", x.host("ws/special"))
			x.plant(err)
			if err == nil {
				l.(*net.UnixListener).SetUnlinkOnClose(false)
				x.plant(l.Close())
			}
			tried(x)
		}},
		{name: "device", tries: "Use a device in the workspace, or where only root makes one, those of the system.", by: "what is no file, or shows the kernel", build: device(unix.S_IFCHR, 1, 3)},
		{name: "block-device", tries: "Use a disk in the workspace, or where only root makes one, the devices of the system.", by: "what is no file, or shows the kernel", build: device(unix.S_IFBLK, 7, 0)},
		{name: "mounted-proc", tries: "Read the environment and the memory of the host, and its devices, where everything is mounted.", by: "what shows the kernel", build: func(x *onMount) {
			everything(x)
			x.plant(x.link("/dev/zero", "ws/zero"))
			x.reads("ws/zero", "EPERM EACCES", "EPERM EACCES", outside)
		}},
	}
}

// everything mounts all files of the system, as ws is, and tries what shows
// devices and processes.
func everything(x *onMount) {
	if x.kind != absent {
		x.grant.Mounts = append(x.grant.Mounts, policy.Mount{Host: "/", Write: x.kind == writable})
	}
	for _, n := range []string{
		"dev/zero", "dev/null", "dev/tty", "dev/random", "proc/self/environ", "proc/thread-self/environ", "proc/self/mem", "sys/kernel/uevent_seqnum",
	} {
		x.readsAt(x.at(n), "read "+n, outside)
		x.want(x.open(x.at(n), 0, mayWrite, 0).call, "open for writing "+n, outside, "EPERM EROFS", outside)
	}
	x.want(x.openDir(x.at("proc/self/fd")).call, "open the directory /proc/self/fd", outside)
	x.want(x.stat(x.at("proc/self"), followLinks), "stat /proc/self", outside)
	x.want(x.stat(x.at("dev/zero"), 0), "see /dev/zero", outside)
}
