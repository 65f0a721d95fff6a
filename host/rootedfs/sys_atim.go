//go:build unix && !(darwin || freebsd || netbsd)

package rootedfs

import "syscall"

func times(st *syscall.Stat_t) (atim, mtim, ctim int64) {
	return st.Atim.Nano(), st.Mtim.Nano(), st.Ctim.Nano()
}
