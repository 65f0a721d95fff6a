// Package mapped says which files may be mapped into memory for as long as this
// process runs, instead of being copied there.
package mapped

import "os"

// IsLocal says whether a file is on a file system of this machine that is known.
// Of what is mapped from another machine a part can be cut off or no longer be
// answered for, and to look at that ends the process.
func IsLocal(f *os.File) bool { return isLocal(f) }
