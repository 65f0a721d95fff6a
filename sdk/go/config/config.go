// Package config reads the configuration of a module. A module declares the names and
// their defaults with tool.Config.
package config

import "github.com/stockade-dev/stockade/sdk/go/internal/abi"

// Get returns the value of a name that the module declares: set by a person, or the default.
// ok is false for any other name, and before the first call. A value has at most 8 KiB, and is
// never a secret: see package secrets.
func Get(name string) (value string, ok bool) {
	var f abi.Frame
	defer f.Free()
	namePtr, nameLen := f.Text(name)
	// option<string>: the discriminant at 0, the text at 4.
	ret, r := f.Area(12)
	hostGet(namePtr, nameLen, ret)
	if !r.Bool(0) {
		return "", false
	}
	return r.Text(4), true
}
