//go:build !linux

package wasi

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// entries reads a directory in batches. A cookie is the number of entries
// before it, so going back means to begin again.
type entries struct {
	batch []fs.DirEntry
	at    uint64
}

// seek makes the entry of a cookie the next one, and says how many it passed.
// Zero is the first.
func (e *entries) seek(f *os.File, cookie uint64) (passed uint64, _ error) {
	if cookie < e.at {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return 0, err
		}
		*e = entries{}
	}
	for ; e.at < cookie; passed++ {
		if _, more, err := e.next(f); err != nil || !more {
			return passed, err
		}
	}
	return passed, nil
}

func (e *entries) next(f *os.File) (_ fs.DirEntry, more bool, _ error) {
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

// read returns the next entry, or false at the end.
func (e *entries) read(f *os.File) (_ hostEntry, more bool, _ error) {
	for {
		entry, more, err := e.next(f)
		if err != nil || !more {
			return hostEntry{}, false, err
		}
		fi, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone meanwhile
		}
		if err != nil {
			return hostEntry{}, false, err
		}
		st := hostStat(fi)
		return hostEntry{
			Dirent: Dirent{Name: entry.Name(), Type: typeOfMode(entry.Type()), Ino: st.Ino, Next: e.at},
			dev:    st.Dev,
		}, true, nil
	}
}

// setLinkTimes has no safe way to change the times of a symbolic link here.
func setLinkTimes(root, string, int64, int64) Errno { return ENOTSUP }

// holdsMountPoint is not known here. What a bind mount or its like shows of a
// masked path inside a mount is not hidden on this system.
func holdsMountPoint(string) bool { return false }
