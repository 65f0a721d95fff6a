package fuel

import (
	"strconv"
	"strings"
)

// Version is part of the key of cached compiled code. It must change whenever the
// rewriting of a module changes.
const Version = 4

// Names that a rewritten module and its host share. A module that already uses one of
// them is refused.
const (
	// ImportModule and ImportRefill name the function (i64) -> i64 that the module calls
	// when its counter is below zero. It gets the value of the counter and returns the
	// new one, which must not be negative.
	ImportModule = "stockade:fuel"
	ImportRefill = "refill"
	// ExportFuel is the counter, a mutable i64 global.
	ExportFuel = "stockade:fuel"
	// ExportStart is the former start function.
	ExportStart = "stockade:start"
	// ExportDepth is the depth counter, if the depth of calls is limited.
	ExportDepth = "stockade:depth"
	// ExportReusable is present if all state of an instance is in its memory and in
	// exported globals: restoring these makes the instance as good as new. See
	// [ExportGlobal].
	ExportReusable = "stockade:reusable"

	exportGlobal = "stockade:global:"
)

// ExportGlobal returns the export name of mutable global i of a reusable module; i counts
// the mutable globals that the module defines, from 0.
func ExportGlobal(i int) string { return exportGlobal + strconv.Itoa(i) }

func reserved(export string) bool {
	switch export {
	case ExportFuel, ExportStart, ExportDepth, ExportReusable:
		return true
	}
	return strings.HasPrefix(export, exportGlobal)
}
