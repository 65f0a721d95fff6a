//go:build !unix

package codecache

import "io/fs"

// writableByOthers returns false: the user's cache folder is private by the rules of the
// platform. Its ACL is not checked yet.
func writableByOthers(fs.FileInfo) bool { return false }
func ownedByUser(fs.FileInfo) bool      { return true }
func isHardlinked(fs.FileInfo) bool     { return false }

func identity(fs.FileInfo) string { return "" }
