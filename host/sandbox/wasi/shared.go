package wasi

import "io"

// Content is the content of a file that was opened to be read, and its size at
// that time. Any goroutine may read it as long as nobody uses the file in
// another way, and it is not closed by the one that opened it; the guest pays for nothing of that
// yet. ok is false if the file was not opened to be read.
func (f *File) Content() (r io.ReaderAt, size int64, ok bool) {
	return f.body, f.size, f.reads
}

// View is another way to read the files of an FS, for one other goroutine. It
// may be used while the guest uses the FS.
type View struct {
	fs *FS // with the same mounts
	of *FS
}

// View returns a view, which is to be closed before f is. It can have as many
// files open at the same time as it is given, at most maxOpen and at most half
// of what f may still open: these are taken from f, so that what one of the two
// can open does not depend on the other. What it costs goes to fuel.
//
// There is none if f has a stage or a journal, which serve one goroutine.
func (f *FS) View(maxOpen int, fuel func(units uint64)) (_ *View, ok bool) {
	if f.stage != nil || f.record != nil {
		return nil, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, false
	}
	limits := f.limits
	limits.Fuel = fuel
	limits.MaxOpenFiles = min(maxOpen, (f.limits.MaxOpenFiles-f.opened+1)/2)
	f.opened += limits.MaxOpenFiles
	return &View{&FS{mounts: f.mounts, tree: f.tree, limits: limits, open: map[io.Closer]struct{}{}}, f}, true
}

// Open is [FS.Open] for a flag that changes nothing.
func (v *View) Open(name string, flag Flag) (Handle, Errno) {
	if flag&^(DirectoryOnly|NoFollow) != ReadOnly {
		return nil, errReadOnly
	}
	return v.fs.Open(name, flag)
}

// Close ends the view, once. All that it opened is closed before.
func (v *View) Close() {
	v.of.mu.Lock()
	defer v.of.mu.Unlock()
	v.of.opened -= v.fs.limits.MaxOpenFiles
}
