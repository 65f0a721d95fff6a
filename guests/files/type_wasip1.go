package main

import (
	"io/fs"
	"syscall"
)

// isFile reports whether info is that of a regular file. In WASI a named pipe has no type, and
// package os reports files without a type as regular files.
func isFile(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return info.Mode().IsRegular() && (!ok || st.Filetype == syscall.FILETYPE_REGULAR_FILE)
}
