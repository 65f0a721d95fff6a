package wasi

import (
	"cmp"
	"fmt"
)

// Limits bounds what one call may use. A zero field is its default; a negative
// one is an error of [New].
type Limits struct {
	// MaxOpenFiles is the number of files and directories open at the same
	// time. More is EMFILE. Default 256. An open directory of a guarded mount
	// takes two descriptors of the host, everything else one. Beside these, a
	// view and a row of directories have up to 16 for what leads to them.
	MaxOpenFiles int
	// MaxWriteBytes is the sum of bytes written and of bytes by which files
	// grew without being written. More is ENOSPC, and the write that would
	// exceed it writes nothing. Default 1 GiB.
	MaxWriteBytes int64
	// MaxFileBytes is the largest offset that can be written or truncated to.
	// More is EFBIG. Default 1 GiB.
	MaxFileBytes int64
	// MaxCreated is the number of files and directories created, whether or
	// not they are removed again. More is ENOSPC. Default 65536.
	MaxCreated int64
	// Charge takes what the guest has to pay for, in units of fuel. It is called
	// from the goroutine of the guest. Nil: nothing has a price.
	Charge func(units uint64)
}

// What operations cost, in units of fuel. One unit is about a nanosecond when
// everything is in the host's caches.
const (
	costPath    = 4000 // the look-up of a name
	costName    = 1500 // a directory that it goes through
	costWalk    = 4000 // the same in a guarded mount
	costSyscall = 500  // an operation on an open file
	costEntry   = 100  // an entry of a directory that is read in order
	costShift   = 3    // so many bytes, as a power of two, that are read or written cost one unit
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
