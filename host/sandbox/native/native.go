// Package native stores the native code of a module in a file, from which the engine maps the
// code instead of copying it.
//
// The engine (wazero 1.12) reads its own files with read(2) into new memory. The system
// clears each page of this memory in a page fault, before the code is copied. For the 14 MiB
// of a small Go program that is two thirds of the loading time, and every process needs the
// memory for itself. The engine has no interface to change this. But it has a field with an
// interface for its files, which [NewCache] sets by reflection, if [Supported] reports that
// this is the engine for which this package was written.
//
// A file has the format of the engine's own files, but the code begins at a page:
//
//	head  "WAZEVO", the length of the version in a byte, the version, the number
//	      of functions in 4 bytes, the offset of each function in 8 bytes, the
//	      length of the code in 8 bytes; all little endian
//	      zeros up to the next 64 KiB
//	code
//	tail  the CRC-32C of the code in 4 bytes, and further data of the engine
package native

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// alignment of the code in a file, in bytes: a multiple of every system's page size.
const alignment = 64 << 10

const magic = "WAZEVO"

// maxFuncs limits the memory for a head that was not checked yet: a head with more functions
// is an error. Modules with more are not admitted.
const maxFuncs = 1 << 20

var errFormat = errors.New("it is not the engine's native code")

// File is an open file of native code. It is only read, and safe for concurrent use.
type File struct {
	f            *os.File
	head, tail   []byte
	offset, size int64 // offset and size of the code, in bytes
}

// Open reads all parts of a file except the code. The File closes f; if Open fails, it closes
// f itself.
func Open(f *os.File) (_ *File, err error) {
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	head, size, err := readHead(f)
	if err != nil {
		return nil, err
	}
	offset := aligned(len(head))
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if size > st.Size()-offset {
		return nil, fmt.Errorf("%w: it ends within the code", errFormat)
	}
	tail, err := io.ReadAll(io.NewSectionReader(f, offset+size, st.Size()-offset-size))
	if err != nil {
		return nil, err
	}
	return &File{f, head, tail, offset, size}, nil
}

// Close closes the file. Code that was loaded stays loaded.
func (f *File) Close() error { return f.f.Close() }

// HeadAndTail returns the file without the code. The engine checks a sum of the code.
func (f *File) HeadAndTail() []byte { return append(bytes.Clone(f.head), f.tail...) }

// Parts returns the parts of a file, from which a later program can rebuild it with
// [RebuildHead]: the head without the engine's version, the tail, and the code, which can be
// read until the File is closed.
func (f *File) Parts() (head, tail []byte, code *io.SectionReader) {
	return f.head[versionEnd(f.head):], f.tail, io.NewSectionReader(f.f, f.offset, f.size)
}

// RebuildHead returns the head of a file for the engine in this program, and the offset and
// the size of the code in that file. part is a head that Parts has returned.
func RebuildHead(part []byte) (head []byte, offset, size int64, _ error) {
	version := fileVersion()
	head = append([]byte(magic), byte(len(version)))
	head = append(append(head, version...), part...)
	read, size, err := readHead(bytes.NewReader(head))
	if err == nil && len(read) != len(head) {
		err = fmt.Errorf("%w: there is more than a head", errFormat)
	}
	return head, aligned(len(head)), size, err
}

func versionEnd(head []byte) int { return len(magic) + 1 + int(head[len(magic)]) }

// Align writes a file of the engine (from) to an empty file (to) as a file of this package.
func Align(to, from *os.File) error {
	head, size, err := readHead(from)
	if err != nil {
		return err
	}
	// The length of the code is not checked here. A wrong length is an error of Open or of
	// the engine, and never more than the file is written.
	if _, err := to.Write(append(head, make([]byte, aligned(len(head))-int64(len(head)))...)); err != nil {
		return err
	}
	if _, err := from.Seek(int64(len(head)), io.SeekStart); err != nil {
		return err
	}
	if _, err := io.CopyN(to, from, size); err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return err
}

func aligned(n int) int64 { return (int64(n) + alignment - 1) / alignment * alignment }

// readHead returns the bytes before the code, and the length of the code in bytes.
func readHead(f io.ReaderAt) (head []byte, code int64, err error) {
	head = make([]byte, len(magic)+1)
	fill := func(more int) {
		at := len(head)
		head = append(head, make([]byte, more)...)
		if err == nil {
			_, err = f.ReadAt(head[at:], int64(at))
		}
	}
	if _, err = f.ReadAt(head, 0); err == nil && string(head[:len(magic)]) != magic {
		return nil, 0, errFormat
	}
	fill(int(head[len(magic)]) + 4)
	funcs := binary.LittleEndian.Uint32(head[len(head)-4:])
	if err == nil && funcs > maxFuncs {
		return nil, 0, fmt.Errorf("%w: it has %d functions", errFormat, funcs)
	}
	if err == nil {
		fill(int(funcs)*8 + 8)
	}
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: it ends within the head", errFormat)
	}
	if err != nil {
		return nil, 0, err
	}
	size := binary.LittleEndian.Uint64(head[len(head)-8:])
	if size > 1<<40 {
		return nil, 0, fmt.Errorf("%w: it has %d bytes of code", errFormat, size)
	}
	return head, int64(size), nil
}

// stream returns the content of the file in the engine's own format.
func (f *File) stream() io.Reader {
	code := &codeReader{f.f, f.offset, f.size, io.NewSectionReader(f.f, f.offset, f.size)}
	return io.MultiReader(bytes.NewReader(f.head), code, bytes.NewReader(f.tail))
}

// codeReader reads the code. If the engine asks for all of it at once, it is mapped.
type codeReader struct {
	f            *os.File
	offset, size int64
	rest         *io.SectionReader
}

func (c *codeReader) Read(p []byte) (int, error) {
	if c.rest.Size() == int64(len(p)) && mapInto(p, c.f, c.offset) {
		c.rest = io.NewSectionReader(c.f, 0, 0)
		return len(p), nil
	}
	return c.rest.Read(p)
}
