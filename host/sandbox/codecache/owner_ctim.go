//go:build unix && !(darwin || freebsd || netbsd)

package codecache

import "syscall"

// changed is when an inode was last changed, in nanoseconds.
func changed(st *syscall.Stat_t) int64 { return st.Ctim.Nano() }
