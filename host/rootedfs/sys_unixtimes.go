//go:build unix && !linux

package rootedfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// retryByName returns err: every open file has all calls here.
func retryByName(_ *os.File, err error, _ func(string) error) error { return err }

// SetTimes sets the times of an open file as on Linux, with a precision of microseconds.
func SetTimes(f *os.File, atim, mtim int64) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	st := StatOf(fi)
	if atim == OmitTime {
		atim = st.Atim
	}
	if mtim == OmitTime {
		mtim = st.Mtim
	}
	return onFd(f, func(fd int) error {
		return unix.Futimes(fd, []unix.Timeval{unix.NsecToTimeval(atim), unix.NsecToTimeval(mtim)})
	})
}
