package settings

import (
	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/policy"
)

// Limits returns the limits of a call and of a session. set holds, by key, the place where a
// limit is set; it has no entry for a default.
func (s *Settings) Limits() (limits policy.Limits, set map[string]string) {
	c := s.Config
	limits = policy.Limits{
		Timeout: c.ToolTimeout, MemoryBytes: uint64(c.ToolMemory), OutputBytes: c.MaxOutputSize,
		Fuel: uint64(c.ToolFuel), ToolFuel: uint64(c.ToolFuelTotal), SessionFuel: uint64(c.SessionFuel),
		StoreBytes: c.ToolStore, SessionStoreBytes: c.SessionStore,
		ExecTimeout: c.Bash.Timeout, ExecOutputBytes: c.Bash.MaxOutput,
		HTTPTimeout: c.Network.Timeout, HTTPRequests: c.Network.MaxRequests, HTTPResponseBytes: c.Network.MaxResponse,
	}
	set = map[string]string{}
	for _, key := range config.LimitKeys() {
		if from := c.Source(key); from != "default" {
			set[key] = from
		}
	}
	return limits, set
}
