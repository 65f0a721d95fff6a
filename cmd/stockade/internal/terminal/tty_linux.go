package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// FlushInput drops what was typed on a terminal before now.
func FlushInput(tty *os.File) { _ = unix.IoctlSetInt(int(tty.Fd()), unix.TCFLSH, unix.TCIFLUSH) }

// NoEcho keeps a terminal from showing what is typed from now on.
func NoEcho(tty *os.File) error {
	t, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		return err
	}
	t.Lflag &^= unix.ECHO
	return unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, t)
}
