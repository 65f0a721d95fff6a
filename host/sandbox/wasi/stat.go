package wasi

import (
	"encoding/binary"
	"hash/fnv"
	"io/fs"
	"os"
	"strconv"

	"github.com/stockade-dev/stockade/host/rootedfs"
	"github.com/stockade-dev/stockade/host/stage"
)

// FileType is the kind of a file, with the numbers of WASI preview 1.
type FileType uint8

// The file types. All other types of the host, such as FIFOs, are Unknown to a guest.
const (
	Unknown         FileType = 0
	BlockDevice     FileType = 1
	CharacterDevice FileType = 2
	Directory       FileType = 3
	RegularFile     FileType = 4
	SocketStream    FileType = 6
	SymbolicLink    FileType = 7
)

func typeOfMode(m fs.FileMode) FileType {
	switch m.Type() {
	case 0:
		return RegularFile
	case fs.ModeDir:
		return Directory
	case fs.ModeSymlink:
		return SymbolicLink
	case fs.ModeSocket:
		return SocketStream
	case fs.ModeDevice:
		return BlockDevice
	case fs.ModeDevice | fs.ModeCharDevice:
		return CharacterDevice
	}
	return Unknown
}

// Stat describes a file to a guest. Times are nanoseconds since 1970. Size is in bytes, and 0
// for a symbolic link.
type Stat struct {
	Dev, Ino         uint64
	Type             FileType
	Nlink            uint64
	Size             uint64
	Atim, Mtim, Ctim int64
}

// OmitTime is the value for a time that stays unchanged.
const OmitTime = rootedfs.OmitTime

// syntheticDev is the device number of synthetic directories. The mounts have the numbers
// after it, in the order of the grant.
const syntheticDev = 1

// describe returns the description of a file for the guest. shown is its absolute name.
func (m *mount) describe(fi os.FileInfo, shown string) Stat {
	var st rootedfs.Stat
	if info, staged := fi.(stage.Info); staged {
		st = info.Stat()
		if made := info.Node.Serial(); made != 0 {
			shown = m.guest + "\x00" + strconv.FormatUint(made, 10)
		}
	} else {
		st = rootedfs.StatOf(fi)
	}
	st.Ino = m.ino(st.Ino, st.Dev, shown)
	out := Stat{Dev: m.dev, Ino: st.Ino, Type: typeOfMode(fi.Mode()), Nlink: st.Nlink, Atim: st.Atim, Mtim: st.Mtim, Ctim: st.Ctim}
	if out.Type != SymbolicLink { // the length of a link's target is hidden too
		out.Size = uint64(max(fi.Size(), 0))
	}
	return out
}

func syntheticStat(shown string) Stat {
	return Stat{Dev: syntheticDev, Ino: hashIno(shown), Type: Directory, Nlink: 1}
}

// ino returns the inode number of a file for the guest: the host's number if the file is on
// the device of the mount, else a hash. Device numbers of the host are not shown. If the host
// has no number, it is a hash of the name.
func (m *mount) ino(ino, dev uint64, shown string) uint64 {
	switch {
	case ino == 0:
		return hashIno(shown)
	case dev == rootedfs.StatOf(m.info).Dev:
		return ino
	}
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], ino)
	binary.LittleEndian.PutUint64(b[8:], dev)
	return hashIno(string(b[:]))
}

// hashIno returns a made-up inode number for a text. It is never zero: that means no number.
func hashIno(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64() | 1<<63
}
