//go:build unix

package wasi

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
)

// operation is one call of a guest. Its numbers select names and open files.
type operation struct {
	what, slot byte
	a, b       string
	flag       Flag
	n          int
	text       string
}

func (o operation) String() string {
	return fmt.Sprintf("%s slot=%d a=%s b=%s flag=%#x n=%d text=%d bytes", operations[o.what], o.slot, o.a, o.b, o.flag, o.n, len(o.text))
}

var operations = []string{
	"open", "open", "open", "read", "pread", "write", "write", "pwrite", "seek", "truncate", "grow", "fstat", "close",
	"list", "stat", "lstat", "mkdir", "rmdir", "unlink", "rename", "rename", "rename", "readlink", "times", "append", "fdtimes",
}

var someNames = []string{"a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a", "x", "x/b", "l/a", "l", "x/d/a", "big", "dl", "run", "up/a", "e/a", "out"}

const slots = 4

// decode makes operations from bytes, so that a fuzzer can make them too.
func decode(b []byte) (ops []operation) {
	for ; len(b) >= 8 && len(ops) < 200; b = b[8:] {
		op := operation{
			what: b[0] % byte(len(operations)),
			slot: b[1] % slots,
			a:    someNames[int(b[2])%len(someNames)],
			b:    someNames[int(b[3])%len(someNames)],
			flag: Flag(b[4]) % 256,
			n:    int(binary.LittleEndian.Uint16(b[5:])) % 13000,
		}
		if op.flag&accessMask > ReadWrite {
			op.flag &^= 1
		}
		op.text = strings.Repeat(string('a'+rune(b[7]%26)), op.n%50*(1+int(b[7])%7*40))
		ops = append(ops, op)
	}
	return ops
}

