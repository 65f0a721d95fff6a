package policy

import (
	"cmp"
	"time"
)

// Limits bounds one call. A field that is zero in a limit asked for takes the
// default.
type Limits struct {
	Timeout     time.Duration // wall clock, from before the guest starts
	MemoryBytes uint64        // linear memory of the guest
	Fuel        uint64        // what the guest executes, in units of package fuel
	ToolFuel    uint64        // the same, of all calls of one tool in a session
	SessionFuel uint64        // the same, of all calls in a session
	OutputBytes int           // the result as the model gets it
	LogBytes    int           // what the guest writes to stdout and stderr together, and again what it logs
	HostCalls   uint64        // calls from the guest into host functions of our own ABI

	StoreBytes        int // what the tools of one module keep in a session: keys, values and 64 bytes for each
	SessionStoreBytes int // the same, of all modules

	ExecTimeout     time.Duration // of a command when the call does not say
	ExecTimeoutMax  time.Duration // of a command, whatever the call says
	ExecOutputBytes int           // of a command, head and tail together

	HTTPTimeout       time.Duration // of one request with its redirects, whatever the call says; of silence on a connection of a command
	HTTPRequests      int           // of a call, each redirect and each connection of a command counted
	HTTPSentBytes     int           // of all requests of a call: URLs, headers and bodies; all that a command sends
	HTTPResponseBytes int           // of the body of a response, as it comes and again decompressed
}

// DefaultLimits are the limits of a call when nobody sets others.
func DefaultLimits() Limits {
	return Limits{
		Timeout:     30 * time.Second,
		MemoryBytes: 256 << 20,
		Fuel:        50_000_000_000, // some twenty seconds
		ToolFuel:    2_000_000_000_000,
		SessionFuel: 10_000_000_000_000,
		OutputBytes: 1 << 20,
		LogBytes:    64 << 10,
		HostCalls:   1 << 20,

		StoreBytes:        256 << 10,
		SessionStoreBytes: 1 << 20,

		ExecTimeout:     30 * time.Second,
		ExecTimeoutMax:  300 * time.Second,
		ExecOutputBytes: 256 << 10,

		HTTPTimeout:       30 * time.Second,
		HTTPRequests:      100,
		HTTPSentBytes:     4 << 20,
		HTTPResponseBytes: 8 << 20,
	}
}

// execMargin is what a call that runs a command gets beyond the command's own
// limit, so that the command's end is reported and not the guest's.
const execMargin = 10 * time.Second

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	l.Timeout = cmp.Or(l.Timeout, d.Timeout)
	l.MemoryBytes = cmp.Or(l.MemoryBytes, d.MemoryBytes)
	l.Fuel = cmp.Or(l.Fuel, d.Fuel)
	l.ToolFuel = cmp.Or(l.ToolFuel, d.ToolFuel)
	l.SessionFuel = cmp.Or(l.SessionFuel, d.SessionFuel)
	l.OutputBytes = cmp.Or(l.OutputBytes, d.OutputBytes)
	l.LogBytes = cmp.Or(l.LogBytes, d.LogBytes)
	l.HostCalls = cmp.Or(l.HostCalls, d.HostCalls)
	l.StoreBytes = cmp.Or(l.StoreBytes, d.StoreBytes)
	l.SessionStoreBytes = cmp.Or(l.SessionStoreBytes, d.SessionStoreBytes)
	l.ExecTimeout = cmp.Or(l.ExecTimeout, d.ExecTimeout)
	l.ExecTimeoutMax = cmp.Or(l.ExecTimeoutMax, d.ExecTimeoutMax)
	l.ExecOutputBytes = cmp.Or(l.ExecOutputBytes, d.ExecOutputBytes)
	l.HTTPTimeout = cmp.Or(l.HTTPTimeout, d.HTTPTimeout)
	l.HTTPRequests = cmp.Or(l.HTTPRequests, d.HTTPRequests)
	l.HTTPSentBytes = cmp.Or(l.HTTPSentBytes, d.HTTPSentBytes)
	l.HTTPResponseBytes = cmp.Or(l.HTTPResponseBytes, d.HTTPResponseBytes)
	l.ExecTimeout = min(l.ExecTimeout, l.ExecTimeoutMax)
	return l
}
