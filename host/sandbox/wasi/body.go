package wasi

import (
	"io"
	"os"

	"github.com/stockade-dev/stockade/host/beneath"
)

// body is what an open file reads and writes: a file of the host, or one that
// is staged.
type body interface {
	io.ReaderAt
	Stat() (os.FileInfo, error)
	// put writes at an offset or, if the host can, to wherever the end is.
	put(buf []byte, off int64, end bool) (int, error)
	Truncate(size int64) error
	Sync() error
	setAppend(on bool) error
	setTimes(fi os.FileInfo, atim, mtim int64) Errno
	// release says that the guest has no more use for it. Close may have been
	// called before, and by another goroutine.
	release()
	Close() error
}

// hostBody is a file that is written through.
type hostBody struct{ *os.File }

func (b hostBody) put(buf []byte, off int64, end bool) (int, error) {
	if end && beneath.Appends {
		return b.Write(buf)
	}
	return b.WriteAt(buf, off)
}

func (b hostBody) setAppend(on bool) error { return beneath.SetAppend(b.File, on) }

func (b hostBody) setTimes(fi os.FileInfo, atim, mtim int64) Errno {
	if err := beneath.OneName(b.File, fi); err != nil {
		return errnoOf(err)
	}
	return errnoOf(beneath.SetTimes(b.File, atim, mtim))
}

func (b hostBody) release() {}
