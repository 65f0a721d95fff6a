package main

import (
	"io/fs"
	"syscall"
)

// isFile reports whether it is a regular file. A pipe has no type in WASI, and package
// os takes what has none for a regular file.
func isFile(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return info.Mode().IsRegular() && (!ok || st.Filetype == syscall.FILETYPE_REGULAR_FILE)
}
