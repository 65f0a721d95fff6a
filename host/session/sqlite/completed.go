package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"github.com/stockade-dev/stockade/host/internal/private"
)

// Every start looks for calls without a result. So that it need not look at all calls
// that there ever were, a file beside the database says up to which event each has one:
// its number and its hash, by which the file is told from that of another database. It is
// believed as far as the database is, because whoever can write the one can write the
// other; without it all calls are looked at.
const completedSuffix = "-settled"

// completedStep is how many events are settled before it is written down again.
const completedStep = 1000

// completedUpTo is the number of the last event that the file knows of; 0: of none.
func (s *Store) completedUpTo(ctx context.Context) int64 {
	name := s.path + completedSuffix
	if checkFile(s.path, name) != nil {
		return 0
	}
	f, err := os.Open(name)
	if err != nil {
		return 0
	}
	defer f.Close()
	var (
		seq        int64
		want, hash []byte
	)
	if n, _ := fmt.Fscanf(f, "%d %x\n", &seq, &want); n != 2 || seq <= 0 {
		return 0
	}
	err = s.readers.QueryRowContext(ctx, "SELECT hash FROM events WHERE seq = ?", seq).Scan(&hash)
	if err != nil || len(hash) == 0 || !bytes.Equal(hash, want) {
		return 0
	}
	return seq
}

// saveCompletedUpTo writes the file. Where it cannot be written, the next start looks again.
func (s *Store) saveCompletedUpTo(ctx context.Context, seq int64) {
	var hash []byte
	if s.readers.QueryRowContext(ctx, "SELECT hash FROM events WHERE seq = ?", seq).Scan(&hash) == nil {
		_ = private.Write(s.path+completedSuffix, fmt.Appendf(nil, "%d %x\n", seq, hash))
	}
}
