//go:build unix && !(darwin || freebsd || netbsd)

package codecache

import "syscall"

// changeTime is when an inode was last changed, in nanoseconds.
func changeTime(st *syscall.Stat_t) int64 { return st.Ctim.Nano() }
