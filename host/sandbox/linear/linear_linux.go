package linear

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/sandbox/mapped"
)

func reserve(size uint64) ([]byte, error) {
	return unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
}

func release(b []byte) { _ = unix.Munmap(b) }

func newImage(content []byte, size int) (*Image, error) {
	return makeImage(size, func(fd int) error {
		zeros := make([]byte, PageSize)
		for at := 0; at < len(content); at += PageSize {
			page := content[at:min(at+PageSize, len(content))]
			if bytes.Equal(page, zeros[:len(page)]) {
				continue // it stays a hole
			}
			if _, err := unix.Pwrite(fd, page, int64(at)); err != nil {
				return fmt.Errorf("write an image: %w", err)
			}
		}
		return nil
	})
}

// load maps the file and leaves it open, or copies it if its file system must not be mapped.
func load(f *os.File, size int) (*Image, error) {
	if !mapped.IsLocal(f) {
		return loadCopy(f, size)
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	runtime.KeepAlive(f)
	if err != nil {
		return nil, fmt.Errorf("load an image: %w", err)
	}
	i, err := mapImage(fd, size)
	if err != nil {
		_ = unix.Close(fd)
	}
	return i, err
}

// loadCopy lets the kernel copy all parts of the file that are no holes. Reading into memory
// of this process first would cost a page fault for each page.
func loadCopy(f *os.File, size int) (*Image, error) {
	from := int(f.Fd())
	return makeImage(size, func(to int) error {
		err := extents(from, func(at, end int64) error {
			end = min(end, int64(size))
			if _, err := unix.Seek(to, at, io.SeekStart); err != nil {
				return err
			}
			for at < end {
				n, err := unix.Sendfile(to, from, &at, int(end-at))
				switch {
				case err == unix.EINTR:
				case err != nil:
					return err
				case n == 0:
					return io.ErrUnexpectedEOF
				}
			}
			return nil
		})
		runtime.KeepAlive(f)
		if err != nil {
			return fmt.Errorf("load an image: %w", err)
		}
		return nil
	})
}

// makeImage returns an image of size bytes. fill writes them to a new file in memory.
func makeImage(size int, fill func(fd int) error) (_ *Image, err error) {
	fd, err := unix.MemfdCreate("stockade-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if err == unix.EINVAL { // MFD_NOEXEC_SEAL needs Linux 6.3
		fd, err = unix.MemfdCreate("stockade-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("create an image: %w", err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return nil, fmt.Errorf("create an image: %w", err)
	}
	if err := fill(fd); err != nil {
		return nil, err
	}
	seals := unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return nil, fmt.Errorf("seal an image: %w", err)
	}
	return mapImage(fd, size)
}

// mapImage returns an image of a file. On success the image owns the file descriptor.
func mapImage(fd, size int) (*Image, error) {
	b, err := unix.Mmap(fd, 0, size, unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("map an image: %w", err)
	}
	return &Image{bytes: b, file: fd}, nil
}

// extents calls each with the offset and the end of every part of a file that is no hole.
func extents(fd int, each func(from, to int64) error) error {
	for at := int64(0); ; {
		from, err := unix.Seek(fd, at, unix.SEEK_DATA)
		if err == unix.ENXIO {
			return nil // only a hole is left
		}
		if err != nil {
			return err
		}
		if at, err = unix.Seek(fd, from, unix.SEEK_HOLE); err != nil {
			return err
		}
		if err := each(from, at); err != nil {
			return err
		}
	}
}

// write copies only the parts of the image that are no holes, because reading a hole would
// allocate memory for it.
func (i *Image) write(f *os.File) error {
	if err := f.Truncate(int64(len(i.bytes))); err != nil {
		return err
	}
	if err := preallocate(f, int64(len(i.bytes))); err != nil {
		return fmt.Errorf("write an image: %w", &os.PathError{Op: "fallocate", Path: f.Name(), Err: err})
	}
	err := extents(i.file, func(from, to int64) error {
		_, err := f.WriteAt(i.bytes[from:to], from)
		return err
	})
	if err != nil {
		return fmt.Errorf("write an image: %w", err)
	}
	return nil
}

// preallocate allocates the blocks of a file on a file system in memory, or on an overlay,
// which may be in memory. On these, reading a hole of a mapped file allocates memory, and ends
// the process if there is none left.
func preallocate(f *os.File, size int64) error {
	defer runtime.KeepAlive(f)
	fd := int(f.Fd())
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return err
	}
	if t := uint32(st.Type); t != unix.TMPFS_MAGIC && t != unix.OVERLAYFS_SUPER_MAGIC {
		return nil
	}
	for {
		switch err := unix.Fallocate(fd, 0, 0, size); err {
		case unix.EINTR:
		case unix.EOPNOTSUPP, unix.ENOSYS: // not in memory
			return nil
		default:
			return err
		}
	}
}

// Close frees the image. Memories that began as the image keep their content, but can no
// longer be reset.
func (i *Image) Close() {
	if i != nil && i.bytes != nil {
		_ = unix.Munmap(i.bytes)
		_ = unix.Close(i.file)
		i.bytes = nil
	}
}

func (i *Image) mapTo(region []byte) error {
	_, err := unix.MmapPtr(i.file, 0, unsafe.Pointer(unsafe.SliceData(region)), uintptr(len(i.bytes)),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
	return err
}

// pagemap returns /proc/self/pagemap; nil: it cannot be read, as in some containers.
var pagemap = sync.OnceValue(func() *os.File {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return nil
	}
	return f
})

