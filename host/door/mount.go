package door

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/stockade-dev/stockade/host/policy"
)

// Directory returns the absolute path of a directory without symbolic links, under which guests
// see it; empty: of the current directory. It returns an error if there is no such directory.
func Directory(name string) (string, error) {
	abs, err := filepath.Abs(name)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return "", fmt.Errorf("%s: %w", failed.Path, failed.Err) // the system call says nothing to a person
	}
	if err != nil {
		return "", err
	}
	if st, err := os.Stat(abs); err != nil || !st.IsDir() {
		return "", fmt.Errorf("%s is not a directory", abs)
	}
	return abs, nil
}

// ErrNoDirectory is returned by [ParseMount] for a mount without a directory.
var ErrNoDirectory = errors.New("names no directory")

// ParseMount parses DIR or DIR:rw, a directory that tools can write to, and DIR:ro, one that they
// can only read. The directory must exist; the mount has its path without symbolic links.
func ParseMount(text string) (policy.Mount, error) {
	name, readOnly := strings.CutSuffix(text, ":ro")
	if !readOnly {
		name = strings.TrimSuffix(name, ":rw")
	}
	if name == "" {
		return policy.Mount{}, ErrNoDirectory
	}
	dir, err := Directory(name)
	return policy.Mount{Host: dir, Write: !readOnly, Origin: text}, err
}
