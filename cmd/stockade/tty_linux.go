package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushInput drops what was typed on a terminal before now.
func flushInput(tty *os.File) { _ = unix.IoctlSetInt(int(tty.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
