package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// reserveSuffix is the suffix of the file that reserves disk space for events.
const reserveSuffix = "-reserve"

const (
	leastPiece           = 64 << 10    // least number of bytes that the reserve releases at a time, if it has them
	reserveCheckInterval = time.Second // least time between two checks of whether to fill the reserve
)

// KeepReserve asks the writer to reserve bytes of disk space for events, in a file beside the
// database. After appends it fills the file, also again, if twice as much space is free. This works
// only on Linux, if the file system can do so. When the disk is full during an append, a piece of
// the reserve is released and the append is tried again. The writer then calls low, which must not
// be nil, with the number of bytes that remain in the reserve. KeepReserve itself calls low if there
// is a smaller file. It must be called before any append.
func (s *Store) KeepReserve(bytes int64, low func(left int64)) {
	s.reserve, s.onReserveUsed = bytes, low
	if info, err := os.Lstat(s.path + reserveSuffix); err == nil && info.Size() < bytes {
		low(info.Size())
	}
}

// fillReserve fills the reserve, if there is enough free space.
func (s *Store) fillReserve() {
	if s.reserve == 0 || time.Since(s.reserveChecked) < reserveCheckInterval {
		return
	}
	s.reserveChecked = time.Now()
	name := s.path + reserveSuffix
	info, err := os.Lstat(name)
	have := int64(0)
	if err == nil {
		have = info.Size()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if have >= s.reserve || freeBytes(name) < 2*s.reserve || err != nil && makeReserve(name, s.reserve) == nil {
		return
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|noFollow, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	if allocate(f, 0, s.reserve, true) != nil {
		_ = f.Truncate(have)
	}
}

func (s *Store) hasReserve() bool {
	info, err := os.Lstat(s.path + reserveSuffix)
	return err == nil && info.Size() > 0
}

// useReserve releases a piece of the reserve. It allocates the piece to the write-ahead log,
// before another program takes the space. It returns false if it cannot release any.
func (s *Store) useReserve() bool {
	f, err := os.OpenFile(s.path+reserveSuffix, os.O_RDWR|noFollow, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 || !info.Mode().IsRegular() {
		return false
	}
	piece := min(info.Size(), max(info.Size()/8, leastPiece))
	if f.Truncate(info.Size()-piece) != nil {
		return false
	}
	s.reserveChecked = time.Now()
	if s.onReserveUsed != nil { // nil while the store is opened
		s.onReserveUsed(info.Size() - piece)
	}
	// SQLite locks only the two other files, so closing this one releases no lock.
	if log, err := os.OpenFile(s.path+"-wal", os.O_RDWR|noFollow, 0); err == nil {
		defer log.Close()
		if info, err := log.Stat(); err == nil {
			_ = allocate(log, info.Size(), piece, false)
		}
	}
	return true
}

// retryWithReserve repeats try while the disk is full and there is a reserve. try must call
// connect, because the connection may have been closed.
func (s *Store) retryWithReserve(try func() error) error {
	for {
		err := try()
		if !isFull(err) || !s.useReserve() {
			return err
		}
		s.rollback()
		s.dropBrokenConn(err)
	}
}
