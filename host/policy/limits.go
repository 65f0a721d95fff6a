package policy

import (
	"cmp"
	"time"
)

// Limits holds the limits of calls; sizes are in bytes. A zero field stands for the default.
// At its limit of time, fuel or host calls, a call is ended. Further memory, requests and
// stored data are refused. Results, output and logs are cut; a larger response is cut or is an
// error, as the request says.
type Limits struct {
	Timeout     time.Duration // wall clock, from before the guest starts; with a command: see ExecTimeout
	MemoryBytes uint64        // linear memory of the guest
	Fuel        uint64        // instructions that the guest executes, in units of package fuel
	ToolFuel    uint64        // fuel of all calls of one tool in a session
	SessionFuel uint64        // fuel of all calls in a session
	OutputBytes int           // size of the result that the model gets
	LogBytes    int           // size of stdout and stderr together, and as much again for log messages
	HostCalls   uint64        // number of calls from the guest into host functions of our own ABI

	StoreBytes        int // size of the store of one module in a session: keys, values and 64 for each pair
	SessionStoreBytes int // size of the stores of all modules in a session together, counted as for StoreBytes

	ExecTimeout     time.Duration // time of a command if the call sets none
	ExecTimeoutMax  time.Duration // highest time that a call can set for a command
	ExecOutputBytes int           // size of a command's output, head and tail together

	HTTPTimeout       time.Duration // time of a request with its redirects, or of silence on a connection
	HTTPRequests      int           // requests of a call; redirects and connections of a command count
	HTTPSentBytes     int           // size of all requests of a call (URLs, headers, bodies), or of its command
	HTTPResponseBytes int           // size of the body of one response, as received, and again decompressed
}

// DefaultLimits returns the default limits of a call.
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

// execMargin is the time of a call beyond the time limit of its command, so that the command
// reaches its own limit first and that limit is reported.
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
