package fuel

import (
	"strconv"
	"strings"
)

// Version is part of the key under which compiled code is kept. It changes
// whenever the same module would be rewritten to other bytes.
const Version = 4

// Names by which a rewritten module and its host know each other. A module
// that uses one of them itself is refused.
const (
	// ImportModule and ImportRefill name the function (i64) -> i64 that the
	// module calls when its counter is below zero. It gets the value of the
	// counter and returns the new one, which must not be negative.
	ImportModule = "stockade:fuel"
	ImportRefill = "refill"
	// ExportFuel is the counter, a mutable i64 global.
	ExportFuel = "stockade:fuel"
	// ExportStart is what was the start function.
	ExportStart = "stockade:start"
	// ExportDepth is the other counter, if the depth of calls is limited.
	ExportDepth = "stockade:depth"
	// ExportReusable says, by being there, that what an instance of the module
	// knows is all in its memory and in the globals that are exported: whoever
	// puts these back has a new instance. See [ExportGlobal].
	ExportReusable = "stockade:reusable"

	exportGlobal = "stockade:global:"
)

// ExportGlobal is the name by which a reusable module exports a mutable global
// of its own; i counts these, from 0.
func ExportGlobal(i int) string { return exportGlobal + strconv.Itoa(i) }

func reserved(export string) bool {
	switch export {
	case ExportFuel, ExportStart, ExportDepth, ExportReusable:
		return true
	}
	return strings.HasPrefix(export, exportGlobal)
}
