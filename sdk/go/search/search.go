// Package search lists and searches many files in one call of the host, which
// is some tens of times faster than to open them one by one. It reaches what
// the standard library reaches, by the same names, which have to be absolute.
//
// Natively there is no host, and everything is [ErrUnavailable]; a tool that
// is to work there too, or has to take any pattern, does it by itself then.
package search

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/stockade-dev/stockade/sdk/go/filename"
	"github.com/stockade-dev/stockade/sdk/go/internal/abi"
)

var (
	// ErrDenied: no files were granted. It is fs.ErrPermission too.
	ErrDenied = abi.Sentinel("search denied", fs.ErrPermission)
	// ErrInvalid: the pattern is not valid RE2, or is too large for the host,
	// or there are more than MaxNames bytes of names, or than 65536 of them; or
	// a search has to be collected first, or begun.
	ErrInvalid = errors.New("search invalid")
	// ErrUnavailable: there is no host. It is ErrUnsupported too.
	ErrUnavailable = abi.Sentinel("search unavailable: the program does not run as a Stockade module", errors.ErrUnsupported)
)

// MaxNames is how many bytes the names of one call may have, each with one
// byte more.
const MaxNames = 1 << 20

// Entry is an entry of a directory.
type Entry struct {
	Name string // as the host has it; package os needs its [filename.UTF8]
	// Type is 0 for a regular file, a directory or a symbolic link, which is
	// not followed, or irregular for everything else.
	Type fs.FileMode
}

// Listing is the entries of a directory, sorted by name. It is nil if the
// directory cannot be read or has too many; os.ReadDir tells which. A directory
// without entries has one that is not nil.
type Listing []Entry

// List lists directories by their absolute names. The result holds the first
// ones, and one at least: as many as the host puts into one. Ask for the others
// again.
func List(dirs ...string) ([]Listing, error) {
	if !hosted {
		return nil, ErrUnavailable
	}
	var f abi.Frame
	defer f.Free()
	ptr, size := f.Text(join(dirs))
	// result<list<option<listing>>, error>: the case at 0; the list, or the
	// error, at 4.
	ret, r := f.Area(16)
	hostList(ptr, size, ret)
	if r.Bool(0) {
		return nil, errorOf(r)
	}
	items := abi.Record(abi.Take(r.U32(4), r.U32(8)*20))
	out := make([]Listing, r.U32(8))
	for i := range out {
		if o := items[i*20:]; o.Bool(0) {
			out[i] = listing(o.Text(4), o.Bytes(12))
		}
	}
	return out, nil
}

func listing(names string, kinds []byte) Listing {
	out := make(Listing, len(kinds))
	for i, kind := range kinds {
		out[i].Name, names, _ = strings.Cut(names, "\x00")
		out[i].Name = filename.Parse(out[i].Name)
		out[i].Type = typeOf(kind)
	}
	return out
}

func typeOf(kind uint8) fs.FileMode {
	switch kind {
	case 0:
		return 0
	case 1:
		return fs.ModeDir
	case 2:
		return fs.ModeSymlink
	}
	return fs.ModeIrregular
}

// Info is what is told of a name.
type Info struct {
	Type fs.FileMode // as in [Entry]
	Size int64       // of a link 0
	// Modified is when the content was modified, and Changed when the host changed
	// anything, in nanoseconds since 1970.
	Modified, Changed int64
}

// Stat says what has each of the names, which are absolute; there are at most [MaxNames]
// bytes of them. It is nil where a name leads nowhere, or the module must not look;
// os.Lstat tells which.
func Stat(names ...string) ([]*Info, error) {
	if !hosted {
		return nil, ErrUnavailable
	}
	var f abi.Frame
	defer f.Free()
	ptr, size := f.Text(join(names))
	// result<list<option<info>>, error>: the case at 0; the list, or the error, at 4.
	ret, r := f.Area(16)
	hostStat(ptr, size, ret)
	if r.Bool(0) {
		return nil, errorOf(r)
	}
	const infoBytes = 40
	items := abi.Record(abi.Take(r.U32(4), r.U32(8)*infoBytes))
	infos := make([]Info, r.U32(8))
	out := make([]*Info, len(infos))
	for i := range infos {
		if o := items[i*infoBytes:]; o.Bool(0) {
			infos[i] = Info{typeOf(o.Case(32)), int64(o.U64(8)), int64(o.U64(16)), int64(o.U64(24))}
			out[i] = &infos[i]
		}
	}
	return out, nil
}

