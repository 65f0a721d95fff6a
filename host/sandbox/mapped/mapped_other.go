//go:build !linux

package mapped

import "os"

func isLocal(*os.File) bool { return false } // not implemented
