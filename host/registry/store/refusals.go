package store

import (
	"encoding/json"
	"io"
	"os"

	"github.com/stockade-dev/stockade/host/internal/private"
)

// maxRefusedBytes bounds the file of a [RefusalCache].
const maxRefusedBytes = 8 << 20

// RefusalCache is what is wrong with files that are looked at without being asked for, so
// that a start need not look at them again. It is a cache: what it says leaves a
// module out and lets none in.
type RefusalCache struct {
	State string            `json:"state"` // of all on which this depends
	Notes map[string]string `json:"notes"` // by path: why it is not taken
}

// Refusals returns what was kept last. What cannot be read, or what others could have
// written, is nothing.
func (s *Store) Refusals() RefusalCache {
	f, st, err := open(s.refusalsPath())
	if err != nil {
		return RefusalCache{}
	}
	defer f.Close()
	var r RefusalCache
	if checkWriters(s.refusalsPath(), st) != nil || json.NewDecoder(io.LimitReader(f, maxRefusedBytes)).Decode(&r) != nil {
		return RefusalCache{}
	}
	return r
}

// SaveRefusals keeps r in the place of what was kept before.
func (s *Store) SaveRefusals(r RefusalCache) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return private.Write(s.refusalsPath(), data)
}
