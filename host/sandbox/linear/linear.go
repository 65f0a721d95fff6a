package linear

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
)

// PageSize is that of the system's memory, not of WebAssembly's.
var PageSize = os.Getpagesize()

// Image is the content of a linear memory. It never changes, if the file that
// it was loaded from does not.
type Image struct {
	bytes []byte // a read-only mapping where there are such
	file  int    // on Linux; or -1
}

// NewImage copies the content of an image. Its size is rounded up to whole
// pages of the system, with zeros; WebAssembly's pages already are.
func NewImage(content []byte) (*Image, error) {
	if len(content) == 0 {
		return nil, errors.New("an image of nothing")
	}
	return newImage(content, (len(content)+PageSize-1)/PageSize*PageSize)
}

// Load makes an image of a file of so many bytes, which nobody may write to as
// long as there is the image or a memory that began as it. It maps the file; on
// file systems that it does not know it copies what is no hole.
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

// Write writes the image to an empty file. Pages of zeros become holes,
// except where the file is in memory.
func (i *Image) Write(f *os.File) error { return i.write(f) }

// Bytes is the content. It must not be written to.
func (i *Image) Bytes() []byte { return i.bytes }

// Memory is the linear memory of one guest.
type Memory struct {
	region []byte
	image  *Image // or nil
	method Method
}

// Reserve returns a memory of zeros that can be limit bytes large.
func Reserve(limit uint64) (*Memory, error) {
	region, err := reserve(limit)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of address space: %w", limit, err)
	}
	return &Memory{region: region}, nil
}

// Map returns a memory that begins as the image and can be limit bytes large.
// It is reset with the best [Method] that works here.
func (i *Image) Map(limit uint64) (*Memory, error) { return i.MapFor(bestMethod(), limit) }

// MapFor is Map for a certain method, which must work here.
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

// Bytes is the whole reservation; what lies beyond the size of the guest's
// memory must not be read.
func (m *Memory) Bytes() []byte { return m.region }

// Reset puts back what was changed of the image, and returns how many pages
// that were. What lies beyond the image is for [Memory.ClearBeyondImage]. After an error the memory
// must not be used again.
func (m *Memory) Reset() (pages int, err error) {
	if m.method == MethodCopy {
		copy(m.region, m.image.bytes)
		return len(m.image.bytes) / PageSize, nil
	}
	return m.reset()
}

// Trim gives back the physical memory of pages that equal the image, where the
// system can have them again from the image itself. It must follow a Reset.
func (m *Memory) Trim() error { return m.trim() }

// ClearBeyondImage makes zeros of what lies between the image and a size that the memory had, and
// gives that back to the system where it takes it. After an error the memory must not be
// used again.
func (m *Memory) ClearBeyondImage(size uint64) error { return m.clearBeyondImage(int(size)) }

// Verify compares the memory with its image.
func (m *Memory) Verify() error {
	have, want := m.region[:len(m.image.bytes)], m.image.bytes
	for at := 0; at < len(want); at += PageSize {
		if !bytes.Equal(have[at:at+PageSize], want[at:at+PageSize]) {
			return fmt.Errorf("page %d of %d differs from the image", at/PageSize, len(want)/PageSize)
		}
	}
	return nil
}

// Close gives the address space back. It may be called twice.
func (m *Memory) Close() {
	if m.region != nil {
		release(m.region)
		m.region = nil
	}
}

// Method is how [Memory.Reset] finds what has changed.
type Method string

const (
	MethodScan    Method = "PAGEMAP_SCAN"  // asks for the changed pages and copies them
	MethodPagemap Method = "pagemap"       // reads an entry for each page and copies the changed ones
	MethodDrop    Method = "MADV_DONTNEED" // drops the changed pages
	MethodCopy    Method = "copy"          // copies everything
)
