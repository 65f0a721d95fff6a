package secret

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stockade-dev/stockade/host/internal/private"
)

// readPrivate reads a private file of the user: a regular file, not a link, and readable and
// writable only by the user if the system has such modes. More than limit bytes are an error. It
// checks the file that it has opened, which cannot be replaced between the check and the read.
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

// makeFolder creates a folder of the user. It returns an error for a folder that others can write,
// because they could replace our file.
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

// writePrivate writes a file with mode 0600 into a folder of the user.
func writePrivate(path string, data []byte) error {
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	return private.Write(path, data)
}
