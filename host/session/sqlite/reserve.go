package sqlite

import (
	"os"
	"time"
)

// reserveSuffix ends the name of a file that holds room on the disk for events.
const reserveSuffix = "-reserve"

const (
	leastPiece     = 64 << 10 // of a reserve
	lookForReserve = time.Second
)

// KeepReserve keeps so many bytes of the disk for events, in a file beside the
// database, where the file system can. When an append finds the disk full, a piece of
// that is released, and the append is tried again; low is told how many bytes are left
// then, by the goroutine that writes, and now, if that was done before. When there is
// room for twice as much, the file is made again. It is called before the first append.
func (s *Store) KeepReserve(bytes int64, low func(left int64)) {
	s.reserve, s.low = bytes, low
	if info, err := os.Lstat(s.path + reserveSuffix); err == nil && info.Size() < bytes {
		low(info.Size())
	}
}

// fillReserve makes the reserve as large as it should be.
func (s *Store) fillReserve() {
	if s.reserve == 0 || time.Since(s.looked) < lookForReserve {
		return
	}
	s.looked = time.Now()
	name, have := s.path+reserveSuffix, int64(0)
	if info, err := os.Lstat(name); err == nil {
		have = info.Size()
	}
	if have >= s.reserve || room(name) < 2*s.reserve {
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

// useReserve releases a piece of the reserve, which the write-ahead log gets before
// another program does. It reports whether there was any.
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
	s.looked = time.Now()
	if s.low != nil { // not while the store is opened
		s.low(info.Size() - piece)
	}
	// Locks of SQLite are on the other two files, and so are not lost by this.
	if log, err := os.OpenFile(s.path+"-wal", os.O_RDWR|noFollow, 0); err == nil {
		defer log.Close()
		if info, err := log.Stat(); err == nil {
			_ = allocate(log, info.Size(), piece, false)
		}
	}
	return true
}

// whileFull tries again as long as the disk is full and there is a reserve. Each try
// connects.
func (s *Store) whileFull(try func() error) error {
	for {
		err := try()
		if !isFull(err) || !s.useReserve() {
			return err
		}
		s.rollback()
		s.giveUp(err)
	}
}
