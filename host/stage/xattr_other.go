//go:build !linux

package stage

import "os"

// keepAttributes does nothing: here is no overlay, and no attribute beside the mode is known.
func keepAttributes(*os.File, string) {}