// Query says what to search for, and where. More than the host allows of
// something is as much as it allows.
type Query struct {
	Files []string // absolute names
	// Names are more of them, after Files: one text in which each is followed
	// by a NUL. For thousands it takes less than Files.
	Names []byte
	// Pattern is an RE2 expression, of 1024 bytes at most, that is matched
	// against each line without its ending, \n or \r\n, and the first MiB of
	// it. Files with a NUL among the first 8000 bytes have no lines.
	Pattern string
	Context int // lines before and after each match; at most 20
	// MaxMatches is how many lines that match are returned, at most 1000, and
	// MaxText after how many bytes of text no other is, at most 256 KiB.
	MaxMatches, MaxText int
	MaxChars            int // of each line that are returned; at most 2000
}

// Found is what was found: the lines in the order of the files and of their
// numbers.
type Found struct {
	Lines  []Line
	Failed int  // how many files could not be opened or not be read to the end, or are text in UTF-16
	More   bool // there is at least one more match
}

// Line is a line that matches, or one beside it.
type Line struct {
	File    int // in Query.Files
	Number  uint64
	Text    string // valid UTF-8
	Matches bool
	Cut     bool // the line has more characters than Text
}

// Lines searches files, and waits for what is found.
func Lines(q Query) (Found, error) {
	if err := Begin(q); err != nil {
		return Found{}, err
	}
	return Collect()
}

// Begin begins to search files, and returns. The host searches while the module
// does something else, such as to find out what to search next. The result has
// to be collected before the next search, also by Lines; if it never is, the
// search ends with the call.
func Begin(q Query) error {
	if !hosted {
		return ErrUnavailable
	}
	var f abi.Frame
	defer f.Free()
	files := unsafe.String(unsafe.SliceData(q.Names), len(q.Names)) // until Begin returns
	if len(q.Files) > 0 {
		files = join(q.Files) + files
	}
	filesPtr, filesLen := f.Text(files)
	patternPtr, patternLen := f.Text(q.Pattern)
	// result<_, error>: the case at 0; the error at 4.
	ret, r := f.Area(16)
	hostBegin(filesPtr, filesLen, patternPtr, patternLen,
		clamp(q.Context), clamp(q.MaxMatches), clamp(q.MaxText), clamp(q.MaxChars), ret)
	if r.Bool(0) {
		return errorOf(r)
	}
	return nil
}

// Collect waits for what Begin has begun. The module pays for it here.
func Collect() (Found, error) {
	if !hosted {
		return Found{}, ErrUnavailable
	}
	var f abi.Frame
	defer f.Free()
	// result<found, error>: the case at 0; at 4 the error, or found: the lines
	// at 4, the text at 12, failed at 20 and more at 24.
	ret, r := f.Area(28)
	hostCollect(ret)
	if r.Bool(0) {
		return Found{}, errorOf(r)
	}
	const lineBytes = 24
	lines := abi.Record(abi.Take(r.U32(4), r.U32(8)*lineBytes))
	text := r.Text(12)
	out := Found{Failed: int(r.U32(20)), More: r.Bool(24)}
	out.Lines = slices.Grow(out.Lines, len(lines)/lineBytes)
	for ; len(lines) > 0; lines = lines[lineBytes:] {
		size := lines.U32(12)
		out.Lines = append(out.Lines, Line{
			Number: lines.U64(0), File: int(lines.U32(8)), Text: text[:size], Matches: lines.Bool(16), Cut: lines.Bool(17),
		})
		text = text[size:]
	}
	return out, nil
}

// join makes one text of names, each followed by a NUL.
func join(names []string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString(name)
		b.WriteByte(0)
	}
	return b.String()
}

func errorOf(r abi.Record) error {
	err := ErrInvalid
	if r.Case(4) == 0 {
		err = ErrDenied
	}
	return fmt.Errorf("%w: %s", err, r.Text(8))
}

// clamp keeps v in what the host takes.
func clamp(v int) uint32 { return uint32(min(max(int64(v), 0), math.MaxUint32)) }
