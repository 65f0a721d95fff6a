package selftest

import "github.com/stockade-dev/stockade/host/sandbox/abi"

// Constants of WASI preview 1.
const (
	rootFD = 3 // descriptor of a guest's root directory

	followLinks = 1 // of a lookup

	oCreate, oDirectory, oExclusive, oTruncate = 1, 2, 4, 8 // of path_open

	rightsRead, rightsWrite, rightsList = 1<<1 | 1<<2, 1<<6 | 1<<2 | 1<<8 | 1<<22, 1 << 14 // writing includes resizing

	rightsAll = 1<<27 - 1<<9 | rightsList // of a directory: all rights on the files below

	fdAppend = 1

	setTimes = 1 | 4 // access and modification
)

// place is a name in the memory of the machine, and the directory below which it is
// looked up.
type place struct {
	dir  any // an operand
	name span
}

// place returns the place of a name relative to the root.
func (s *script) place(name string) place { return place{rootFD, s.text(name)} }

func (p place) operands() []any { return []any{p.dir, p.name.at, p.name.n} }

// openFile is a file that a script opens.
type openFile struct {
	*call
	// The descriptor.
	fd cell
}

// open opens a place.
func (s *script) open(p place, oflags, rights, fdflags int) openFile {
	fd := s.words(0xffff_fff0) // not a descriptor until the open succeeds
	return openFile{s.add("path_open", p.dir, followLinks, p.name.at, p.name.n, oflags, rights, 0, fdflags, fd.at), cell(fd.at)}
}

// openDir opens a directory with all rights, so that a refusal below it is not for lack
// of rights.
func (s *script) openDir(p place) openFile {
	fd := s.words(0xffff_fff0)
	return openFile{s.add("path_open", p.dir, followLinks, p.name.at, p.name.n, oDirectory, rightsAll, rightsAll|rightsRead|rightsWrite, 0, fd.at), cell(fd.at)}
}

// read reads up to n bytes into the report.
func (s *script) read(fd any, n int) (*call, span) {
	into := s.reserve(n)
	list, read := s.words(into.at, into.n), s.reserve(4)
	return s.add("fd_read", fd, list.at, 1, read.at), into
}

// writeText writes a text.
func (s *script) writeText(fd any, text string) *call {
	t := s.text(text)
	list, written := s.words(t.at, t.n), s.words(0)
	return s.add("fd_write", fd, list.at, 1, written.at)
}

// newHarmlessScript returns a script that attacks nothing.
func newHarmlessScript() *script {
	s := &script{}
	s.add("clock_time_get", 0, 1, s.reserve(8).at).mustSucceed("the guest calls WASI")
	return s
}

// steal adds an attack: opening and reading a file.
func (s *script) steal(p place, what string) {
	f := s.open(p, 0, rightsRead, 0)
	f.mustBeRefused(what)
	s.read(f.fd, 48)
}

// overwrite adds an attack: opening a file for writing, and writing.
func (s *script) overwrite(p place, oflags int, what string) {
	f := s.open(p, oflags, rightsRead|rightsWrite, 0)
	f.mustBeRefused(what)
	s.writeText(f.fd, "overwritten")
}

func (s *script) mkdir(p place) *call  { return s.add("path_create_directory", p.operands()...) }
func (s *script) rmdir(p place) *call  { return s.add("path_remove_directory", p.operands()...) }
func (s *script) unlink(p place) *call { return s.add("path_unlink_file", p.operands()...) }

func (s *script) rename(from, to place) *call {
	return s.add("path_rename", append(from.operands(), to.operands()...)...)
}

func (s *script) hardLink(from, to place) *call {
	return s.add("path_link", from.dir, 0, from.name.at, from.name.n, to.dir, to.name.at, to.name.n)
}

func (s *script) symlink(target string, to place) *call {
	t := s.text(target)
	return s.add("path_symlink", t.at, t.n, to.dir, to.name.at, to.name.n)
}

func (s *script) readlink(p place) (*call, span) {
	into := s.reserve(512)
	return s.add("path_readlink", p.dir, p.name.at, p.name.n, into.at, into.n, s.reserve(4).at), into
}

func (s *script) stat(p place, follow int) *call {
	return s.add("path_filestat_get", p.dir, follow, p.name.at, p.name.n, s.reserve(64).at)
}

func (s *script) utimes(p place) *call {
	const then = uint64(1_000_000_000_000_000_000)
	return s.add("path_filestat_set_times", p.dir, followLinks, p.name.at, p.name.n, then, then, setTimes)
}

// log sends a message to the host.
func (s *script) log(text string) *call {
	t := s.text(text)
	return s.add("say", t.at, t.n)
}

// leave ends the machine with a result made of these words.
func (s *script) leave(words ...uint32) *call { return s.add("leave", s.words(words...).at) }

// The words of a result, see package abi.
const (
	resultOK, resultError = 0, 1
	contentText           = uint32(abi.ContentText)
)
