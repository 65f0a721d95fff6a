//go:build !unix

package secret

import "os"

func openPrivate(path string) (*os.File, error) { return os.Open(path) }
