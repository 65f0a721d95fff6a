package linear

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
)

// PageSize is the size of a page of the system in bytes. Pages of WebAssembly are larger.
var PageSize = os.Getpagesize()

// Image is the content of a linear memory. It never changes, provided that nobody changes the
// file from which it was loaded.
type Image struct {
	bytes []byte // read-only; a mapping on Linux
	file  int    // file descriptor on Linux; -1 elsewhere
}

// NewImage returns an image with a copy of content. Its size is rounded up to whole pages of
// the system, filled with zeros; the memory of a guest already consists of whole pages.
func NewImage(content []byte) (*Image, error) {
	if len(content) == 0 {
		return nil, errors.New("an image of nothing")
	}
	return newImage(content, (len(content)+PageSize-1)/PageSize*PageSize)
}

// Load returns the image in a file of size bytes. Nobody may write to the file while the image
// or a memory that began as the image is in use. Load maps the file; on unknown file systems
// it copies the parts that are no holes.
func Load(f *os.File, size int64) (*Image, error) {
	if size <= 0 || size%int64(PageSize) != 0 || size > math.MaxInt32 {
		return nil, fmt.Errorf("load an image: a file of %d bytes is none", size)
	}
	st, err := f.Stat()
	if err == nil && st.Size() < size {
		err = fmt.Errorf("its file has only %d of %d bytes", st.Size(), size)
	}
	if err != nil {
		return nil, fmt.Errorf("load an image: %w", err)
	}
	return load(f, int(size))
}

// Write writes the image to an empty file. Pages of zeros become holes, unless the file
// system is in memory.
func (i *Image) Write(f *os.File) error { return i.write(f) }

// Bytes returns the content, which must not be changed.
func (i *Image) Bytes() []byte { return i.bytes }

// Memory is the linear memory of one guest.
type Memory struct {
	region []byte // reserved address space; nil after Close
	image  *Image // nil: the memory began empty
	method Method // way of Reset
}

// Reserve returns an empty memory that can grow to limit bytes. All bytes are zeros.
func Reserve(limit uint64) (*Memory, error) {
	region, err := reserve(limit)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of address space: %w", limit, err)
	}
	return &Memory{region: region}, nil
}

// Map returns a memory that begins as the image and can grow to limit bytes. Its Reset uses
// the best [Method] that works here.
func (i *Image) Map(limit uint64) (*Memory, error) { return i.MapFor(bestMethod(), limit) }

// MapFor does the same as Map with a method for Reset, which must work here.
func (i *Image) MapFor(method Method, limit uint64) (*Memory, error) {
	if limit < uint64(len(i.bytes)) {
		return nil, fmt.Errorf("an image of %d bytes does not fit into %d", len(i.bytes), limit)
	}
	m, err := Reserve(limit)
	if err != nil {
		return nil, err
	}
	m.image, m.method = i, method
	if err := i.mapTo(m.region); err != nil {
		m.Close()
		return nil, fmt.Errorf("map an image: %w", err)
	}
	return m, nil
}

// Bytes returns the whole reservation. The part beyond the guest's current size must not be
// read.
func (m *Memory) Bytes() []byte { return m.region }

// Reset restores the changed pages of the image, and returns the number of restored pages. It
// does not clear bytes beyond the image, see [Memory.ClearBeyondImage]. After an error the
// memory must not be used again.
func (m *Memory) Reset() (pages int, err error) {
	if m.method == MethodCopy {
		copy(m.region, m.image.bytes)
		return len(m.image.bytes) / PageSize, nil
	}
	return m.reset()
}

// Trim frees the physical memory of the pages of the image, which the system reads from the
// image again when they are used. It must follow a Reset. It does nothing on systems that copy
// images.
func (m *Memory) Trim() error { return m.trim() }

// ClearBeyondImage sets the bytes from the end of the image to size to zero. size is the
// largest size of the memory since it began. The system gets this memory back, if it can.
// After an error the memory must not be used again.
func (m *Memory) ClearBeyondImage(size uint64) error { return m.clearBeyondImage(int(size)) }

// Verify returns an error if the memory differs from its image.
func (m *Memory) Verify() error {
	have, want := m.region[:len(m.image.bytes)], m.image.bytes
	for at := 0; at < len(want); at += PageSize {
		if !bytes.Equal(have[at:at+PageSize], want[at:at+PageSize]) {
			return fmt.Errorf("page %d of %d differs from the image", at/PageSize, len(want)/PageSize)
		}
	}
	return nil
}

// Close frees the address space. It may be called twice.
func (m *Memory) Close() {
	if m.region != nil {
		release(m.region)
		m.region = nil
	}
}

// Method is a way in which [Memory.Reset] finds and restores changed pages.
type Method string

const (
	MethodScan    Method = "PAGEMAP_SCAN"  // asks the kernel for the changed pages and copies only these pages
	MethodPagemap Method = "pagemap"       // reads an entry for each page and copies the changed pages
	MethodDrop    Method = "MADV_DONTNEED" // drops all pages
	MethodCopy    Method = "copy"          // copies the whole image
)
