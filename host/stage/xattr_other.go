//go:build !linux

package stage

import "os"

// keepAttributes does nothing here: there is no overlay, and what a mode does not say is
// not known.
func keepAttributes(*os.File, string) {}
