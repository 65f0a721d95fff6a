// Package private writes and checks files that belong to the user alone: secrets, the log,
// remembered answers.
package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces a file by a new one of mode 0600. After a crash at any moment the old or the
// new file is there, complete. If Write returns no error, the new file is.
func Write(path string, data []byte) error { return write(path, data, 0o600) }

// WriteShared is Write for a file of mode 0644, which others may read. The file has this mode
// before it has its name: another user could replace the name by a link in between.
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
