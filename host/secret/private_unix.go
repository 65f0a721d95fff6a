//go:build unix

package secret

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// openPrivate opens a file, and never blocks, for example on a named pipe. It does not follow a
// link, because the author of the link would choose the file.
func openPrivate(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) {
		return nil, fmt.Errorf("%s is a symbolic link: it is not followed", path)
	}
	return f, err
}
