package secret

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stockade-dev/stockade/host/internal/private"
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
	switch owner, mine := private.Owner(info); {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file: it may be no link either", path)
	case !mine:
		return fmt.Errorf("%s belongs to the user %d, not to you: what it holds is not used", path, owner)
	case private.HasModes && info.Mode().Perm()&0o077 != 0:
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
	switch owner, mine := private.Owner(info); {
	case !mine:
		return fmt.Errorf("%s belongs to the user %d, not to you", dir, owner)
	case private.HasModes && info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be written to by others (mode %#o); mend it with chmod 700", dir, info.Mode().Perm())
	}
	return nil
}

// writePrivate writes a file of mode 0600 into a folder of the user's own.
func writePrivate(path string, data []byte) error {
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	return private.Write(path, data)
}
