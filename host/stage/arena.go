package stage

import (
	"errors"
	"os"
	"syscall"
)

// blockBytes is the size of a block, the unit in which changed content is kept. A write of a
// single byte copies one block of the original.
const blockBytes = 4 << 10

// maxContent limits the bytes of all blocks of an arena. More are errNoRoom.
const maxContent = 4 << 30

// arena holds the blocks of all staged files of a set: first in memory, then in one file. The
// file has no name any more if the host permits that, so that a crash leaves nothing. One
// goroutine uses an arena at a time. A slot is the place of one block.
type arena struct {
	create  func() (*os.File, error) // makes the file; nil: there is only memory
	memory  int64                    // limit of len(mem); beyond it or budget the blocks move to file
	budget  *Budget
	mem     []byte   // the blocks; nil: they are in file, or there are none
	file    *os.File // nil as long as the blocks are in memory
	next    int64    // number of the first slot that was never used
	free    []int64  // slots that were given back
	dropped bool     // drop was called
}

// Errors that the host could also return for an operation.
const (
	errNoRoom   = syscall.ENOSPC // a limit is reached
	errReplaced = syscall.EAGAIN // the host has another file, or none, under the name by now
)

// allocSlot returns the number of a free slot, whose content is undefined. The error is
// errNoRoom at a limit, [os.ErrClosed] after drop, or that of spill.
func (a *arena) allocSlot() (int64, error) {
	if a.dropped {
		return 0, os.ErrClosed
	}
	if n := len(a.free); n > 0 {
		slot := a.free[n-1]
		a.free = a.free[:n-1]
		return slot, nil
	}
	end := (a.next + 1) * blockBytes
	if end > maxContent {
		return 0, errNoRoom
	}
	switch {
	case a.file == nil && end <= a.memory && a.budget.memory.reserve(blockBytes):
		a.mem = append(a.mem, make([]byte, blockBytes)...)
	case a.file == nil:
		if err := a.spill(); err != nil {
			return 0, err
		}
		fallthrough
	default:
		if !a.budget.disk.reserve(blockBytes) {
			return 0, errNoRoom
		}
	}
	a.next++
	return a.next - 1, nil
}

// spill moves the blocks from memory to a file. The error is errNoRoom if there can be no
// file, or at a limit; any other is of making or writing the file.
func (a *arena) spill() error {
	size := int64(len(a.mem))
	if a.create == nil || !a.budget.disk.reserve(size) {
		return errNoRoom
	}
	file, err := a.create()
	if err == nil {
		if _, err = file.WriteAt(a.mem, 0); err != nil {
			err = errors.Join(err, file.Close())
		}
	}
	if err != nil {
		a.budget.disk.reserve(-size)
		return err
	}
	a.budget.memory.reserve(-size)
	a.file, a.mem = file, nil
	return nil
}

func (a *arena) freeSlot(slot int64) {
	if !a.dropped {
		a.free = append(a.free, slot)
	}
}

// read fills p with bytes of the arena, from byte off of a slot on. Beyond the end of the slot
// it goes on in the slots with the next numbers, whichever file they belong to. After drop the
// error is [os.ErrClosed].
func (a *arena) read(p []byte, slot, off int64) error {
	at := slot*blockBytes + off
	switch {
	case a.dropped:
		return os.ErrClosed
	case a.file == nil:
		copy(p, a.mem[at:])
		return nil
	}
	_, err := readFull(a.file, p, at)
	return err
}

// write writes p to the arena, from byte off of a slot on. It goes on and fails as read does.
func (a *arena) write(p []byte, slot, off int64) error {
	at := slot*blockBytes + off
	switch {
	case a.dropped:
		return os.ErrClosed
	case a.file == nil:
		copy(a.mem[at:], p)
		return nil
	}
	_, err := a.file.WriteAt(p, at)
	return err
}

// drop frees the memory and closes the file. A second call does nothing.
func (a *arena) drop() error {
	if a.dropped {
		return nil
	}
	a.dropped = true
	size := int64(len(a.mem))
	a.mem, a.free = nil, nil
	if a.file == nil {
		a.budget.memory.reserve(-size)
		return nil
	}
	a.budget.disk.reserve(-a.next * blockBytes)
	err := a.file.Close()
	a.file = nil
	return err
}
