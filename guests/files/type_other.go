//go:build !wasip1

package main

import "io/fs"

func isFile(info fs.FileInfo) bool { return info.Mode().IsRegular() }
