// Package private has what the files that belong to the user alone share: secrets,
// the log, remembered answers.
package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write puts a file of mode 0600 in the place of the old one. After a crash at any
// moment there is the old one or the new one, whole, and after a return without an
// error it is the new one.
func Write(path string, data []byte) error { return write(path, data, 0o600) }

// WriteShared is Write for a file that others may read, of mode 0644. It has that before
// it has its name, which somebody could make a link of otherwise.
func WriteShared(path string, data []byte) error { return write(path, data, 0o644) }

func write(path string, data []byte, mode fs.FileMode) (err error) {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
	_, err = tmp.Write(data)
	if err := errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return SyncFolder(dir)
}
