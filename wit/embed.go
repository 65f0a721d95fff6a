// Package wit holds the definition of the native ABI as files, for the authors of tools.
package wit

import "embed"

// Files are the files of the WIT package.
//
//go:embed *.wit
var Files embed.FS
