// Package progress tells the host how far a call has come, and asks whether
// its caller still wants the result.
package progress

import "github.com/stockade-dev/stockade/sdk/go/internal/abi"

// Report says that done of total steps are done; a total of 0 means that it is
// not known. The unit is the tool's own. The note is for a person and may be
// empty. Reporting often is cheap: the host shows the latest.
func Report(done, total uint64, note string) {
	var f abi.Frame
	defer f.Free()
	ptr, size := f.Text(note)
	hostReport(done, abi.Flag(total > 0), total, ptr, size)
}

// Cancelled reports whether the caller gave up. A long tool asks now and then,
// and returns tool.Cancelled if so; the host ends one that does not.
func Cancelled() bool { return hostCancelled() != 0 }
