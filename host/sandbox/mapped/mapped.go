// Package mapped decides which files may be mapped into memory for the lifetime of this
// process, instead of being copied.
package mapped

import "os"

// IsLocal reports whether a file is on a known file system of this machine. A file of another
// machine must not be mapped: it can be cut off, or the machine can stop answering, and then
// an access ends the process.
func IsLocal(f *os.File) bool { return isLocal(f) }
