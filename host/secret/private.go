package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// readPrivate reads a file that is the user's own: regular, no link, and
// readable and writable by nobody else where the system has such modes. What
// was checked is what is read.
func readPrivate(path string, limit int) ([]byte, error) {
	f, err := openPrivate(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkPrivate(path, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(data) > limit {
		return nil, fmt.Errorf("%s: more than %d bytes", path, limit)
	}
	return data, nil
}

func checkPrivate(path string, info fs.FileInfo) error {
	switch owner, mine := ownedByMe(info); {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file: it may be no link either", path)
	case !mine:
		return fmt.Errorf("%s belongs to the user %d, not to you: what it holds is not used", path, owner)
	case hasModes && info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s can be read or written by others (mode %#o): what it holds is not used; mend it with chmod 600", path, info.Mode().Perm())
	}
	return nil
}

// makeFolder makes a folder of the user's own, and refuses one that others may
// write to: they could put another file in place of ours.
func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	switch owner, mine := ownedByMe(info); {
	case !mine:
		return fmt.Errorf("%s belongs to the user %d, not to you", dir, owner)
	case hasModes && info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be written to by others (mode %#o); mend it with chmod 700", dir, info.Mode().Perm())
	}
	return nil
}

// writePrivate puts a file of mode 0600 in the place of the old one: after a
// crash at any moment there is the old one or the new one, whole.
func writePrivate(path string, data []byte) (err error) {
	dir := filepath.Dir(path)
	if err := makeFolder(dir); err != nil {
		return err
	}
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
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return syncFolder(dir)
}
