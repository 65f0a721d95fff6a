package terminal

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// FlushInput drops input of a terminal that no program has read yet.
func FlushInput(tty *os.File) { _ = unix.IoctlSetInt(int(tty.Fd()), unix.TCFLSH, unix.TCIFLUSH) }

// NoEcho turns the echo of a terminal off and line mode on.
func NoEcho(tty *os.File) error {
	t, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		return err
	}
	t.Lflag &^= unix.ECHO
	t.Lflag |= unix.ICANON | unix.ISIG
	t.Iflag |= unix.ICRNL
	return unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, t)
}

// Cbreak makes a terminal deliver each key as it is pressed, until restore is called.
func Cbreak(tty *os.File) (restore func()) {
	fd := int(tty.Fd())
	was, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return func() {}
	}
	t := *was
	t.Lflag &^= unix.ICANON
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	_ = unix.IoctlSetTermios(fd, unix.TCSETS, &t)
	return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, was) }
}

// ReadHidden reads one line from a terminal after [NoEcho], and no byte more. It returns
// io.EOF if the input ends before anything was typed; x/term would wait twice or forever.
func ReadHidden(tty *os.File) (string, error) {
	var line []byte
	for next := make([]byte, 1); ; {
		_, err := tty.Read(next)
		switch {
		case errors.Is(err, io.EOF) && len(line) > 0, err == nil && next[0] == '\n':
			return string(line), nil
		case err != nil:
			return "", err
		}
		line = append(line, next[0])
	}
}
