package sqlite

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/stockade-dev/stockade/host/session"
)

// preimagesBudget is how many bytes of images the store keeps, as they are stored.
const preimagesBudget = 256 << 20

// minCompressed is how long a content is at least that is worth being compressed.
const minCompressed = 128

// storedPreimage is a content as it is stored.
type storedPreimage struct {
	sum  [32]byte
	size int
	data []byte
}

// compressors are writers for pack: to make one takes longer than a small content.
var compressors = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // fails for no level but one out of range
	return w
}}

// compressPreimages compresses contents. It is done before the writer has its turn, so that nobody
// waits for it but who asks.
func compressPreimages(contents [][]byte) (out []storedPreimage, bytes int) {
	for _, content := range contents {
		p := storedPreimage{sum: sha256.Sum256(content), size: len(content), data: content}
		if len(content) >= minCompressed {
			p.data = deflated(content)
		}
		if p.data == nil {
			p.data = []byte{} // NULL otherwise
		}
		out = append(out, p)
		bytes += len(p.data)
	}
	return out, bytes
}

// deflated is the content compressed, or as it is where that is no longer.
func deflated(content []byte) []byte {
	var b bytes.Buffer
	w := compressors.Get().(*flate.Writer)
	defer compressors.Put(w)
	w.Reset(&b)
	_, _ = w.Write(content) // a buffer takes all
	_ = w.Close()
	if b.Len() < len(content) {
		return b.Bytes()
	}
	return content
}

// insertPreimages stores the images of an event inside the open transaction.
func (s *Store) insertPreimages(ctx context.Context, e session.Event, images []storedPreimage) error {
	for _, p := range images {
		_, err := s.conn.ExecContext(ctx, `INSERT INTO images (session, sha256, seq, size, stored, packed) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (session, sha256) DO UPDATE SET seq = excluded.seq, size = excluded.size, stored = excluded.stored, packed = excluded.packed`,
			e.Session, p.sum[:], int64(e.Seq), p.size, len(p.data), p.data)
		if err != nil {
			return fmt.Errorf("keep an image: %w", err)
		}
		s.preimageBytes += int64(len(p.data))
	}
	return nil
}

// makeRoom removes the oldest images inside the open transaction, those of one event
// together, when all may be too many. What there is altogether is looked up now and
// then only: other processes add to it too.
func (s *Store) makeRoom(ctx context.Context) error {
	if s.preimageBytes <= s.preimagesLimit/32 {
		return nil
	}
	s.preimageBytes = 0
	var total int64
	if err := s.conn.QueryRowContext(ctx, "SELECT coalesce(sum(stored), 0) FROM images INDEXED BY images_age").Scan(&total); err != nil {
		return err
	}
	if total <= s.preimagesLimit {
		return nil
	}
	// A sixteenth more than is needed, so that it is not done each time.
	var last int64
	err := s.conn.QueryRowContext(ctx, `SELECT seq FROM (SELECT seq, sum(stored) OVER (ORDER BY seq) AS upto FROM images INDEXED BY images_age)
		WHERE upto >= ? ORDER BY seq LIMIT 1`, total-s.preimagesLimit+s.preimagesLimit/16).Scan(&last)
	if err != nil {
		return err
	}
	_, err = s.conn.ExecContext(ctx, "DELETE FROM images WHERE seq <= ? AND seq < (SELECT max(seq) FROM images)", last)
	return err
}

// Preimage implements [session.Store]. A content that has not the hash any more by which
// it is asked for is an error.
func (s *Store) Preimage(ctx context.Context, id string, sum [32]byte) ([]byte, error) {
	var (
		size int64
		data []byte
	)
	err := s.readers.QueryRowContext(ctx, "SELECT size, packed FROM images WHERE session = ? AND sha256 = ?", id, sum[:]).Scan(&size, &data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, session.ErrNoPreimage
	}
	if err != nil {
		return nil, readError(ctx, "an image", err)
	}
	content := data
	if size != int64(len(data)) {
		// However much somebody has packed in there.
		content, err = io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data)), session.MaxPreimageBytes+1))
	}
	if err != nil || sha256.Sum256(content) != sum {
		return nil, fmt.Errorf("the image %x in the session store is not what was written", sum[:6])
	}
	return content, nil
}