func randomOperations(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, 8*(10+r.IntN(90)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// fsSubject is an FS as a subject.
type fsSubject struct {
	g     *guestFS
	slots [slots]Handle
}

func (s *fsSubject) do(op operation) string {
	name, other := s.g.name("ws/"+op.a), s.g.name("ws/"+op.b)
	h := s.slots[op.slot]
	f, isFile := h.(*File)
	switch what := operations[op.what]; what {
	case "open":
		if h != nil {
			h.Close()
		}
		var errno Errno
		s.slots[op.slot], errno = s.g.Open(name, op.flag)
		return errno.String()
	case "close":
		if h != nil {
			h.Close()
		}
		s.slots[op.slot] = nil
		return ""
	case "list":
		d, isDir := h.(*Dir)
		if !isDir {
			return "no dir"
		}
		return listing(d)
	case "fstat":
		if h == nil {
			return "none"
		}
		return shownStat(h.Stat())
	case "fdtimes":
		if h == nil {
			return "none"
		}
		return h.SetTimes(5e9, int64(op.n+1)*1e9).String()
	case "stat":
		return shownStat(s.g.Stat(name))
	case "lstat":
		return shownStat(s.g.Lstat(name))
	case "mkdir":
		return s.g.Mkdir(name).String()
	case "rmdir":
		return s.g.Rmdir(name).String()
	case "unlink":
		return s.g.Unlink(name).String()
	case "rename":
		return s.g.Rename(name, other).String()
	case "readlink":
		target, errno := s.g.Readlink(name)
		return target + errno.String()
	case "times":
		return s.g.SetTimes(name, op.n%2 == 0, 5e9, int64(op.n+1)*1e9).String()
	default:
		if !isFile {
			return "no file"
		}
		buf := make([]byte, op.n)
		switch what {
		case "read":
			n, errno := f.Read(buf)
			return string(buf[:n]) + errno.String()
		case "pread":
			n, errno := f.Pread(buf, int64(op.n/2))
			return string(buf[:n]) + errno.String()
		case "write":
			n, errno := f.Write([]byte(op.text))
			return fmt.Sprint(n, f.pos, errno)
		case "pwrite":
			n, errno := f.Pwrite([]byte(op.text), int64(op.n))
			return fmt.Sprint(n, errno)
		case "seek":
			at, errno := f.SeekTo(int64(op.n-200), Whence(op.n%3))
			return fmt.Sprint(at, errno)
		case "truncate":
			return f.Truncate(int64(op.n)).String()
		case "grow":
			return f.Grow(int64(op.n)).String()
		case "append":
			return f.SetAppend(op.n%2 == 0).String()
		}
	}
	panic(operations[op.what])
}

func listing(d *Dir) string {
	var out []string
	for cookie := uint64(0); ; {
		e, more, errno := d.Entry(cookie)
		if errno != 0 {
			return fmt.Sprint(out, errno)
		}
		if !more {
			slices.Sort(out)
			return fmt.Sprint(out)
		}
		if e.Name != "." && e.Name != ".." && e.Name != "" {
			out = append(out, fmt.Sprint(e.Name, e.Type))
		}
		cookie = e.Next
	}
}

func shownStat(st Stat, errno Errno) string {
	if errno != 0 {
		return errno.String()
	}
	return showStat(st.Type, int(st.Size), st.Mtim)
}

func showStat(t FileType, size int, mtim int64) string {
	if t != RegularFile {
		return fmt.Sprint(t)
	}
	if mtim > 1e16 {
		mtim = 0 // set by the host, not the guest
	}
	return fmt.Sprint(t, size, mtim)
}

// model is a subject too.
type modelSubject struct {
	m     *model
	slots [slots]*modelFile
}

func (s *modelSubject) do(op operation) string {
	f := s.slots[op.slot]
	isFile := f != nil && f.n.kind != Directory
	switch what := operations[op.what]; what {
	case "open":
		var errno Errno
		s.slots[op.slot], errno = s.m.open(op.a, op.flag)
		return errno.String()
	case "close":
		s.slots[op.slot] = nil
		return ""
	case "list":
		if f == nil || isFile {
			return "no dir"
		}
		var out []string
		if f.n.gone {
			return fmt.Sprint(out, ENOENT)
		}
		for name, n := range f.n.entries {
			out = append(out, fmt.Sprint(name, n.kind))
		}
		slices.Sort(out)
		return fmt.Sprint(out)
	case "fstat":
		if f == nil {
			return "none"
		}
		return showStat(f.n.kind, len(f.n.content), f.n.mtim)
	case "fdtimes":
		if f == nil {
			return "none"
		}
		f.n.mtim = int64(op.n+1) * 1e9
		return Errno(0).String()
	case "stat", "lstat":
		_, _, n, _, errno := s.m.find(op.a, what == "stat")
		if errno == 0 && n == nil {
			errno = ENOENT
		}
		if errno != 0 {
			return errno.String()
		}
		return showStat(n.kind, len(n.content), n.mtim)
	case "mkdir":
		return s.m.mkdir(op.a).String()
	case "rmdir":
		return s.m.remove(op.a, true).String()
	case "unlink":
		return s.m.remove(op.a, false).String()
	case "rename":
		return s.m.rename(op.a, op.b).String()
	case "readlink":
		_, _, n, _, errno := s.m.find(op.a, false)
		switch {
		case errno != 0:
			return errno.String()
		case n == nil:
			return ENOENT.String()
		case n.kind != SymbolicLink:
			return EINVAL.String()
		case n.target[0] == '/' || climbs(filepath.Dir(op.a)+"/"+n.target):
			return EPERM.String()
		}
		return n.target + Errno(0).String()
	case "times":
		_, _, n, _, errno := s.m.find(op.a, op.n%2 == 0)
		if errno == 0 && n == nil {
			errno = ENOENT
		}
		if errno == 0 {
			n.mtim = int64(op.n+1) * 1e9
		}
		return errno.String()
	default:
		if !isFile {
			return "no file"
		}
		return s.file(what, op, f)
	}
}

func (s *modelSubject) file(what string, op operation, f *modelFile) string {
	switch what {
	case "read":
		p, errno := f.pread(op.n, f.pos)
		f.pos += int64(len(p))
		return p + errno.String()
	case "pread":
		p, errno := f.pread(op.n, int64(op.n/2))
		return p + errno.String()
	case "write":
		end, errno := f.pwrite(op.text, f.pos)
		if errno != 0 || op.text == "" {
			return fmt.Sprint(0, f.pos, errno)
		}
		f.pos = end
		return fmt.Sprint(len(op.text), f.pos, errno)
	case "pwrite":
		_, errno := f.pwrite(op.text, int64(op.n))
		if errno != 0 {
			return fmt.Sprint(0, errno)
		}
		return fmt.Sprint(len(op.text), errno)
	case "seek":
		base := []int64{0, f.pos, int64(len(f.n.content))}[op.n%3] + int64(op.n-200)
		if base < 0 {
			return fmt.Sprint(0, EINVAL)
		}
		f.pos = base
		return fmt.Sprint(base, Errno(0))
	case "truncate", "grow":
		if !f.writable {
			return EBADF.String()
		}
		if what == "truncate" || op.n > len(f.n.content) {
			f.n.resize(op.n)
		}
		return Errno(0).String()
	case "append":
		f.append = op.n%2 == 0
		return Errno(0).String()
	}
	panic(what)
}
