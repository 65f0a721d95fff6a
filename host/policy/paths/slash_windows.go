package paths

import "strings"

// slashed writes a path with slashes.
func slashed(name string) string { return strings.ReplaceAll(name, `\`, "/") }
