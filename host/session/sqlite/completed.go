package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"github.com/stockade-dev/stockade/host/internal/private"
)

// completedSuffix is the suffix of a file beside the database. Every start looks for calls
// without a result. To avoid reading all calls ever made, the file names an event up to which
// each call has a result, by its number and its hash. The hash shows that the file belongs to
// this database. The file is trusted like the database, because the same users can write both.
// Without it all calls are read.
const completedSuffix = "-settled"

// completedStep is the number of new events after which a start writes the file again.
const completedStep = 1000

// completedUpTo returns the number of the event that the file names; 0: there is no valid file.
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

// saveCompletedUpTo writes the file of completedSuffix. seq is the number of the event up to which
// each call has a result. An error is ignored: the next start then only reads more calls.
func (s *Store) saveCompletedUpTo(ctx context.Context, seq int64) {
	var hash []byte
	if s.readers.QueryRowContext(ctx, "SELECT hash FROM events WHERE seq = ?", seq).Scan(&hash) == nil {
		_ = private.Write(s.path+completedSuffix, fmt.Appendf(nil, "%d %x\n", seq, hash))
	}
}
