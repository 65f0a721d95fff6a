// Package native keeps the native code of a module in a file of which the
// engine maps the code instead of copying it.
//
// The engine (wazero 1.12) reads its own files with read(2) into memory that
// it has just got: the system clears each page of that, and gives it in a page
// fault of its own, before the code is copied there. For the 14 MiB of a small
// Go program that is two thirds of the time that loading takes, and memory that
// every process has for itself. The engine has no interface for another way,
// but a field that holds one, which [NewCache] sets by reflection if [Supported]
// says that this is the engine that this package was written for.
//
// A file is what the engine's own would be, with its code moved to where a page
// begins:
//
//	head  "WAZEVO", the length of the version in a byte, the version, the number
//	      of functions in 4 bytes, for each of these where it begins in 8 bytes,
//	      the length of the code in 8 bytes; all little endian
//	      zeros up to the next 64 KiB
//	code
//	tail  the CRC-32C of the code in 4 bytes, and what the engine puts there
package native

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// alignment is at least the size of a page of any system.
const alignment = 64 << 10

const magic = "WAZEVO"

// maxFuncs bounds what is read before anything is checked. Modules that have
// more functions are not admitted.
const maxFuncs = 1 << 20

var errFormat = errors.New("it is not the engine's native code")

// File is native code that is open. It is not written to. A File is safe for
// concurrent use.
type File struct {
	f            *os.File
	head, tail   []byte
	offset, size int64 // of the code
}

// Open reads all but the code of a file, which the File closes, also where it
// cannot be opened.
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

// Close leaves code alone that was loaded.
func (f *File) Close() error { return f.f.Close() }

// HeadAndTail is all of the file but the code, of which the engine checks a sum.
func (f *File) HeadAndTail() []byte { return append(bytes.Clone(f.head), f.tail...) }

// Parts are what a file is made of, for [RebuildHead] and the next program: all that
// the engine wrote but its version, before the code and behind it, and the
// code, which can be read until the File is closed.
func (f *File) Parts() (head, tail []byte, code *io.SectionReader) {
	return f.head[versionEnd(f.head):], f.tail, io.NewSectionReader(f.f, f.offset, f.size)
}

// RebuildHead is how a file begins of which a File had this part before its code, if
// it was of the same engine; then where the code lies, and how much there is.
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

// Align makes a file of one that the engine has written.
func Align(to, from *os.File) error {
	head, size, err := readHead(from)
	if err != nil {
		return err
	}
	// The length of the code is believed: what does not fit it is an error of
	// Open or of the engine, and as long as the file all the same.
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

// readHead returns what comes before the code, and the length of the code.
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

// stream is the file as the engine would have written it.
func (f *File) stream() io.Reader {
	code := &codeReader{f.f, f.offset, f.size, io.NewSectionReader(f.f, f.offset, f.size)}
	return io.MultiReader(bytes.NewReader(f.head), code, bytes.NewReader(f.tail))
}

// codeReader reads the code, or maps it where the engine wants to have all of it.
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
