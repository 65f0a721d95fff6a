package fuel

import (
	"strconv"
	"strings"
)

// Version is part of the key of cached code. It must change whenever the rewriting changes.
const Version = 4

// Names that a rewritten module and its host share. [Rewrite] refuses modules that use them.
const (
	// ImportModule and ImportRefill name the function (i64) -> i64 that the module calls when
	// its counter is below zero. It gets the counter and returns its new value, which must not
	// be negative. For a call beyond the depth limit, see [Options].
	ImportModule = "stockade:fuel"
	ImportRefill = "refill"
	ExportFuel   = "stockade:fuel"  // the counter, a mutable i64 global
	ExportStart  = "stockade:start" // the former start function, if there was one
	ExportDepth  = "stockade:depth" // the depth counter, a mutable i64 global, if the depth is limited
	// ExportReusable is present if all state of an instance is in its memory and in exported
	// globals: restoring these makes the instance as good as new. See [ExportGlobal].
	ExportReusable = "stockade:reusable"
	exportGlobal   = "stockade:global:"
)

// ExportGlobal returns the export name of mutable global i of a reusable module; i counts the
// mutable globals that the module defines, from 0.
func ExportGlobal(i int) string { return exportGlobal + strconv.Itoa(i) }

func reserved(export string) bool {
	switch export {
	case ExportFuel, ExportStart, ExportDepth, ExportReusable:
		return true
	}
	return strings.HasPrefix(export, exportGlobal)
}
