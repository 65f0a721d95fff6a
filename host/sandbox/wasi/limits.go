package wasi

import (
	"cmp"
	"fmt"
)

// Limits bounds the resources of one call. A zero field means its default; a negative
// field is an error of [New].
type Limits struct {
	// MaxOpenFiles limits the files and directories open at the same time. More is EMFILE.
	// Default 256. A directory takes up to two descriptors of the host, a file one. Each view
	// and each run of [FS.Dirs] or [FS.Lstats] keeps up to 16 parent directories open besides.
	MaxOpenFiles int
	// MaxWriteBytes limits the bytes written, and bytes by which files grew without being
	// written, together. More is ENOSPC, and a write that would exceed the limit writes
	// nothing. Default 1 GiB.
	MaxWriteBytes int64
	// MaxFileBytes is the largest offset, in bytes, that can be written or truncated to.
	// More is EFBIG. Default 1 GiB.
	MaxFileBytes int64
	// MaxCreated limits the files and directories created, including those removed again. More
	// is ENOSPC. Default 65536.
	MaxCreated int64
	// Charge is called with the price of each operation, in units of fuel, on the
	// goroutine of the guest. Nil: operations are free.
	Charge func(units uint64)
}

// Prices of operations, in units of fuel. One unit is about a nanosecond if everything is
// in the host's caches.
const (
	costPath    = 4000 // for a look-up of a name; also for File.Truncate and File.Sync
	costName    = 1500 // for each directory that the name passes through
	costWalk    = 4000 // for each name that mount.walk passes before the last, if that is more
	costSyscall = 500  // for most operations on an open file or directory
	costEntry   = 100  // for an entry of a directory, read in order
	costShift   = 3    // 1<<costShift bytes read or written cost one unit
)

const (
	defaultOpenFiles        = 256
	defaultWriteBytes int64 = 1 << 30
	defaultFileBytes  int64 = 1 << 30
	defaultCreated    int64 = 1 << 16
)

func (l Limits) withDefaults() (Limits, error) {
	if l.MaxOpenFiles < 0 || l.MaxWriteBytes < 0 || l.MaxFileBytes < 0 || l.MaxCreated < 0 {
		return Limits{}, fmt.Errorf("negative limit in %+v", l)
	}
	if l.Charge == nil {
		l.Charge = func(uint64) {}
	}
	l.MaxOpenFiles = cmp.Or(l.MaxOpenFiles, defaultOpenFiles)
	l.MaxWriteBytes = cmp.Or(l.MaxWriteBytes, defaultWriteBytes)
	l.MaxFileBytes = cmp.Or(l.MaxFileBytes, defaultFileBytes)
	l.MaxCreated = cmp.Or(l.MaxCreated, defaultCreated)
	return l, nil
}
