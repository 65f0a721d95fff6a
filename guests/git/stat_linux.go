package main

import (
	"io/fs"
	"syscall"
)

// changeTime is when the host changed something of a file, in nanoseconds.
func changeTime(info fs.FileInfo) (int64, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return st.Ctim.Nano(), true
}
