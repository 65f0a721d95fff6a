//go:build !linux

package mapped

import "os"

func local(*os.File) bool { return false } // nobody has looked
