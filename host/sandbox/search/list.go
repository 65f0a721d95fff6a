package search

import (
	"context"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/sdk/go/filename"
)

const (
	maxNames  = 1 << 20 // bytes of the names in a directory; a larger one is Missing
	maxListed = 1 << 20 // bytes of all listings after which List stops

	listingBytes = 40 // size of a listing without its names

	// Costs in units of fuel.
	costListing = 2000 // for each directory, in addition to reading it
	costSort    = 200  // for each entry of a directory
	costInfo    = 200  // for each name of Stat, in addition to looking it up

	perPayment = 16 // names that Stat looks up between two payments
)

// Kind is the type of a directory entry.
type Kind uint8

// The kinds. Symbolic links are not followed.
const (
	File Kind = iota
	Directory
	Link
	Other
)

// Entry is one name in a directory.
type Entry struct {
	Name string
	Kind Kind
}

// Listing holds the entries of a directory, sorted by name.
type Listing struct {
	Entries []Entry
	Bytes   int  // bytes of all names
	Missing bool // the directory cannot be read or is too large; Entries is then of no use
}

// List lists directories by their absolute names, for the goroutine of the guest. It lists the
// first of dirs, as many as fit into one result, and at least one. The error is the end of ctx
// or an error of pay.
func List(ctx context.Context, fs *wasi.FS, dirs []string, pay Payer) ([]Listing, error) {
	callErr := callErrFunc(ctx)
	var out []Listing
	size := 0
	for dir, errno := range fs.Dirs(dirs) {
		l, err := list(dir, errno, callErr)
		if err != nil {
			return nil, err
		}
		if err := pay.Pay(costListing + costSort*uint64(len(l.Entries))); err != nil {
			return nil, err
		}
		size += listingBytes + l.Bytes + len(l.Entries)
		if l.Missing {
			l = Listing{Missing: true}
		}
		if out = append(out, l); size > maxListed {
			break
		}
	}
	return out, callErr()
}

// Info describes the file with a name. Times are nanoseconds since 1970.
type Info struct {
	Kind              Kind
	Size              uint64 // bytes
	Modified, Changed int64
	Missing           bool // there is no such file, or the guest may not reach it
}

// Stat describes the files with absolute names, for the goroutine of the guest. The errors are
// those of [List].
func Stat(ctx context.Context, fs *wasi.FS, names []string, pay Payer) ([]Info, error) {
	callErr := callErrFunc(ctx)
	out := make([]Info, 0, len(names))
	for st, errno := range fs.Lstats(names) {
		if len(out)%perPayment == 0 {
			if err := callErr(); err != nil {
				return nil, err
			}
			if err := pay.Pay(costInfo * perPayment); err != nil {
				return nil, err
			}
		}
		if errno != 0 {
			out = append(out, Info{Missing: true})
			continue
		}
		out = append(out, Info{Kind: kindOf(st.Type), Size: st.Size, Modified: st.Mtim, Changed: st.Ctim})
	}
	return out, callErr()
}

func list(dir *wasi.Dir, errno wasi.Errno, callErr func() error) (l Listing, _ error) {
	if errno != 0 {
		return Listing{Missing: true}, callErr()
	}
	dir.AllNames = true
	cookie := uint64(0)
	for n := 0; ; n++ {
		if n%256 == 0 {
			if err := callErr(); err != nil {
				return l, err
			}
		}
		e, more, errno := dir.Entry(cookie)
		if errno != 0 {
			l.Missing = true
			return l, nil
		}
		if !more {
			break
		}
		cookie = e.Next
		if e.Name == "" || e.Name == "." || e.Name == ".." {
			continue
		}
		if l.Bytes += len(e.Name); l.Bytes > maxNames {
			l.Missing = true
			return l, nil
		}
		l.Entries = append(l.Entries, Entry{e.Name, kindOf(e.Type)})
	}
	slices.SortFunc(l.Entries, func(a, b Entry) int { return strings.Compare(filename.Parse(a.Name), filename.Parse(b.Name)) })
	return l, nil
}

func kindOf(t wasi.FileType) Kind {
	switch t {
	case wasi.RegularFile:
		return File
	case wasi.Directory:
		return Directory
	case wasi.SymbolicLink:
		return Link
	}
	return Other
}
