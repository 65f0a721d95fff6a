//go:build unix

package stage

import (
	"os"
	"syscall"
	"testing"
)

func ownerOf(t *testing.T, p string) (owner [2]uint32) {
	t.Helper()
	fi, err := os.Stat(p)
	if err != nil {
		t.Fatal(err)
	}
	st := fi.Sys().(*syscall.Stat_t)
	return [2]uint32{st.Uid, st.Gid}
}
