//go:build !unix

package codecache

import "io/fs"

func isHardlinked(fs.FileInfo) bool { return false }
func identity(fs.FileInfo) string   { return "" }
