//go:build unix && !(darwin || freebsd || netbsd)

package beneath

import "syscall"

func times(st *syscall.Stat_t) (atim, mtim, ctim int64) {
	return st.Atim.Nano(), st.Mtim.Nano(), st.Ctim.Nano()
}