// bestMethod returns the fastest method that works. Trying all of them takes a millisecond.
var bestMethod = sync.OnceValue(func() Method {
	for m := range workingMethods {
		return m
	}
	panic("linear: copying always works")
})

// workingMethods yields the methods that work here, the fastest first, by trying each.
func workingMethods(yield func(Method) bool) {
	for _, m := range []Method{MethodScan, MethodPagemap, MethodDrop} {
		if try(m) == nil && !yield(m) {
			return
		}
	}
	yield(MethodCopy)
}

// try returns an error if resetting a memory with changed pages does not work.
func try(method Method) error {
	content := make([]byte, 9*PageSize)
	for at := range content {
		content[at] = byte(at*7 + at/PageSize)
	}
	clear(content[3*PageSize : 5*PageSize]) // holes in the file
	image, err := NewImage(content)
	if err != nil {
		return err
	}
	defer image.Close()
	m, err := image.MapFor(method, uint64(16*PageSize))
	if err != nil {
		return err
	}
	defer m.Close()
	for _, page := range []int{0, 3, 4, 6, 8} {
		m.region[page*PageSize+5]++
	}
	if _, err := m.Reset(); err != nil {
		return err
	}
	return m.Verify()
}

// maxRestored limits the pages that a reset copies. Further pages are dropped, which frees
// memory: the next call may not need them again.
const maxRestored = 512

func (m *Memory) reset() (int, error) {
	switch m.method {
	case MethodScan:
		return m.resetByScan()
	case MethodPagemap:
		return m.resetByPagemap()
	default:
		return len(m.image.bytes) / PageSize, m.dropPages(0, len(m.image.bytes))
	}
}

// restorePages copies the bytes [from, to) of the image back. If more than maxRestored pages
// were restored before (done), it drops their pages instead.
func (m *Memory) restorePages(done, from, to int) error {
	if done >= maxRestored {
		return m.dropPages(from, to)
	}
	copy(m.region[from:to], m.image.bytes[from:to])
	return nil
}

func (m *Memory) dropPages(from, to int) error {
	if err := unix.Madvise(m.region[from:to:to], unix.MADV_DONTNEED); err != nil {
		return fmt.Errorf("drop changed pages: %w", err)
	}
	return nil
}

func (m *Memory) clearBeyondImage(size int) error { return m.dropPages(len(m.image.bytes), size) }

func (m *Memory) trim() error { return m.dropPages(0, len(m.image.bytes)) }

// Constants of linux/fs.h.
const (
	pageIsFile    = 1 << 2
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4

	pagemapScan = 0xc0606610 // _IOWR('f', 16, struct pm_scan_arg)
)

type scanArg struct {
	size, flags           uint64
	start, end            uint64
	walkEnd               uint64
	vec, vecLen, maxPages uint64
	inverted, mask, anyOf uint64
	returned              uint64
}

type scanRegion struct{ start, end, _ uint64 }

// resetByScan restores the pages in memory or in swap that are no longer those of the file.
func (m *Memory) resetByScan() (pages int, err error) {
	f := pagemap()
	if f == nil {
		return 0, os.ErrPermission
	}
	fd := f.Fd()
	base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(m.region))))
	var found [64]scanRegion
	arg := scanArg{
		size: uint64(unsafe.Sizeof(scanArg{})), start: base, end: base + uint64(len(m.image.bytes)),
		vecLen: uint64(len(found)), inverted: pageIsFile, mask: pageIsFile,
		anyOf: pageIsPresent | pageIsSwapped, returned: pageIsFile,
	}
	var pin runtime.Pinner
	pin.Pin(&found)
	defer pin.Unpin()
	arg.vec = uint64(uintptr(unsafe.Pointer(&found)))
	for {
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, pagemapScan, uintptr(unsafe.Pointer(&arg)))
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return pages, fmt.Errorf("scan for changed pages: %w", errno)
		}
		for _, r := range found[:n] {
			from, to := int(r.start-base), int(r.end-base)
			pages += (to - from) / PageSize
			if err := m.restorePages(pages, from, to); err != nil {
				return pages, err
			}
		}
		if arg.walkEnd >= arg.end {
			return pages, nil
		}
		arg.start = arg.walkEnd
	}
}

// resetByPagemap reads the entry of each page. Bit 61: the page is that of the file; bit 62:
// it is in swap; bit 63: it is in memory.
func (m *Memory) resetByPagemap() (pages int, err error) {
	f := pagemap()
	if f == nil {
		return 0, os.ErrPermission
	}
	first := int64(uintptr(unsafe.Pointer(unsafe.SliceData(m.region)))) / int64(PageSize)
	var entries [512 * 8]byte
	total := len(m.image.bytes) / PageSize
	for at := 0; at < total; {
		n, err := f.ReadAt(entries[:min(len(entries), (total-at)*8)], (first+int64(at))*8)
		if n < 8 {
			return pages, fmt.Errorf("read which pages have changed: %w", err)
		}
		for i := 0; i+8 <= n; i += 8 {
			if e := binary.NativeEndian.Uint64(entries[i:]); e>>62 != 0 && e>>61&1 == 0 {
				pages++
				if err := m.restorePages(pages, at*PageSize, (at+1)*PageSize); err != nil {
					return pages, err
				}
			}
			at++
		}
	}
	return pages, nil
}
