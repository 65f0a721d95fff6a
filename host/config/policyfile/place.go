package policyfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/stockade-dev/stockade/host/config/keys"
	"github.com/stockade-dev/stockade/host/policy"
)

// Place is the path of a policy file, with the owner and permissions that the file must have.
type Place struct {
	Path string
	// Root is the topmost directory on the path that is checked like the file itself; no
	// symbolic link is followed below it. Empty: only the file and the directory with its name
	// are checked, and links are followed.
	Root string
	// Owner is the user, beside root, who may own the file. With Anybody, neither the
	// owner nor the permissions are checked.
	Owner int
}

// Anybody is the Owner of a file that anybody may have written, because it only narrows.
const Anybody = -1

const rootUID = 0

// Administrator returns the place of the administrator's file. It depends only on the
// system that the program was built for.
func Administrator() Place { return administrator() }

// User returns the place of a file that the user who runs the program, or root, must own.
func User(path string) Place { return Place{Path: path, Owner: os.Getuid()} }

// WithPath returns the place of another file, which must have the same owner and permissions.
// Files that a policy names, such as certificate authorities, are read from such a place.
func (p Place) WithPath(path string) Place {
	p.Path = path
	return p
}

// Sibling returns the place of a file or folder in the same directory.
func (p Place) Sibling(name string) Place {
	return p.WithPath(filepath.Join(filepath.Dir(p.Path), name))
}

// Read checks and reads the file. If it does not exist, the error is fs.ErrNotExist. The
// warnings name rules that were left out, and paths that look like patterns.
func (p Place) Read(source policy.Source) (policy.Layer, []string, error) {
	data, err := p.Bytes()
	if err != nil {
		return policy.Layer{}, nil, err
	}
	return parse(p.Path, source, data)
}

// Bytes returns the content of the file. It checks the owner and the permissions of the open
// file that it reads.
func (p Place) Bytes() ([]byte, error) { return p.BytesUpTo(keys.MaxFileBytes) }

// BytesUpTo is [Place.Bytes] with another limit: a file of more than maxBytes is an error.
func (p Place) BytesUpTo(maxBytes int64) ([]byte, error) {
	f, err := p.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p.Path, err)
	}
	if int64(len(data)) > maxBytes {
		return nil, refuse(p.Path, "it has more than %d bytes", maxBytes)
	}
	return data, nil
}

// refuse returns the error of a file that cannot be trusted. path is the file or a directory
// above.
func refuse(path, format string, args ...any) error {
	return &keys.Error{Path: path, Message: fmt.Sprintf(format, args...)}
}

var errPlace = errors.New("the file is named by an absolute path below the root that is checked")
