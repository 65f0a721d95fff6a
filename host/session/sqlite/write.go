package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/session"
)

const (
	// maxBodyBytes is the size of the largest body that Append takes.
	maxBodyBytes = 64 << 20
	// maxNameBytes bounds the session, type and call of a draft. Call ids
	// come from the network.
	maxNameBytes = 1024
	// maxGroup bounds the requests of one transaction.
	maxGroup = 1024
	// maxGroupBytes bounds the bodies of one transaction, and with them the
	// memory that it needs and the time that the others wait.
	maxGroupBytes = maxBodyBytes
)

// Store is a [session.Store] in a SQLite file. It is safe for concurrent use,
// and several processes may have the same file open. After Close every method
// returns an error that wraps [fs.ErrClosed].
type Store struct {
	// Fixed at creation.
	path        string
	now         func() time.Time // need not run forwards
	lockTimeout time.Duration
	readers     *sql.DB

	preimagesLimit int64   // bytes
	writers        *sql.DB // makes conn
	wake           chan struct{}
	ended          chan struct{} // closed when the writer has ended

	// The writer's alone.
	conn *sql.Conn // nil after a failure; the next request connects again
	// preimageBytes is how much was added to the images since they were last counted.
	preimageBytes  int64
	reserve        int64            // bytes; 0: none is made
	onReserveUsed  func(left int64) // nil: nobody has asked for a reserve yet
	reserveChecked time.Time        // at the reserve

	mu     sync.Mutex
	queue  []*request // not yet taken by the writer
	closed bool
}

var _ session.Store = (*Store)(nil)

// request is one call that waits for the writer.
type request struct {
	drafts        []session.Draft
	preimages     [][]storedPreimage // of each draft
	bytes         int                // of the bodies, and of the images as they are stored
	deleteSession string             // the session to delete the bodies of, when there are no drafts

	// Written by the writer before it closes done.
	events []session.Event
	err    error
	done   chan struct{}
}

// Append seals the drafts in order, all or none, and returns when they are
// durable. It refuses drafts without a session or type, of a type that is never
// stored, with a body that is not JSON or is larger than 64 MiB, or with images that
// are larger than [session.MaxPreimageBytes] and [session.MaxPreimagesBytes] say. When
// ctx ends while the drafts wait for their turn, they are not written; when
// they are being written, Append waits for the outcome and returns that. The
// events share the drafts' bodies.
func (s *Store) Append(ctx context.Context, drafts ...session.Draft) ([]session.Event, error) {
	r := &request{drafts: drafts}
	for i, d := range drafts {
		if err := check(d); err != nil {
			return nil, fmt.Errorf("append event %d of %d: %w", i+1, len(drafts), err)
		}
		images, bytes := compressPreimages(d.Preimages)
		r.preimages = append(r.preimages, images)
		r.bytes += len(d.Body) + bytes
	}
	if err := s.submit(ctx, r); err != nil {
		return nil, fmt.Errorf("append to session store: %w", err)
	}
	return r.events, nil
}

// DeleteBodies removes the bodies, salts and images of a session, also from the free
// space of the file and from the write-ahead log. An unknown session is
// [session.ErrNoSession]. When another process reads for so long that the log
// cannot be emptied, the error says so; deleting again then finishes the work.
func (s *Store) DeleteBodies(ctx context.Context, id string) error {
	if err := s.submit(ctx, &request{deleteSession: id}); err != nil {
		return fmt.Errorf("delete bodies of session %q: %w", id, err)
	}
	return nil
}

// Close writes what is waiting, refuses what comes after and closes the file.
// Closing again does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	s.signal()
	<-s.ended
	if again {
		return nil
	}
	// The writer's connection goes last: SQLite then writes the log back.
	err := s.readers.Close()
	if s.conn != nil {
		err = errors.Join(err, s.conn.Close())
	}
	err = errors.Join(err, s.writers.Close())
	if err != nil {
		return fmt.Errorf("close session store: %w", err)
	}
	return nil
}

// check refuses a draft that could not be read back as it was written.
func check(d session.Draft) error {
	switch d.Type {
	case session.TypeDelta, session.TypeReasoning, session.TypeRestart, session.TypeCallState, session.TypeProgress:
		return fmt.Errorf("type %q is never stored", d.Type)
	case "":
		return errors.New("type is empty")
	}
	if d.Session == "" {
		return errors.New("session is empty")
	}
	if n := max(len(d.Session), len(d.Type), len(d.Call)); n > maxNameBytes {
		return fmt.Errorf("session, type or call has %d bytes, the limit is %d", n, maxNameBytes)
	}
	if len(d.Body) > maxBodyBytes {
		return fmt.Errorf("body has %d bytes, the limit is %d (64 MiB)", len(d.Body), maxBodyBytes)
	}
	if len(d.Body) > 0 && !json.Valid(d.Body) {
		return errors.New("body is not JSON")
	}
	images := 0
	for _, content := range d.Preimages {
		if images += len(content); len(content) > session.MaxPreimageBytes || images > session.MaxPreimagesBytes {
			return fmt.Errorf("images are too large, the limits are %d bytes for each and %d for all", session.MaxPreimageBytes, session.MaxPreimagesBytes)
		}
	}
	return nil
}

