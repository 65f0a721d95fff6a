// Package wit holds the definition of the native ABI as files, for the authors of tools.
package wit

import "embed"

//go:embed *.wit
var Files embed.FS // all files of the WIT package
