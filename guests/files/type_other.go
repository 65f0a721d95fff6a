//go:build !wasip1

package main

import "io/fs"

// isFile reports whether info is that of a regular file.
func isFile(info fs.FileInfo) bool { return info.Mode().IsRegular() }
