//go:build !linux

package stage

import "os"

// copyAttributes does nothing: only on Linux are attributes beside the mode known.
func copyAttributes(*os.File, string) {}
