//go:build !unix

package secret

import (
	"io/fs"
	"os"
)

// hasModes: who may read a file is for its folder's access list to say, which
// is the user's own.
const hasModes = false

func openPrivate(path string) (*os.File, error) { return os.Open(path) }

func ownedByMe(fs.FileInfo) (owner uint32, mine bool) { return 0, true }

func syncFolder(string) error { return nil }
