package policy

import "time"

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

	ExecTimeout     time.Duration // of a command when the call does not say
	ExecTimeoutMax  time.Duration // of a command, whatever the call says
	ExecOutputBytes int           // of a command, head and tail together

	HTTPTimeout       time.Duration // of one request with its redirects, whatever the call says
	HTTPRequests      int           // of a call, each redirect counted
	HTTPSentBytes     int           // of all requests of a call: URLs, headers and bodies
	HTTPResponseBytes int           // of the body of a response, as it comes and again decompressed
}

// DefaultLimits are the limits of a call when nobody sets others.
func DefaultLimits() Limits {
	return Limits{
		Timeout:         30 * time.Second,
		MemoryBytes:     256 << 20,
		Fuel:            50_000_000_000, // some twenty seconds
		ToolFuel:        2_000_000_000_000,
		SessionFuel:     10_000_000_000_000,
		OutputBytes:     1 << 20,
		LogBytes:        64 << 10,
		HostCalls:       1 << 20,
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
	set(&l.Timeout, d.Timeout)
	set(&l.MemoryBytes, d.MemoryBytes)
	set(&l.Fuel, d.Fuel)
	set(&l.ToolFuel, d.ToolFuel)
	set(&l.SessionFuel, d.SessionFuel)
	set(&l.OutputBytes, d.OutputBytes)
	set(&l.LogBytes, d.LogBytes)
	set(&l.HostCalls, d.HostCalls)
	set(&l.ExecTimeout, d.ExecTimeout)
	set(&l.ExecTimeoutMax, d.ExecTimeoutMax)
	set(&l.ExecOutputBytes, d.ExecOutputBytes)
	set(&l.HTTPTimeout, d.HTTPTimeout)
	set(&l.HTTPRequests, d.HTTPRequests)
	set(&l.HTTPSentBytes, d.HTTPSentBytes)
	set(&l.HTTPResponseBytes, d.HTTPResponseBytes)
	l.ExecTimeout = min(l.ExecTimeout, l.ExecTimeoutMax)
	return l
}

func set[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}
