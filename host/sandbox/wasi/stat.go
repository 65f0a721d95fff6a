package wasi

import (
	"encoding/binary"
	"hash/fnv"
	"io/fs"
	"os"

	wsys "github.com/tetratelabs/wazero/sys"
)

// syntheticDev is the device number of synthetic directories. Those of mounts
// follow, in the order of the grant.
const syntheticDev = 1

// describe is what a guest learns about a file of the mount.
func (m *mount) describe(fi os.FileInfo, shown string) wsys.Stat_t {
	st := wsys.NewStat_t(fi)
	st.Ino = m.ino(st.Ino, st.Dev, shown)
	st.Dev = m.dev
	st.Mode = fi.Mode() & (fs.ModeType | fs.ModePerm)
	if fi.Mode().Type() == fs.ModeSymlink {
		// The length of a target that is not told either.
		st.Size = 0
	}
	return st
}

func (f *FS) syntheticStat(shown string) wsys.Stat_t {
	return wsys.Stat_t{Dev: syntheticDev, Ino: hashIno(shown), Mode: fs.ModeDir | 0o555, Nlink: 1}
}

// ino is the number of a file for the guest: that of the host, as long as it
// is on the device of the mount; the host's device numbers stay there. It is
// made up where the host has none.
func (m *mount) ino(ino, dev uint64, shown string) uint64 {
	switch {
	case ino == 0:
		return hashIno(shown)
	case dev == wsys.NewStat_t(m.info).Dev:
		return ino
	}
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], ino)
	binary.LittleEndian.PutUint64(b[8:], dev)
	return hashIno(string(b[:]))
}

// hashIno makes up a number that is not zero, which would be none.
func hashIno(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64() | 1<<63
}
