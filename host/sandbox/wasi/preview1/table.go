package preview1

import (
	"io"
	"strings"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

type kind uint8

const (
	stream kind = iota
	regular
	directory
)

// descriptor is an open file, directory or stream of a guest.
type descriptor struct {
	kind             kind
	base, inheriting rights // rights of the descriptor, and of those that are opened through it
	flags            fdflags

	file *wasi.File // regular file; nil for other kinds

	// Of a stream:
	in  *strings.Reader // nil for an empty input
	out io.Writer

	// Of a directory:
	dir     *wasi.Dir // nil for a preopen of which only the name was used so far
	name    string    // absolute name of the directory
	preopen string    // name of a preopen for the guest; "": it is none
}

// rootPreopenName is the name of the first preopen, whatever is mounted. Guests whose
// functions are called read the list of preopens once, before the first call.
const rootPreopenName = "/"

type fdflags uint16

const (
	flagAppend fdflags = 1 << iota
	flagDsync
	flagNonblock
	flagRsync
	flagSync

	flagsSync = flagDsync | flagRsync | flagSync
	allFlags  = flagSync<<1 - 1
)

// fd returns the open descriptor with a number, or EBADF.
func (w *World) fd(n uint32) (*descriptor, wasi.Errno) {
	if uint64(n) >= uint64(len(w.fds)) || w.fds[n] == nil {
		return nil, wasi.EBADF
	}
	return w.fds[n], 0
}

// kindErrnos holds a function's error for each kind of descriptor; 0: the kind is accepted.
type kindErrnos [directory + 1]wasi.Errno

var (
	anyKind       kindErrnos
	fileOrStream  = kindErrnos{directory: wasi.EISDIR}
	regularOnly   = kindErrnos{directory: wasi.EISDIR, stream: wasi.ESPIPE}
	directoryOnly = kindErrnos{regular: wasi.ENOTDIR, stream: wasi.ENOTDIR}
	noStream      = kindErrnos{stream: wasi.EINVAL}
)

// checkedFD returns the open descriptor n. Without one the error is EBADF, for a kind that is
// wrong it is that of wrong, and without the rights need ENOTCAPABLE.
func (w *World) checkedFD(n uint32, wrong kindErrnos, need rights) (*descriptor, wasi.Errno) {
	d, errno := w.fd(n)
	if errno != 0 {
		return nil, errno
	}
	if errno := wrong[d.kind]; errno != 0 {
		return nil, errno
	}
	return d, d.checkRights(need)
}

// fdFunc returns a function of WASI that do carries out with the descriptor in parameter 0.
// wrong and need are as in checkedFD.
func fdFunc(wrong kindErrnos, need rights, do func(guest, *descriptor) wasi.Errno) func(guest) wasi.Errno {
	return func(g guest) wasi.Errno {
		d, errno := g.w.checkedFD(g.u32(0), wrong, need)
		if errno != 0 {
			return errno
		}
		return do(g, d)
	}
}

func (d *descriptor) checkRights(need rights) wasi.Errno {
	if d.base&need != need {
		return wasi.ENOTCAPABLE
	}
	return 0
}

// openDir returns the directory of a descriptor. It opens a preopen that is not open yet.
func (w *World) openDir(d *descriptor) (*wasi.Dir, wasi.Errno) {
	if d.dir == nil {
		h, errno := w.opts.FS.Open(d.name, wasi.DirectoryOnly)
		if errno != 0 {
			return nil, errno
		}
		d.dir = h.(*wasi.Dir)
	}
	return d.dir, 0
}

// handle returns the open file or directory of a descriptor; nil for a stream.
func (w *World) handle(d *descriptor) (wasi.Handle, wasi.Errno) {
	switch d.kind {
	case regular:
		return d.file, 0
	case directory:
		dir, errno := w.openDir(d)
		if errno != 0 {
			return nil, errno
		}
		return dir, 0
	}
	return nil, 0
}

// add gives a descriptor the lowest free number, which is returned. The FS limits descriptors.
func (w *World) add(d *descriptor) uint32 {
	for n, other := range w.fds {
		if other == nil {
			w.fds[n] = d
			return uint32(n)
		}
	}
	w.fds = append(w.fds, d)
	return uint32(len(w.fds) - 1)
}

func (w *World) close(n uint32) {
	d := w.fds[n]
	w.fds[n] = nil
	switch {
	case d.file != nil:
		d.file.Close()
	case d.dir != nil:
		d.dir.Close()
	}
}

func fdClose(g guest) wasi.Errno {
	n := g.u32(0)
	if _, errno := g.w.fd(n); errno != 0 {
		return errno
	}
	g.w.close(n)
	return 0
}

// fdRenumber moves a descriptor to the number of another, which is closed. The other must be
// open, so that the table does not grow.
func fdRenumber(g guest) wasi.Errno {
	from, to := g.u32(0), g.u32(1)
	d, errno := g.w.fd(from)
	if errno != 0 {
		return errno
	}
	if _, errno := g.w.fd(to); errno != 0 || from == to {
		return errno
	}
	g.w.close(to)
	g.w.fds[to], g.w.fds[from] = d, nil
	return 0
}

// prestat returns the name of the preopen in parameter 0, and the memory for a result of n
// bytes at the pointer in parameter 1.
func (g guest) prestat(n uint64) (string, []byte, wasi.Errno) {
	d, errno := g.w.fd(g.u32(0))
	switch {
	case errno != 0:
		return "", nil, errno
	case d.preopen == "":
		return "", nil, wasi.EBADF
	}
	out, errno := g.result(1, n)
	return d.preopen, out, errno
}

func fdPrestatGet(g guest) wasi.Errno {
	name, out, errno := g.prestat(8)
	if errno != 0 {
		return errno
	}
	le.PutUint32(out, 0) // a directory
	le.PutUint32(out[4:], uint32(len(name)))
	return 0
}

func fdPrestatDirName(g guest) wasi.Errno {
	name, out, errno := g.prestat(uint64(g.u32(2)))
	if errno != 0 {
		return errno
	}
	if len(out) < len(name) {
		return wasi.ENAMETOOLONG
	}
	copy(out, name)
	return 0
}
