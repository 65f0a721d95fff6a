package sandbox

import (
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/dialect"
	"github.com/stockade-dev/stockade/host/sandbox/linear"
)

// memory is the linear memory of one guest. Its own size is limited; quota limits the sum of
// all guests' memories.
type memory struct {
	mapped *linear.Memory
	start  uint64         // size of the image, with which each call begins; 0: there is no image
	quota  *policy.Budget // limits the memories of all guests together, in bytes

	// The fields below are about the current call.
	quotaTaken uint64 // bytes taken from quota, and not returned
	peak       uint64 // largest size of the memory, in bytes
	hostBytes  uint64 // bytes that the host stores for the guest outside of the memory
	grown      bool   // the guest has grown the memory beyond its image
	shrinking  bool   // set during shrink: Reallocate ignores the size asked for, and returns start bytes
	overLimit  bool   // the guest asked for more than the limit
	overQuota  bool   // the guest asked for more than quota had left
}

// newMemory reserves limit bytes of address space. It begins as a copy of image; nil: empty.
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

// Reallocate implements experimental.LinearMemory. It returns nil if size is over a limit,
// which makes memory.grow return -1.
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

// begin prepares the memory for a guest that begins with size bytes. The error is a
// memoryError if that is over a limit.
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

// reserveHostBytes counts bytes that the host stores for the guest until it ends, as if they
// were in its memory. The error is a dialect.MemoryError if they are over a limit.
func (m *memory) reserveHostBytes(more uint64) error {
	limit := uint64(len(m.mapped.Bytes()))
	switch {
	case more > limit-m.peak-m.hostBytes: // the sum is at most the limit
		return &dialect.MemoryError{Limit: limit, Key: policy.MemoryKey}
	case !m.takeQuota(m.peak + m.hostBytes + more):
		return &dialect.MemoryError{Limit: m.quota.Limit(), Key: m.quota.Key(), Shared: true}
	}
	m.hostBytes += more
	return nil
}

// takeQuota raises quotaTaken to size. False: quota has too little, and nothing was taken.
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

// shrink gives the memory its size from the beginning of the call, and reports whether the
// engine complied. The engine only grows memories, but takes the size from Reallocate. See
// RATIONALE, "Why can a memory shrink between calls?"
func (m *memory) shrink(mem api.Memory) (bool, error) {
	m.shrinking = true
	_, ok := mem.Grow(1)
	m.shrinking = false
	if !ok || uint64(mem.Size()) != m.start { // the guest had the last page that it may have
		return false, nil
	}
	m.grown = false
	return true, m.mapped.ClearBeyondImage(m.peak)
}

func (m *memory) returnQuota() {
	m.quota.Give(m.quotaTaken)
	m.quotaTaken = 0
}

// Free implements experimental.LinearMemory. It may be called twice.
func (m *memory) Free() {
	m.mapped.Close()
	m.returnQuota()
}
