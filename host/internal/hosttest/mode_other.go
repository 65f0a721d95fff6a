//go:build !unix

package hosttest

import "io/fs"

// ModeText is empty: there are no modes here.
func ModeText(fs.FileMode) string { return "" }
