//go:build !linux

package rootedfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// DirReader reads the entries of a directory in batches. A cookie, the position of an entry,
// is the number of entries before, so Seek to an earlier entry starts from the beginning. The
// zero value is ready to use.
type DirReader struct {
	batch []fs.DirEntry // unread entries
	at    uint64        // cookie of the next entry
}

// Seek makes the entry with a cookie the next entry; zero is the first one. passed is the
// number of entries that it had to read.
func (e *DirReader) Seek(f *os.File, cookie uint64) (passed uint64, _ error) {
	if cookie < e.at {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return 0, err
		}
		*e = DirReader{}
	}
	for ; e.at < cookie; passed++ {
		if _, more, err := e.next(f); err != nil || !more {
			return passed, err
		}
	}
	return passed, nil
}

func (e *DirReader) next(f *os.File) (_ fs.DirEntry, more bool, _ error) {
	if len(e.batch) == 0 {
		batch, err := f.ReadDir(128)
		if err == io.EOF {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		e.batch = batch
	}
	entry := e.batch[0]
	e.batch = e.batch[1:]
	e.at++
	return entry, true, nil
}

// Read returns the next entry. more is false at the end.
func (e *DirReader) Read(f *os.File) (_ Entry, more bool, _ error) {
	for {
		entry, more, err := e.next(f)
		if err != nil || !more {
			return Entry{}, false, err
		}
		fi, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return Entry{}, false, err
		}
		st := StatOf(fi)
		return Entry{Name: entry.Name(), Type: entry.Type(), Dev: st.Dev, Ino: st.Ino, Next: e.at}, true, nil
	}
}
