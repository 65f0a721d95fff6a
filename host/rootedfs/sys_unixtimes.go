//go:build unix && !linux

package rootedfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// retryByName has nothing to add: there are no descriptors that lack a call.
func retryByName(_ *os.File, err error, _ func(string) error) error { return err }

// SetTimes changes the times of an open file, to the microsecond.
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
