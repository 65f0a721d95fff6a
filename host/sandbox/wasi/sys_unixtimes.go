//go:build unix && !linux

package wasi

import (
	"os"

	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"
	"golang.org/x/sys/unix"
)

// setTimes changes the times of an open file, to the microsecond.
func setTimes(f *os.File, atim, mtim int64) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	st := wsys.NewStat_t(fi)
	if atim == sys.UTIME_OMIT {
		atim = st.Atim
	}
	if mtim == sys.UTIME_OMIT {
		mtim = st.Mtim
	}
	return onFd(f, func(fd int) error {
		return unix.Futimes(fd, []unix.Timeval{unix.NsecToTimeval(atim), unix.NsecToTimeval(mtim)})
	})
}
