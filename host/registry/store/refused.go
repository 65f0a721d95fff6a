package store

import (
	"encoding/json"
	"io"
	"os"

	"github.com/stockade-dev/stockade/host/internal/private"
)

// maxRefusedBytes bounds the file of a [Refused].
const maxRefusedBytes = 8 << 20

// Refused is what is wrong with files that are looked at without being asked for, so
// that a start need not look at them again. It is a cache: what it says leaves a
// module out and lets none in.
type Refused struct {
	State string            `json:"state"` // of all on which this depends
	Notes map[string]string `json:"notes"` // by path: why it is not taken
}

// Refused returns what was kept last. What cannot be read, or what others could have
// written, is nothing.
func (s *Store) Refused() Refused {
	f, st, err := open(s.refused())
	if err != nil {
		return Refused{}
	}
	defer f.Close()
	var r Refused
	if checkMine(s.refused(), st) != nil || json.NewDecoder(io.LimitReader(f, maxRefusedBytes)).Decode(&r) != nil {
		return Refused{}
	}
	return r
}

// KeepRefused keeps r in the place of what was kept before.
func (s *Store) KeepRefused(r Refused) error {
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
	return private.Write(s.refused(), data)
}
