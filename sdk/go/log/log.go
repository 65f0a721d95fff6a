// Package log sends messages to the operator of the host, who sees them beside
// its own log. They are neither part of a tool's result nor shown to the
// model. The host limits their size and their number, and drops the rest.
//
// The formats are those of package fmt.
package log

import (
	"fmt"

	"github.com/stockade-dev/stockade/sdk/go/internal/abi"
)

// The cases of the enum log.level, in their order.
const (
	trace = iota
	debug
	info
	warn
	errorLevel
)

// Tracef logs details for following every step.
func Tracef(format string, args ...any) { send(trace, fmt.Sprintf(format, args...)) }

// Debugf logs details for finding a mistake.
func Debugf(format string, args ...any) { send(debug, fmt.Sprintf(format, args...)) }

// Infof logs events that an operator may want to know.
func Infof(format string, args ...any) { send(info, fmt.Sprintf(format, args...)) }

// Warnf logs events that an operator should look at.
func Warnf(format string, args ...any) { send(warn, fmt.Sprintf(format, args...)) }

// Errorf logs a failure. It returns nothing: a tool returns its error as well.
func Errorf(format string, args ...any) { send(errorLevel, fmt.Sprintf(format, args...)) }

func send(level uint32, message string) {
	var f abi.Frame
	defer f.Free()
	ptr, size := f.Text(message)
	hostLog(level, ptr, size)
}
