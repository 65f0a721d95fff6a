package main

import (
	"io/fs"
	"syscall"
)

// changeTime returns the time at which the host last changed a file or its metadata
// (ctime), in nanoseconds; 0: unknown.
func changeTime(info fs.FileInfo) int64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return int64(st.Ctime)
}
