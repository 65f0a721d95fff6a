package search

import (
	"context"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/sdk/go/filename"
)

const (
	// maxNames is how many bytes the names in one directory may have.
	maxNames = 1 << 20
	// maxListed is how many they may have in all, before the last directory.
	maxListed = 1 << 20

	// listingBytes is what a listing takes beside its names.
	listingBytes = 40

	costListing = 2000 // a directory, beside what it costs to read
	costSort    = 200  // an entry
	costInfo    = 200  // a name, beside what it costs to look it up

	// perPayment is how many names are looked up between two looks at whether the
	// guest can pay.
	perPayment = 16
)

// Kind is what an entry of a directory is.
type Kind uint8

// The kinds. What a symbolic link leads to is not looked at.
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

// Listing is the entries of a directory, sorted by name.
type Listing struct {
	Entries []Entry
	Bytes   int // of the names
	// Missing says that the directory cannot be read, or is too large.
	Missing bool
}

// List lists directories by their absolute names, one at least and as many as
// are not too much for one result. It is called on the goroutine of the guest.
// An error is the end of ctx or what pay says.
func List(ctx context.Context, fs *wasi.FS, dirs []string, pay Payer) ([]Listing, error) {
	over := callErrFunc(ctx)
	var out []Listing
	size := 0
	for dir, errno := range fs.Dirs(dirs) {
		l, err := list(dir, errno, over)
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
	return out, over()
}

// Info is what is told of a name. Times are nanoseconds since 1970.
type Info struct {
	Kind              Kind
	Size              uint64
	Modified, Changed int64
	// Missing says that the name leads nowhere, or nowhere that the guest may go.
	Missing bool
}

// Stat says what has each of the names, which are absolute; see [List].
func Stat(ctx context.Context, fs *wasi.FS, names []string, pay Payer) ([]Info, error) {
	over := callErrFunc(ctx)
	out := make([]Info, 0, len(names))
	for st, errno := range fs.Lstats(names) {
		if len(out)%perPayment == 0 {
			if err := over(); err != nil {
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
	return out, over()
}

func list(dir *wasi.Dir, errno wasi.Errno, over func() error) (l Listing, _ error) {
	if errno != 0 {
		return Listing{Missing: true}, over()
	}
	dir.AllNames = true
	cookie := uint64(0)
	for n := 0; ; n++ {
		if n%256 == 0 {
			if err := over(); err != nil {
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
