package wasi

import "io"

// Content is the content of a file that was opened to be read, and its size at
// that time. Any goroutine may read it as long as the guest waits and the file
// is not closed by the one that opened it; the guest pays for nothing of that
// yet. ok is false if the file was not opened to be read.
func (f *File) Content() (r io.ReaderAt, size int64, ok bool) {
	return f.body, f.size, f.reads
}