// submit hands a request to the writer and waits for the outcome.
func (s *Store) submit(ctx context.Context, r *request) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	r.done = make(chan struct{})
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fs.ErrClosed
	}
	if r.deleteSession == "" && len(r.drafts) == 0 {
		s.mu.Unlock()
		return nil
	}
	s.queue = append(s.queue, r)
	s.mu.Unlock()
	s.signal()

	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
	}
	s.mu.Lock()
	i := slices.Index(s.queue, r)
	if i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
	s.mu.Unlock()
	if i >= 0 {
		return context.Cause(ctx)
	}
	// The writer has it. Its outcome comes soon, and nobody else could tell it.
	<-r.done
	return r.err
}

// signal wakes the writer. One signal stands for any number of changes.
func (s *Store) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// waiting returns the number of requests in the queue.
func (s *Store) waiting() (n int, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue), s.closed
}

// takeGroup removes the requests of one transaction from the queue, at most limit:
// either appends, as many as fit, or one deletion.
func (s *Store) takeGroup(limit int) []*request {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, bytes := 0, 0
	for _, r := range s.queue[:min(limit, len(s.queue))] {
		bytes += r.bytes
		if n > 0 && (r.deleteSession != "" || s.queue[0].deleteSession != "" || bytes > maxGroupBytes) {
			break
		}
		n++
	}
	group := slices.Clone(s.queue[:n])
	s.queue = slices.Delete(s.queue, 0, n)
	return group
}

// runWriter is the writer. It ends when the store is closed and the queue empty.
func (s *Store) runWriter() {
	defer close(s.ended)
	for {
		n, closed := s.waiting()
		switch {
		case n > 0:
			s.transact(n)
		case closed:
			return
		default:
			<-s.wake
		}
	}
}

// transact carries out one transaction for requests in the queue, of which
// there were n when the caller looked.
func (s *Store) transact(n int) {
	// The writer outlives any caller's context.
	ctx := context.Background()
	var group []*request
	err := s.retryWithReserve(func() error {
		err := retryWhileBusy(ctx, s.lockTimeout, func() error {
			if err := s.connect(ctx); err != nil {
				return err
			}
			return s.exec(ctx, "BEGIN IMMEDIATE")
		})
		if err != nil {
			return err
		}
		// Requests are taken only now: those that came while the writer waited share the
		// commit, and those that were given up are gone.
		if group == nil {
			group = s.takeGroup(maxGroup)
		}
		if len(group) == 0 {
			s.rollback()
			return nil
		}
		return s.writeGroup(ctx, group)
	})
	if err != nil {
		s.rollback()
		s.dropBrokenConn(err)
		if group == nil { // only those that waited from the start fail: the others get a group of their own
			group = s.takeGroup(n)
		}
		for _, r := range group {
			r.events = nil
		}
		finish(group, err)
		return
	}
	if len(group) == 0 {
		return
	}
	if id := group[0].deleteSession; id != "" && group[0].err == nil {
		group[0].err = s.emptyLog(ctx)
	}
	finish(group, nil)
	s.fillReserve()
}

// finish tells the callers; err is for those without an error of their own.
func finish(group []*request, err error) {
	for _, r := range group {
		if r.err == nil {
			r.err = err
		}
		close(r.done)
	}
}

// heads are the ends of the chains inside a transaction.
type heads struct {
	seq     uint64
	hash    [32]byte
	session map[string][32]byte // of the sessions that were looked up
}

// writeGroup carries out the requests inside the open transaction and commits it.
// An error is one for all of them; what is wrong with a single request is in
// that request.
func (s *Store) writeGroup(ctx context.Context, group []*request) error {
	var version int
	if err := s.pragma(ctx, "user_version", &version); err != nil {
		return err
	}
	if version > schemaVersion { // since we opened it
		return session.ErrNewer
	}
	seq, hash, err := s.readHead(ctx, "")
	if err != nil {
		return fmt.Errorf("read the end of the chain: %w", err)
	}
	head := heads{seq, hash, map[string][32]byte{}}
	for _, r := range group {
		r.events, r.err = nil, nil // it may be tried again
		if err := s.exec(ctx, "SAVEPOINT request"); err != nil {
			return err
		}
		var next heads
		if r.deleteSession != "" {
			next, r.err = head, s.deleteSessionBodies(ctx, r.deleteSession)
		} else {
			next, r.events, r.err = s.appendEvents(ctx, head, r)
		}
		if isFull(r.err) && s.hasReserve() {
			return r.err // all of it is tried again
		}
		if r.err != nil {
			// Fails when SQLite has given up the whole transaction.
			if s.exec(ctx, "ROLLBACK TO request") != nil {
				return r.err
			}
		} else {
			head = next
		}
		if err := s.exec(ctx, "RELEASE request"); err != nil {
			return err
		}
	}
	if err := s.makeRoom(ctx); err != nil {
		return fmt.Errorf("make room for images: %w", err)
	}
	return retryWhileBusy(ctx, s.lockTimeout, func() error { return s.exec(ctx, "COMMIT") })
}

