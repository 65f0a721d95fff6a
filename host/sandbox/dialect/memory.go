package dialect

import "fmt"

// MemoryError ends a guest for which the host would have to keep more than it may.
type MemoryError struct {
	Limit  uint64 // in bytes
	Key    string // what the settings call it
	Shared bool   // it is that of all calls together
}

func (e *MemoryError) Error() string {
	if e.Shared {
		return fmt.Sprintf("more memory than is left of the %d MiB of all calls together", e.Limit>>20)
	}
	return fmt.Sprintf("more than its memory limit of %d MiB, in which what it has from the host counts too", e.Limit>>20)
}
