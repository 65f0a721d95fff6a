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

// preimagesBudget limits the compressed bytes of all preimages. If there are more, the oldest are
// deleted from time to time, but never those of the latest event with preimages.
const preimagesBudget = 256 << 20

// minCompressed is the least number of bytes of a content that is compressed.
const minCompressed = 128

// storedPreimage is a preimage in the form in which it is stored.
type storedPreimage struct {
	sum  [32]byte // SHA-256 of the content
	size int      // number of bytes of the content
	data []byte   // the compressed content, or the content if it is short or compressing does not shorten it
}

// compressors holds writers for deflated. A new writer takes longer than a small content.
var compressors = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // fails only for an invalid level
	return w
}}

// compressPreimages compresses contents, and returns the number of bytes of all data. It runs
// before the writer takes the request, so that only the caller waits for it.
func compressPreimages(contents [][]byte) (out []storedPreimage, bytes int) {
	for _, content := range contents {
		p := storedPreimage{sum: sha256.Sum256(content), size: len(content), data: content}
		if len(content) >= minCompressed {
			p.data = deflated(content)
		}
		if p.data == nil {
			p.data = []byte{} // nil would be stored as NULL
		}
		out = append(out, p)
		bytes += len(p.data)
	}
	return out, bytes
}

// deflated returns the compressed content, or the content if compressing does not shorten it.
func deflated(content []byte) []byte {
	var b bytes.Buffer
	w := compressors.Get().(*flate.Writer)
	defer compressors.Put(w)
	w.Reset(&b)
	_, _ = w.Write(content) // a buffer never fails
	_ = w.Close()
	if b.Len() < len(content) {
		return b.Bytes()
	}
	return content
}

// insertPreimages stores the preimages of an event in the open transaction.
func (s *Store) insertPreimages(ctx context.Context, e session.Event, images []storedPreimage) error {
	for _, p := range images {
		_, err := s.conn.ExecContext(ctx, `INSERT INTO images (session, sha256, seq, size, stored, packed) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (session, sha256) DO UPDATE SET seq = excluded.seq, size = excluded.size, stored = excluded.stored, packed = excluded.packed`,
			e.Session, p.sum[:], int64(e.Seq), p.size, len(p.data), p.data)
		if err != nil {
			return fmt.Errorf("store a preimage: %w", err)
		}
		s.preimageBytes += int64(len(p.data))
	}
	return nil
}

// makeRoom removes the oldest preimages in the open transaction if all together exceed the limit.
// Those of one event are removed together. The total is counted only from time to time; it cannot
// be tracked, because other processes add to it.
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
	// A sixteenth more than necessary, so that it is not needed each time.
	var last int64
	err := s.conn.QueryRowContext(ctx, `SELECT seq FROM (SELECT seq, sum(stored) OVER (ORDER BY seq) AS upto FROM images INDEXED BY images_age)
		WHERE upto >= ? ORDER BY seq LIMIT 1`, total-s.preimagesLimit+s.preimagesLimit/16).Scan(&last)
	if err != nil {
		return err
	}
	_, err = s.conn.ExecContext(ctx, "DELETE FROM images WHERE seq <= ? AND seq < (SELECT max(seq) FROM images)", last)
	return err
}

// Preimage implements [session.Store]. A content that does not match its hash is an error.
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
		return nil, readError(ctx, "a preimage", err)
	}
	content := data
	if size != int64(len(data)) {
		// Limited, because the file may have been changed.
		content, err = io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data)), session.MaxPreimageBytes+1))
	}
	if err != nil || sha256.Sum256(content) != sum {
		return nil, fmt.Errorf("the image %x in the session store is not what was written", sum[:6])
	}
	return content, nil
}
