//go:build unix

package selftest

import (
	"net"

	"golang.org/x/sys/unix"
)

// specialFileAttacks are those on files that are neither files nor directories.
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
	}
}