// readHead reads the last event of a chain: that of the store, or where a condition
// says so that of a session. There may be none.
func (s *Store) readHead(ctx context.Context, where string, args ...any) (seq uint64, hash [32]byte, err error) {
	var b []byte
	err = s.conn.QueryRowContext(ctx, "SELECT seq, hash FROM events "+where+" ORDER BY seq DESC LIMIT 1", args...).Scan(&seq, &b)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, hash, nil
	}
	if err == nil {
		hash, err = digest(b)
	}
	return seq, hash, err
}

// appendEvents writes the events of one request behind head and returns the new
// one. The old one stays as it was, for when the request is rolled back.
func (s *Store) appendEvents(ctx context.Context, head heads, r *request) (heads, []session.Event, error) {
	next := heads{head.seq, head.hash, maps.Clone(head.session)}
	events := make([]session.Event, 0, len(r.drafts))
	for i, d := range r.drafts {
		before, known := next.session[d.Session]
		if !known {
			var err error
			if _, before, err = s.readHead(ctx, "WHERE session = ?", d.Session); err != nil {
				return head, nil, fmt.Errorf("read the end of session %q: %w", d.Session, err)
			}
		}
		// Without the reading of the monotonic clock, which is not stored.
		e := session.Seal(d, next.seq+1, s.now().Round(0), next.hash, before)
		err := s.insert(ctx, e)
		if err == nil {
			err = s.insertPreimages(ctx, e, r.preimages[i])
		}
		if err != nil {
			return head, nil, err
		}
		events = append(events, e)
		next.seq, next.hash = e.Seq, e.Hash
		next.session[d.Session] = e.Hash
	}
	return next, events, nil
}

func (s *Store) insert(ctx context.Context, e session.Event) error {
	_, err := s.conn.ExecContext(ctx, `INSERT INTO events
		(seq, session, time, type, turn, step, call, digest, prev, session_prev, hash)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		int64(e.Seq), e.Session, e.Time.UnixNano(), string(e.Type), e.Turn, e.Step, e.Call,
		e.Digest[:], e.Prev[:], e.SessionPrev[:], e.Hash[:])
	if err != nil {
		return err
	}
	_, err = s.conn.ExecContext(ctx, "INSERT INTO bodies (seq, salt, body) VALUES (?, ?, ?)",
		int64(e.Seq), e.Salt, []byte(e.Body))
	return err
}

// deleteSessionBodies deletes the bodies and images of a session inside the open transaction.
func (s *Store) deleteSessionBodies(ctx context.Context, id string) error {
	var known bool
	err := s.conn.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM events WHERE session = ?)", id).Scan(&known)
	if err != nil {
		return err
	}
	if !known {
		return session.ErrNoSession
	}
	_, err = s.conn.ExecContext(ctx, "DELETE FROM bodies WHERE seq IN (SELECT seq FROM events WHERE session = ?)", id)
	if err == nil {
		_, err = s.conn.ExecContext(ctx, "DELETE FROM images WHERE session = ?", id)
	}
	return err
}

// errReading is the lock that a checkpoint reports as a result, not as an error.
var errReading = errors.New("another process is reading it")

// emptyLog writes the log back and cuts it off: pages in it still hold what
// has been deleted from the database.
func (s *Store) emptyLog(ctx context.Context) error {
	err := retryWhileBusy(ctx, s.lockTimeout, func() error {
		var busy, pages, moved int
		err := s.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved)
		if err == nil && busy != 0 {
			return errReading
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("the bodies are deleted, but copies stay in the write-ahead log; delete again later: %w", err)
	}
	return nil
}

// connect makes the writer's connection if there is none.
func (s *Store) connect(ctx context.Context) (err error) {
	if s.conn == nil {
		s.conn, err = s.writers.Conn(ctx)
	}
	return err
}

// disconnect closes the writer's connection and leaves none.
func (s *Store) disconnect() {
	if s.conn != nil {
		// Makes the pool throw the connection away instead of keeping it.
		_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
		s.conn = nil
	}
}

// exec carries out statements without results on the writer's connection.
func (s *Store) exec(ctx context.Context, statements string) error {
	_, err := s.conn.ExecContext(ctx, statements)
	return err
}

// rollback ends the transaction if there is one. When that does not succeed,
// the connection is given up, which ends it too.
func (s *Store) rollback() {
	if s.conn == nil {
		return
	}
	open := true
	if err := s.conn.Raw(func(c any) error { open = inTransaction(c); return nil }); err != nil {
		open = true // not known: end it by all means
	}
	if open && s.exec(context.Background(), "ROLLBACK") != nil {
		s.disconnect()
	}
}

// dropBrokenConn gives the connection up unless it can be used after an error. A lock
// or a full disk is not its fault; after anything else a new connection reads
// everything anew.
func (s *Store) dropBrokenConn(err error) {
	switch code(err) {
	case codeBusy, codeLocked, codeProtocol, codeFull, codeConstraint:
	default:
		s.disconnect()
	}
}
