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
	maxBodyBytes = 64 << 20 // bytes of a body; a draft with a larger one is refused
	// maxNameBytes limits the session, the type and the call of a draft, each in bytes; a longer
	// one is refused. Call ids come from the network.
	maxNameBytes = 1024
	maxGroup     = 1024 // requests in one transaction; the others wait for the next
	// maxGroupBytes limits the bytes of all requests in one transaction, and so its memory and the
	// time that other requests wait. A single request may have more.
	maxGroupBytes = maxBodyBytes
)

// Store is a [session.Store] in a SQLite file. It is safe for concurrent use. Several processes
// may have the same file open. After Close every method that returns an error returns one, except
// Close. It wraps [fs.ErrClosed], unless the arguments are invalid or the context has ended.
type Store struct {
	// Fixed at creation.
	path        string
	now         func() time.Time // returns the time, which may go backwards
	lockTimeout time.Duration    // limit of the wait for locks of other processes
	readers     *sql.DB

	preimagesLimit int64         // limit of the bytes of all preimages
	writers        *sql.DB       // provides conn
	wake           chan struct{} // has a signal if the queue has changed or the store was closed
	ended          chan struct{} // closed when the writer ends

	// Used only by the writer.
	conn           *sql.Conn        // nil after a failure; the next request connects again
	preimageBytes  int64            // bytes of preimages that were added since makeRoom last counted all
	reserve        int64            // bytes that the reserve shall have; 0: there is none
	onReserveUsed  func(left int64) // see KeepReserve; nil: no reserve was asked for
	reserveChecked time.Time        // time of the last check of the reserve

	mu     sync.Mutex // guards the fields below
	queue  []*request // requests that the writer has not taken yet
	closed bool
}

var _ session.Store = (*Store)(nil)

// request is a call of Append or DeleteBodies that waits for the writer.
type request struct {
	drafts        []session.Draft
	preimages     [][]storedPreimage // preimages of each draft
	bytes         int                // bytes of all bodies, and of the preimages after compression
	deleteSession string             // session whose bodies are deleted; empty: the request has drafts

	// Set by the writer before it closes done.
	events []session.Event
	err    error
	done   chan struct{}
}

// Append seals all drafts in order, or none. When it returns them, their events are durable. It
// refuses drafts without a session or a type, with a type that is never stored, with a session,
// type or call of more than 1024 bytes, with a body that is not JSON (an empty one is accepted) or
// exceeds 64 MiB, and with preimages that exceed [session.MaxPreimageBytes] or
// [session.MaxPreimagesBytes]. If ctx ends while the drafts wait, they are not written. If they are
// already being written, Append waits and returns the result. The events share the drafts' bodies.
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

// DeleteBodies removes the bodies, salts and preimages of a session, also from the free space of
// the file and from the write-ahead log. For an unknown session and an empty id it returns
// [session.ErrNoSession]. If another process reads for so long that the log cannot be emptied, it
// returns an error; another DeleteBodies then finishes the work.
func (s *Store) DeleteBodies(ctx context.Context, id string) error {
	if id == "" {
		return session.ErrNoSession
	}
	if err := s.submit(ctx, &request{deleteSession: id}); err != nil {
		return fmt.Errorf("delete bodies of session %q: %w", id, err)
	}
	return nil
}

// Close writes the waiting requests, refuses later ones and closes the file. Its error is that of
// closing; an error of writing goes to the caller that waits for the request. A second Close waits
// for the first to finish the writing, and returns nil.
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
	// The writer's connection is closed last: SQLite then writes the log back.
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

// check returns an error for a draft that Append refuses, because it could not be read back
// unchanged or is too large.
func check(d session.Draft) error {
	switch d.Type {
	case session.TypeDelta, session.TypeReasoning, session.TypeWriting, session.TypeRestart, session.TypeCallState, session.TypeProgress, session.TypeQuestion:
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
			return fmt.Errorf("preimages are too large, the limits are %d bytes for each and %d for all", session.MaxPreimageBytes, session.MaxPreimagesBytes)
		}
	}
	return nil
}

// submit adds a request to the queue and waits for its result. If ctx ends first, it takes the
// request back, unless the writer has it.
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
	// The writer has taken the request, and only it knows the result. It comes soon.
	<-r.done
	return r.err
}

