package dialect

import "fmt"

// MemoryError is the error of a guest for which the host would have to store too much.
type MemoryError struct {
	Limit  uint64 // bytes
	Key    string // name of the setting with the limit
	Shared bool   // the limit is that of all calls together
}

func (e *MemoryError) Error() string {
	if e.Shared {
		return fmt.Sprintf("more memory than is left of the %d MiB of all calls together", e.Limit>>20)
	}
	return fmt.Sprintf("more than its memory limit of %d MiB, including the memory that the host keeps for it", e.Limit>>20)
}
