package sandbox

import (
	"fmt"

	"github.com/tetratelabs/wazero/experimental"

	"github.com/stockade-dev/stockade/host/policy"
)

// memory is the linear memory of one instance: reserved up front at its limit,
// so that growing neither copies nor leaves garbage, and never larger.
type memory struct {
	region []byte
	peak   uint64
	denied bool // the guest asked for more than the limit
	quota  *policy.Budget
	full   bool // the guest asked for more than is left for all guests together
}

func newMemory(limit uint64, quota *policy.Budget) (*memory, error) {
	region, err := reserve(limit)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of address space: %w", limit, err)
	}
	return &memory{region: region, quota: quota}, nil
}

// Allocate implements experimental.MemoryAllocator.
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate implements experimental.LinearMemory. Nil makes memory.grow
// answer -1.
func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.region)) {
		m.denied = true
		return nil
	}
	if size > m.peak {
		more := size - m.peak
		if got := m.quota.Take(more); got < more {
			m.quota.Give(got)
			m.full = true
			return nil
		}
		m.peak = size
	}
	return m.region[:size]
}

// Free implements experimental.LinearMemory. It may be called twice.
func (m *memory) Free() {
	if m.region != nil {
		release(m.region)
		m.region = nil
		m.quota.Give(m.peak)
	}
}
