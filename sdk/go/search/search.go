// Package search lists and searches many files in one call of the host. This is some tens
// of times faster than opening them one by one. It reaches the same files as the standard
// library, by absolute names.
//
// Natively there is no host, and every function fails with [ErrUnavailable]. A tool that
// should also work natively, or with any pattern, needs a search of its own.
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
	// ErrDenied is returned if no files were granted. It is fs.ErrPermission, too.
	ErrDenied = abi.Sentinel("search denied", fs.ErrPermission)
	// ErrInvalid is returned if the pattern is not valid RE2 or is too large for the host, if
	// the names have more than MaxNames bytes or are more than 65536, or if Begin and Collect
	// are not called in turn.
	ErrInvalid = errors.New("search invalid")
	// ErrUnavailable is returned if there is no host. It is ErrUnsupported, too.
	ErrUnavailable = abi.Sentinel("search unavailable: the program does not run as a Stockade module", errors.ErrUnsupported)
)

// MaxNames limits the names of one call together, in bytes, with one more for each name. With
// more, the call fails with ErrInvalid.
const MaxNames = 1 << 20

// Entry is an entry of a directory.
type Entry struct {
	Name string // the host's name; package os needs its [filename.UTF8]
	// Type is 0 for a regular file, a directory, a symbolic link (which is not followed),
	// or irregular for everything else.
	Type fs.FileMode
}

// Listing holds the entries of a directory, sorted by name. It is nil if the directory cannot
// be read or has too many entries; os.ReadDir returns the reason. An empty directory has an
// empty Listing that is not nil.
type Listing []Entry

// List lists directories, given by their absolute names. The result has at least one listing,
// but may end early, because the host limits its size: call List again for the other
// directories.
func List(dirs ...string) ([]Listing, error) {
	if !hosted {
		return nil, ErrUnavailable
	}
	var f abi.Frame
	defer f.Free()
	ptr, size := f.Text(join(dirs))
	// result<list<option<listing>>, error>: the case at 0; the list, or the error, at 4.
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

// Info holds the metadata of a file or directory.
type Info struct {
	Type fs.FileMode // type, as in [Entry]
	Size int64       // bytes; 0 for a link
	// Modified is the time of the latest change of the content, and Changed that of any
	// change, on the host, in nanoseconds since 1970.
	Modified, Changed int64
}

// Stat returns the metadata of each of the absolute names, which may have [MaxNames] bytes. It
// is nil for a name that does not exist, or that the module may not see; os.Lstat returns the
// reason.
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

// Query describes a search. A number above the host's limit is lowered to that limit.
type Query struct {
	Files []string // absolute names
	// Names holds further names after Files, each followed by a NUL byte. For thousands of
	// names it is faster than Files.
	Names []byte
	// Pattern is an RE2 expression of at most 1024 bytes. It is matched against each line
	// without its ending, \n or \r\n, and at most against the first MiB of a line. Files with
	// a NUL byte among the first 8000 bytes have no lines.
	Pattern string
	Context int // lines of context before and after each match; at most 20
	// MaxMatches limits the lines that match, at most 1000. MaxText limits the text, at most
	// 256 KiB: after so many bytes no further line is returned.
	MaxMatches, MaxText int
	MaxChars            int // characters of a line, at most 2000; the rest of the line is cut
}

// Found is the result of a search: the lines in the order of the files and of their numbers.
type Found struct {
	Lines  []Line
	Failed int  // files that could not be opened or read to the end, or are text in UTF-16
	More   bool // set if there is at least one more match
}

// Line is a line that matches, or a line of context.
type Line struct {
	File    int    // position in Query.Files, followed by Query.Names
	Number  uint64 // number of the line, counted from 1
	Text    string // text of the line, valid UTF-8
	Matches bool   // false: a line of context
	Cut     bool   // set if the line has more characters than Text
}

// Lines searches files and waits for the result.
func Lines(q Query) (Found, error) {
	if err := Begin(q); err != nil {
		return Found{}, err
	}
	return Collect()
}

// Begin starts a search and returns. The host searches while the module does something else.
// The result has to be collected before the next search, even by Lines; otherwise the search
// ends with the call.
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

// Collect waits for the search that Begin has started. The module pays for the search here.
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

// join returns the names as one text, each followed by a NUL.
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

// clamp limits v to the range of a uint32.
func clamp(v int) uint32 { return uint32(min(max(int64(v), 0), math.MaxUint32)) }
