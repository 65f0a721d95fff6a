package main

import (
	"io/fs"
	"syscall"
)

// changeTime returns the time of the last change of a file or its metadata on the host (ctime), in
// nanoseconds since 1970; 0: unknown.
func changeTime(info fs.FileInfo) int64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return int64(st.Ctime)
}
