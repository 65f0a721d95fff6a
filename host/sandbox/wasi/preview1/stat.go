package preview1

import (
	"math"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

const fdstatBytes = 24

func fdFdstatGet(g guest, d *descriptor) wasi.Errno {
	out, errno := g.result(1, fdstatBytes)
	if errno != 0 {
		return errno
	}
	clear(out)
	out[0] = byte(d.filetype())
	le.PutUint16(out[2:], uint16(d.flags))
	le.PutUint64(out[8:], uint64(d.base))
	le.PutUint64(out[16:], uint64(d.inheriting))
	return 0
}

// filetype returns the type of a descriptor. A stream is Unknown: if it were a character
// device, a guest would take it for a terminal.
func (d *descriptor) filetype() wasi.FileType {
	switch d.kind {
	case regular:
		return wasi.RegularFile
	case directory:
		return wasi.Directory
	}
	return wasi.Unknown
}

// fdFdstatSetFlags changes the flags that can change without opening the file again.
func fdFdstatSetFlags(g guest, d *descriptor) wasi.Errno {
	want := g.u32(1)
	flags := fdflags(want)
	switch {
	case want&^uint32(allFlags) != 0, d.kind == directory && flags&flagAppend != 0:
		return wasi.EINVAL
	case (flags^d.flags)&flagsSync != 0:
		return wasi.ENOTSUP
	}
	if d.kind == regular {
		if errno := d.file.SetAppend(flags&flagAppend != 0); errno != 0 {
			return errno
		}
	}
	d.flags = flags
	return 0
}

func fdFdstatSetRights(g guest, d *descriptor) wasi.Errno {
	base, inheriting := rights(g.u64(1)), rights(g.u64(2))
	if base&^d.base != 0 || inheriting&^d.inheriting != 0 {
		return wasi.ENOTCAPABLE
	}
	d.base, d.inheriting = base, inheriting
	return 0
}

func fdFilestatGet(g guest, d *descriptor) wasi.Errno {
	out, errno := g.result(1, g.e.filestatBytes)
	if errno != 0 {
		return errno
	}
	h, errno := g.w.handle(d)
	if errno != 0 {
		return errno
	}
	st := wasi.Stat{Type: d.filetype(), Nlink: 1}
	if h != nil {
		if st, errno = h.Stat(); errno != 0 {
			return errno
		}
	}
	g.e.putFilestat(out, st)
	return 0
}

func (e *edition) putFilestat(out []byte, st wasi.Stat) {
	clear(out)
	le.PutUint64(out, st.Dev)
	le.PutUint64(out[8:], st.Ino)
	out[16] = byte(st.Type)
	rest := out[e.filestatBytes-32:]
	if e == editions[UnstableName] {
		le.PutUint32(out[20:], uint32(min(st.Nlink, math.MaxUint32)))
	} else {
		le.PutUint64(out[24:], st.Nlink)
	}
	le.PutUint64(rest, st.Size)
	for i, t := range []int64{st.Atim, st.Mtim, st.Ctim} {
		le.PutUint64(rest[8+8*i:], uint64(max(t, 0))) // times before 1970 are written as 0
	}
}

func fdFilestatSetSize(g guest, d *descriptor) wasi.Errno {
	size := g.u64(1)
	if size > math.MaxInt64 {
		return wasi.EFBIG
	}
	return d.file.Truncate(int64(size))
}

func fdFilestatSetTimes(g guest, d *descriptor) wasi.Errno {
	atim, mtim, errno := g.times(1)
	if errno != 0 {
		return errno
	}
	h, errno := g.w.handle(d)
	if errno != 0 {
		return errno
	}
	return h.SetTimes(atim, mtim) // a stream lacks the right
}

const (
	setAtim = 1 << iota
	setAtimNow
	setMtim
	setMtimNow
)

// times decodes the access time, the modification time and the flags in the parameters i to
// i+2. A time that is not to be set is [wasi.OmitTime].
func (g guest) times(i int) (atim, mtim int64, _ wasi.Errno) {
	flags := g.u32(i + 2)
	if flags >= setMtimNow<<1 {
		return 0, 0, wasi.EINVAL
	}
	atim, errno := g.time(g.u64(i), flags&setAtim != 0, flags&setAtimNow != 0)
	if errno != 0 {
		return 0, 0, errno
	}
	mtim, errno = g.time(g.u64(i+1), flags&setMtim != 0, flags&setMtimNow != 0)
	return atim, mtim, errno
}

func (g guest) time(t uint64, set, now bool) (int64, wasi.Errno) {
	switch {
	case set && now, set && t > math.MaxInt64:
		return 0, wasi.EINVAL
	case set:
		return int64(t), 0
	case now:
		return int64(g.w.realtime()), 0
	}
	return wasi.OmitTime, 0
}
