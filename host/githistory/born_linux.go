package githistory

import "golang.org/x/sys/unix"

// born is when a directory was made, in nanoseconds: the number of one that is gone can be
// used again. 0: it is not known.
func born(name string) int64 {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, name, 0, unix.STATX_BTIME, &st) != nil || st.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
}
