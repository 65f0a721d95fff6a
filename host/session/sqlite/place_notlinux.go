//go:build !linux

package sqlite

func checkFileSystem(string) error { return nil }
