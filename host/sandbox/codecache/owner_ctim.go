//go:build unix && !(darwin || freebsd || netbsd)

package codecache

import "syscall"

// changeTime returns the time of the last change of an inode, in nanoseconds since 1970.
func changeTime(st *syscall.Stat_t) int64 { return st.Ctim.Nano() }
