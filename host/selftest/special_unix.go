//go:build unix

package selftest

import (
	"net"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/policy"
)

// specialFileAttacks use files that are neither regular nor directories, or only look
// like it.
func specialFileAttacks() []fileAttack {
	const special, by = "EACCES", "neither a file nor a directory"
	tried := func(x *fileTrial) {
		x.plant(x.link("special", "ws/l"))
		x.expectLink("ws/special")
		x.tryChanges("ws/special", special, "EACCES EROFS", outside)
		x.tryRead("ws/special", special, special, outside)
		x.tryRead("ws/l", special, special, outside)
		x.tryOpen("ws/special", 0, 0, 0, "open with no right", special, special, outside)
	}
	device := func(kind uint32, major, minor uint32) func(x *fileTrial) {
		return func(x *fileTrial) {
			if unix.Mknod(x.hostPath("ws/special"), kind|0o600, int(unix.Mkdev(major, minor))) != nil { // only root can
				tryWholeSystem(x)
				return
			}
			tried(x)
		}
	}
	return []fileAttack{
		{name: "named-pipe", description: "Hang the host on a named pipe in the workspace that nobody writes to.", refusedBy: by, build: func(x *fileTrial) {
			x.plant(unix.Mkfifo(x.hostPath("ws/special"), 0o600))
			tried(x)
		}},
		{name: "socket", description: "Talk to a process of the host through a socket in the workspace.", refusedBy: by, build: func(x *fileTrial) {
			l, err := (&net.ListenConfig{}).Listen(x.ctx, "unix", x.hostPath("ws/special"))
			x.plant(err)
			if err == nil {
				l.(*net.UnixListener).SetUnlinkOnClose(false)
				x.plant(l.Close())
			}
			tried(x)
		}},
		{name: "device", description: "Use a device in the workspace, or where only root makes one, those of the system.", refusedBy: "what is no file, or shows the kernel", build: device(unix.S_IFCHR, 1, 3)},
		{name: "block-device", description: "Use a disk in the workspace, or where only root makes one, the devices of the system.", refusedBy: "what is no file, or shows the kernel", build: device(unix.S_IFBLK, 7, 0)},
		{name: "mounted-proc", description: "Read the environment and the memory of the host, and its devices, where everything is mounted.", refusedBy: "what shows the kernel", build: func(x *fileTrial) {
			tryWholeSystem(x)
			x.plant(x.link("/dev/zero", "ws/zero"))
			x.tryRead("ws/zero", "EPERM EACCES", "EPERM EACCES", outside)
		}},
	}
}

// tryWholeSystem mounts all files of the system, with the rights of ws, and tries the
// files that show devices and processes.
func tryWholeSystem(x *fileTrial) {
	if x.kind != absent {
		x.grant.Mounts = append(x.grant.Mounts, policy.Mount{Host: "/", Write: x.kind == writable})
	}
	for _, n := range []string{
		"dev/zero", "dev/null", "dev/tty", "dev/random", "proc/self/environ", "proc/thread-self/environ", "proc/self/mem", "sys/kernel/uevent_seqnum",
	} {
		x.tryReadAt(x.place(n), "read "+n, outside)
		x.expect(x.open(x.place(n), 0, rightsWrite, 0).call, "open for writing "+n, outside, "EPERM EROFS", outside)
	}
	x.expect(x.openDir(x.place("proc/self/fd")).call, "open the directory /proc/self/fd", outside)
	x.expect(x.stat(x.place("proc/self"), followLinks), "stat /proc/self", outside)
	x.expect(x.stat(x.place("dev/zero"), 0), "see /dev/zero", outside)
}
