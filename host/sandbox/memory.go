package sandbox

import (
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/dialect"
	"github.com/stockade-dev/stockade/host/sandbox/linear"
)

// memory is the linear memory of one guest, never larger than its limit, and
// together with that of all other guests never larger than theirs.
type memory struct {
	mapped *linear.Memory
	start  uint64 // what it begins with: the size of the image, or 0
	quota  *policy.Budget

	// Of one call.
	quotaTaken uint64 // of the quota
	peak       uint64 // the largest that it was
	hostBytes  uint64 // what the host keeps for the guest outside of it
	grown      bool   // beyond what it began with
	shrinking  bool   // Reallocate makes it what it began with
	overLimit  bool   // the guest asked for more than the limit
	overQuota  bool   // the guest asked for more than is left for all guests together
}

// newMemory reserves a memory of zeros, or one that begins as the image.
func newMemory(limit uint64, image *linear.Image, quota *policy.Budget) (*memory, error) {
	m := &memory{quota: quota}
	var err error
	if image != nil {
		m.start = uint64(len(image.Bytes()))
		m.mapped, err = image.Map(limit)
	} else {
		m.mapped, err = linear.Reserve(limit)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Allocate implements experimental.MemoryAllocator.
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate implements experimental.LinearMemory. Nil makes memory.grow
// answer -1.
func (m *memory) Reallocate(size uint64) []byte {
	if m.shrinking {
		return m.mapped.Bytes()[:m.start]
	}
	size = max(size, m.start)
	switch {
	case size > uint64(len(m.mapped.Bytes()))-m.hostBytes:
		m.overLimit = true
		return nil
	case !m.takeQuota(size + m.hostBytes):
		m.overQuota = true
		return nil
	}
	m.grown = m.grown || m.start > 0 && size > m.start
	m.peak = max(m.peak, size)
	return m.mapped.Bytes()[:size]
}

// begin holds what a guest has from its start.
func (m *memory) begin(size uint64) error {
	m.peak, m.hostBytes, m.grown, m.overLimit, m.overQuota = size, 0, false, false, false
	if limit := uint64(len(m.mapped.Bytes())); size > limit {
		m.overLimit = true
		return &memoryError{size, limit, policy.MemoryKey}
	}
	if !m.takeQuota(size) {
		m.overQuota = true
		return &memoryError{size, m.quota.Limit(), m.quota.Key()}
	}
	return nil
}

// reserveHostBytes counts bytes that the host keeps for the guest until it ends, as if they were in
// its memory.
func (m *memory) reserveHostBytes(more uint64) error {
	limit := uint64(len(m.mapped.Bytes()))
	switch {
	case more > limit-m.peak-m.hostBytes: // which are never more than the limit
		return &dialect.MemoryError{Limit: limit, Key: policy.MemoryKey}
	case !m.takeQuota(m.peak + m.hostBytes + more):
		return &dialect.MemoryError{Limit: m.quota.Limit(), Key: m.quota.Key(), Shared: true}
	}
	m.hostBytes += more
	return nil
}

// takeQuota takes what is missing of size from the quota.
func (m *memory) takeQuota(size uint64) bool {
	if size <= m.quotaTaken {
		return true
	}
	more := size - m.quotaTaken
	if got := m.quota.Take(more); got < more {
		m.quota.Give(got)
		return false
	}
	m.quotaTaken = size
	return true
}

// shrink takes back what a guest has grown, and reports whether the engine has gone
// along. It knows memories that grow only, but asks us how large one is then. See
// RATIONALE, "Why can a memory shrink between calls?"
func (m *memory) shrink(mem api.Memory) (bool, error) {
	m.shrinking = true
	_, ok := mem.Grow(1)
	m.shrinking = false
	if !ok || uint64(mem.Size()) != m.start { // it had all pages that it may have
		return false, nil
	}
	m.grown = false
	return true, m.mapped.ClearBeyondImage(m.peak)
}

// returnQuota gives back what the quota has been asked for.
func (m *memory) returnQuota() {
	m.quota.Give(m.quotaTaken)
	m.quotaTaken = 0
}

// Free implements experimental.LinearMemory. It may be called twice.
func (m *memory) Free() {
	m.mapped.Close()
	m.returnQuota()
}
