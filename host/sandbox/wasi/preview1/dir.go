package preview1

import "github.com/stockade-dev/stockade/host/sandbox/wasi"

const direntBytes = 24

// fdReaddir fills a buffer with entries; the last entry may be cut. A buffer that is not full
// marks the end of the directory.
func fdReaddir(g guest, d *descriptor) wasi.Errno {
	out, errno := g.result(1, uint64(g.u32(2)))
	if errno != 0 {
		return errno
	}
	size, errno := g.result(4, 4)
	if errno != 0 {
		return errno
	}
	dir, errno := g.w.openDir(d)
	if errno != 0 {
		return errno
	}
	cookie, used := g.u64(3), 0
	for i := 0; used < len(out); i++ {
		if i%16 == 15 {
			g.w.checkpoint()
		}
		e, more, errno := dir.Entry(cookie)
		if errno != 0 {
			return errno
		}
		if !more {
			break
		}
		cookie = e.Next
		if e.Name == "" {
			continue
		}
		var header [direntBytes]byte
		le.PutUint64(header[:], e.Next)
		le.PutUint64(header[8:], e.Ino)
		le.PutUint32(header[16:], uint32(len(e.Name)))
		header[20] = byte(e.Type)
		used += copy(out[used:], header[:])
		used += copy(out[used:], e.Name)
	}
	le.PutUint32(size, uint32(used))
	return 0
}