// signal wakes the writer. One signal covers any number of changes.
func (s *Store) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// waiting returns the number of requests in the queue, and whether the store is closed.
func (s *Store) waiting() (n int, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue), s.closed
}

// takeGroup takes the requests of the next transaction from the queue: one deletion, or the
// appends before the next deletion, as many as maxGroupBytes allows, at most limit.
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

// runWriter executes requests. It ends when the store is closed and the queue is empty.
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

// transact runs one transaction for requests of the queue. n is the number of requests that the
// caller has seen in the queue.
func (s *Store) transact(n int) {
	// The writer does not depend on the context of any caller.
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
		// Requests are taken only now. Those that came while the writer waited share the
		// commit, and cancelled ones are gone.
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
		if group == nil { // only requests that waited from the start fail; later ones get another group
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

// finish ends requests with their results. err is the error of requests that have no error yet.
func finish(group []*request, err error) {
	for _, r := range group {
		if r.err == nil {
			r.err = err
		}
		close(r.done)
	}
}

// heads holds the ends of the chains within a transaction.
type heads struct {
	seq     uint64              // Seq of the last event of the store
	hash    [32]byte            // hash of the last event of the store
	session map[string][32]byte // hash of the last event, for each session that was looked up or written
}

// writeGroup executes the requests in the open transaction and commits it. A returned error
// belongs to the whole group; the error of a single request stays in that request's err.
func (s *Store) writeGroup(ctx context.Context, group []*request) error {
	var version int
	if err := s.pragma(ctx, "user_version", &version); err != nil {
		return err
	}
	if version > schemaVersion { // changed by another process since it was opened
		return session.ErrNewer
	}
	seq, hash, err := s.readHead(ctx, "")
	if err != nil {
		return fmt.Errorf("read the end of the chain: %w", err)
	}
	head := heads{seq, hash, map[string][32]byte{}}
	for _, r := range group {
		r.events, r.err = nil, nil // the request may be tried again
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
			return r.err // the whole group is tried again
		}
		if r.err != nil {
			// This fails if SQLite has rolled back the whole transaction.
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
		return fmt.Errorf("make room for preimages: %w", err)
	}
	return retryWhileBusy(ctx, s.lockTimeout, func() error { return s.exec(ctx, "COMMIT") })
}

// readHead returns Seq and hash of the last event of the store, or with a condition of the last
// event that satisfies it. seq is 0 if there is none.
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

// appendEvents writes the events of one request after head, and returns the new heads. head itself
// stays unchanged, because the request may be rolled back.
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
		// Round removes the reading of the monotonic clock, which is not stored.
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

// deleteSessionBodies deletes the bodies and preimages of a session in the open transaction.
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

// errReading stands for a lock that a checkpoint reports as a result instead of an error.
var errReading = errors.New("another process is reading it")

// emptyLog writes the write-ahead log back and empties its file, which still has deleted data.
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

// connect opens the writer's connection if there is none.
func (s *Store) connect(ctx context.Context) (err error) {
	if s.conn == nil {
		s.conn, err = s.writers.Conn(ctx)
	}
	return err
}

func (s *Store) disconnect() {
	if s.conn != nil {
		// This makes the pool discard the connection instead of keeping it.
		_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
		s.conn = nil
	}
}

// exec runs statements without results on the writer's connection.
func (s *Store) exec(ctx context.Context, statements string) error {
	_, err := s.conn.ExecContext(ctx, statements)
	return err
}

// rollback ends the transaction, if any. If that fails, it closes the connection, which ends the
// transaction, too.
func (s *Store) rollback() {
	if s.conn == nil {
		return
	}
	open := true
	if err := s.conn.Raw(func(c any) error { open = inTransaction(c); return nil }); err != nil {
		open = true // not known: try to end it
	}
	if open && s.exec(context.Background(), "ROLLBACK") != nil {
		s.disconnect()
	}
}

// dropBrokenConn closes the writer's connection unless it can be used after the error. After a
// lock, a full disk or a violated constraint it can be; after any other error a new connection
// reads everything again.
func (s *Store) dropBrokenConn(err error) {
	switch code(err) {
	case codeBusy, codeLocked, codeProtocol, codeFull, codeConstraint:
	default:
		s.disconnect()
	}
}
