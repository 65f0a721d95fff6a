//go:build darwin || freebsd || netbsd

package rootedfs

import "syscall"

func times(st *syscall.Stat_t) (atim, mtim, ctim int64) {
	return st.Atimespec.Nano(), st.Mtimespec.Nano(), st.Ctimespec.Nano()
}
