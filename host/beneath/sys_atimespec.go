//go:build darwin || freebsd || netbsd

package beneath

import "syscall"

func times(st *syscall.Stat_t) (atim, mtim, ctim int64) {
	return st.Atimespec.Nano(), st.Mtimespec.Nano(), st.Ctimespec.Nano()
}
