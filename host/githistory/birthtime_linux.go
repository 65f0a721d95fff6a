package githistory

import "golang.org/x/sys/unix"

// birthTime returns the creation time of a directory, in nanoseconds since 1970; 0: not known.
// It is needed because a new directory can have the inode number of a deleted one.
func birthTime(name string) int64 {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, name, 0, unix.STATX_BTIME, &st) != nil || st.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
}
