//go:build !linux

package wasi

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"
)

// entries reads a directory in batches.
type entries struct {
	batch []fs.DirEntry
}

// read returns the next entry, or false at the end.
func (e *entries) read(f *os.File) (_ hostEntry, more bool, _ error) {
	for {
		if len(e.batch) == 0 {
			batch, err := f.ReadDir(128)
			if err == io.EOF {
				return hostEntry{}, false, nil
			}
			if err != nil {
				return hostEntry{}, false, err
			}
			e.batch = batch
		}
		entry := e.batch[0]
		e.batch = e.batch[1:]
		fi, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone meanwhile
		}
		if err != nil {
			return hostEntry{}, false, err
		}
		st := wsys.NewStat_t(fi)
		return hostEntry{
			Dirent: sys.Dirent{Name: entry.Name(), Type: entry.Type(), Ino: st.Ino},
			dev:    st.Dev,
		}, true, nil
	}
}

// holdsMountPoint is not known here. What a bind mount or its like shows of a
// masked path inside a mount is not hidden on this system.
func holdsMountPoint(string) bool { return false }
