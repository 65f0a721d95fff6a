package store

import (
	"encoding/json"
	"io"
	"os"

	"github.com/stockade-dev/stockade/host/internal/private"
)

// maxRefusedBytes limits the size of the saved [RefusalCache]; a larger one counts as empty.
const maxRefusedBytes = 8 << 20

// RefusalCache holds the reasons why files in the administrator's folder were refused, so that
// a start need not review them again. It can keep a module out, and never let one in.
type RefusalCache struct {
	State string            `json:"state"` // a hash of everything that can change a refusal
	Notes map[string]string `json:"notes"` // reason of each refusal, by the path of the file
}

// Refusals returns the saved cache. It is empty if it cannot be read, or if others could
// have written it.
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

// SaveRefusals replaces the saved cache.
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
