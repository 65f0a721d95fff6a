//go:build unix

package selftest

import (
	"net"

	"golang.org/x/sys/unix"
)

// specialFileAttacks are those on what is neither a file nor a directory, and on
// what only looks like one.
func specialFileAttacks() []fileAttack {
	const special = "neither a file nor a directory"
	opening := func(t *trial, s *script) {
		s.stat(s.at(t.guest("ws/special")), 0).must("see the file")
		s.steal(s.at(t.guest("ws/special")), "open for reading")
		s.overwrite(s.at(t.guest("ws/special")), 0, "open for writing")
	}
	return []fileAttack{
		{name: "named-pipe", tries: "Hang the host on a named pipe in the workspace that nobody writes to.", by: special,
			plant: func(t *trial) error { return unix.Mkfifo(t.host("ws/special"), 0o600) }, try: opening},
		{name: "socket", tries: "Talk to a process of the host through a socket in the workspace.", by: special,
			plant: func(t *trial) error {
				l, err := (&net.ListenConfig{}).Listen(t.ctx, "unix", t.host("ws/special"))
				if err != nil {
					return err
				}
				l.(*net.UnixListener).SetUnlinkOnClose(false)
				return l.Close()
			}, try: opening},
		{name: "mounted-proc", tries: "Read the environment and the memory of the host, and its devices, where everything is mounted.", by: "what shows the kernel", also: []string{"/"},
			try: func(t *trial, s *script) {
				for _, n := range []string{"proc/self/environ", "proc/thread-self/environ", "sys/kernel/uevent_seqnum", "dev/zero"} {
					s.steal(s.at(n), "open /"+n)
				}
				s.overwrite(s.at("proc/self/mem"), 0, "open /proc/self/mem for writing")
				s.openDir(s.at("proc/self/fd")).refused("open the directory /proc/self/fd")
				s.stat(s.at("proc/self"), followLinks).refused("stat /proc/self")
			}},
	}
}
