// Package progress reports the progress of a call to the host, and asks whether its caller
// still wants the result.
package progress

import "github.com/stockade-dev/stockade/sdk/go/internal/abi"

// Report reports that done of total steps are done; a total of 0 is unknown. The tool chooses
// the unit. The note is for a person and may be empty. Frequent reports are cheap: the host
// shows the latest.
func Report(done, total uint64, note string) {
	var f abi.Frame
	defer f.Free()
	ptr, size := f.Text(note)
	hostReport(done, abi.Flag(total > 0), total, ptr, size)
}

// Cancelled reports whether the caller gave up. A long tool should ask now and then, and then
// return tool.Cancelled; the host ends a tool that does not.
func Cancelled() bool { return hostCancelled() != 0 }
