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

// Place is where a policy file is, and who may have written it.
type Place struct {
	Path string
	// Root is the directory from which down to the file every directory is
	// checked like the file, and no symbolic link is followed. Empty: only the
	// file and the directory of its name are checked, and links are followed.
	Root string
	// Owner is the user whose file it must be, beside root; Anybody is not
	// checked, neither are the permissions then.
	Owner int
}

// Anybody is the owner of a file that may be anybody's, because it only
// narrows.
const Anybody = -1

const rootUID = 0

// Administrator is the place of the administrator's file. It depends on the
// system that the program was built for and on nothing else.
func Administrator() Place { return administrator() }

// User is a place of the user who runs the program.
func User(path string) Place { return Place{Path: path, Owner: os.Getuid()} }

// WithPath is the place of another file that has to be like this one: one that a policy
// names and that is trusted like it.
func (p Place) WithPath(path string) Place {
	p.Path = path
	return p
}

// Sibling is the place of a file or folder beside this file.
func (p Place) Sibling(name string) Place {
	return p.WithPath(filepath.Join(filepath.Dir(p.Path), name))
}

// Read reads and checks the file. Where there is none, errors.Is(err,
// fs.ErrNotExist) holds. The warnings are of what was left out.
func (p Place) Read(source policy.Source) (policy.Layer, []string, error) {
	data, err := p.Bytes()
	if err != nil {
		return policy.Layer{}, nil, err
	}
	return parse(p.Path, source, data)
}

// Bytes returns what is in the file, after its owner and permissions were
// checked on what is being read.
func (p Place) Bytes() ([]byte, error) { return p.BytesUpTo(keys.MaxFileBytes) }

// BytesUpTo is Bytes for a file that may have so many.
func (p Place) BytesUpTo(most int64) ([]byte, error) {
	f, err := p.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p.Path, err)
	}
	if int64(len(data)) > most {
		return nil, refuse(p.Path, "it has more than %d bytes", most)
	}
	return data, nil
}

// refuse is the error of a file that says nothing that may be believed. Path is
// its own, or that of a directory above it.
func refuse(path, format string, args ...any) error {
	return &keys.Error{Path: path, Message: fmt.Sprintf(format, args...)}
}

var errPlace = errors.New("the file is named by an absolute path below the root that is checked")
