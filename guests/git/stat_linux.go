package main

import (
	"io/fs"
	"syscall"
)

// changeTime is when the host changed something of a file, in nanoseconds; 0 is
// not known.
func changeTime(info fs.FileInfo) int64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return st.Ctim.Nano()
}
