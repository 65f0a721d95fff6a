package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/stockade-dev/stockade/host/session"
)

const (
	// pageEvents and pageBytes limit a page, the events that an iterator reads at a time.
	pageEvents = 256
	pageBytes  = 1 << 20

	maxTitleRunes = 80 // characters of a title; the rest of the line is left out
)

// Events yields the events of a session with Seq > after; none for an unknown session. It ends with
// the event that was the latest when the iteration began, or with an error: a [session.ChainError]
// for an event that cannot be read. It does not compare hashes.
func (s *Store) Events(ctx context.Context, id string, after uint64) iter.Seq2[session.Event, error] {
	return reader{q: s.readers}.session(ctx, id, after)
}

// All yields every event of the store, in order of Seq, and ends like Events.
func (s *Store) All(ctx context.Context) iter.Seq2[session.Event, error] {
	return reader{q: s.readers}.all(ctx)
}

// querier is a database, a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// each calls f for each row of a query, until f returns an error, which it returns.
func each(ctx context.Context, q querier, query string, f func(*sql.Rows) error, args ...any) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

type reader struct {
	q       querier
	indexed string // "NOT INDEXED": only the tables are read; empty: indexes may be used
}

func (r reader) session(ctx context.Context, id string, after uint64) iter.Seq2[session.Event, error] {
	return r.pages(ctx, selection{
		last:  "SELECT coalesce(max(seq), 0) FROM events " + r.indexed + " WHERE session = ?",
		where: "e.session = ?",
		args:  []any{id},
	}, after)
}

func (r reader) all(ctx context.Context) iter.Seq2[session.Event, error] {
	return r.pages(ctx, selection{
		// Every body has an event. If damage hides the end of one table, the other shows it.
		last: `SELECT max(coalesce((SELECT max(seq) FROM events ` + r.indexed + `), 0),
			coalesce((SELECT max(seq) FROM bodies ` + r.indexed + `), 0))`,
		where: "true",
	}, 0)
}

type selection struct {
	last  string // query for the Seq of the selected event with the highest Seq; 0: there is none
	where string // condition on the events e
	args  []any  // arguments of last and of where
}

// pages yields the selected events with Seq > after, in the order of Seq. It reads them page
// by page. An error is yielded last, with a zero event.
func (r reader) pages(ctx context.Context, sel selection, after uint64) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		fail := func(err error) { yield(session.Event{}, readError(ctx, "events", err)) }
		var last uint64
		if err := r.q.QueryRowContext(ctx, sel.last, sel.args...).Scan(&last); err != nil {
			fail(err)
			return
		}
		for after < last {
			page, err := r.page(ctx, sel, after, last)
			for _, e := range page {
				if err := context.Cause(ctx); err != nil {
					fail(err)
					return
				}
				if e.Seq <= after {
					// In a damaged tree SQLite may go back, and this loop would never end.
					fail(&session.ChainError{Seq: e.Seq, Problem: fmt.Sprintf("is out of order: it comes after event %d", after)})
					return
				}
				if !yield(e, nil) {
					return
				}
				after = e.Seq
			}
			if err == nil && len(page) == 0 {
				err = &session.ChainError{Seq: after + 1, Problem: fmt.Sprintf("cannot be found, like all events up to event %d", last)}
			}
			if err != nil {
				fail(err)
				return
			}
		}
	}
}

// page reads the next selected events with after < Seq <= last, up to the limits of a page. With
// an error it also returns the events before it.
func (r reader) page(ctx context.Context, sel selection, after, last uint64) ([]session.Event, error) {
	args := append(slices.Clone(sel.args), int64(after), int64(last), pageEvents)
	rows, err := r.q.QueryContext(ctx, `SELECT e.seq, e.session, e.time, e.type, e.turn, e.step, e.call,
			e.digest, e.prev, e.session_prev, e.hash, b.salt, b.body
		FROM events e `+r.indexed+` LEFT JOIN bodies b `+r.indexed+` ON b.seq = e.seq
		WHERE `+sel.where+` AND e.seq > ? AND e.seq <= ? ORDER BY e.seq LIMIT ?`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var page []session.Event
	for bytes := 0; bytes < pageBytes && rows.Next(); {
		e, err := scan(rows)
		if err != nil {
			return page, err
		}
		page = append(page, e)
		bytes += len(e.Body)
	}
	return page, rows.Err()
}

// scan reads one row. If the row has a value that a sound store cannot hold, the error is a
// [session.ChainError], as for a wrong hash.
func scan(rows *sql.Rows) (session.Event, error) {
	var (
		e                             session.Event
		seq, nanoseconds, turn, step  int64
		kind                          string
		digests, prevs, befores, hash []byte
		body                          []byte
	)
	err := rows.Scan(&seq, &e.Session, &nanoseconds, &kind, &turn, &step, &e.Call,
		&digests, &prevs, &befores, &hash, &e.Salt, &body)
	e.Seq, e.Type, e.Turn, e.Step = uint64(seq), session.Type(kind), int(turn), int(step)
	damaged := func(column string, err error) (session.Event, error) {
		return session.Event{}, &session.ChainError{Seq: e.Seq, Problem: fmt.Sprintf("is damaged: %s%v", column, err)}
	}
	if err != nil {
		return damaged("", err)
	}
	for _, column := range []struct {
		name string
		from []byte
		to   *[32]byte
	}{
		{"digest", digests, &e.Digest},
		{"prev", prevs, &e.Prev},
		{"session_prev", befores, &e.SessionPrev},
		{"hash", hash, &e.Hash},
	} {
		if *column.to, err = digest(column.from); err != nil {
			return damaged(column.name+" ", err)
		}
	}
	e.Time = time.Unix(0, nanoseconds).UTC()
	e.Body = body
	return e, nil
}

// digest turns the value of a column into a hash. It checks the length, because SQLite checks the
// length only when it writes.
func digest(b []byte) ([32]byte, error) {
	if len(b) != 32 {
		return [32]byte{}, fmt.Errorf("has %d bytes instead of 32", len(b))
	}
	return [32]byte(b), nil
}

// readError wraps an error of a reader; nil stays nil. If ctx has ended, it wraps the cause
// instead, and after Close fs.ErrClosed.
func readError(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	} else if strings.HasSuffix(err.Error(), "sql: database is closed") { // there is no sentinel for it
		err = fs.ErrClosed
	}
	return fmt.Errorf("read %s of session store: %w", what, err)
}

// Sessions lists the sessions; the session with the latest event comes first. Info.Turns counts
// the turns that were begun, and Info.Calls the calls that were asked for, run or not. Sessions
// reads an index of the whole store: about a third of a second for a million events.
func (s *Store) Sessions(ctx context.Context) (infos []session.Info, err error) {
	err = each(ctx, s.readers, `
		WITH
		found AS (
			SELECT session, min(seq) AS first, max(seq) AS last, count(*) AS events,
				count(CASE type WHEN 'turn.started' THEN 1 END) AS turns,
				count(CASE type WHEN 'tool_call' THEN 1 END) AS calls,
				min(CASE type WHEN 'turn.started' THEN seq END) AS turn
			FROM events INDEXED BY events_type GROUP BY session
		),
		open AS MATERIALIZED (SELECT session, count(*) AS calls FROM (`+openCalls+`) GROUP BY session)
		SELECT f.session, f.events, f.turns, f.calls, a.time, z.time, coalesce(o.calls, 0), s.body, b.body
		FROM found f
		LEFT JOIN open o ON o.session = f.session
		JOIN events a ON a.seq = f.first
		JOIN events z ON z.seq = f.last
		LEFT JOIN bodies s ON s.seq = f.first
		LEFT JOIN bodies b ON b.seq = f.turn
		ORDER BY f.last DESC`, func(rows *sql.Rows) error {
		var (
			info          session.Info
			started, last int64
			first, turn   []byte
			began         session.Started
		)
		err := rows.Scan(&info.ID, &info.Events, &info.Turns, &info.Calls, &started, &last, &info.OpenCalls, &first, &turn)
		if err != nil {
			return err
		}
		info.Started, info.Last = time.Unix(0, started).UTC(), time.Unix(0, last).UTC()
		info.Title = title(turn)
		if json.Unmarshal(first, &began) == nil {
			info.Workspace = began.Workspace
		}
		info.Conversation = began.Conversation || info.Turns > 0 || info.Calls > 1
		infos = append(infos, info)
		return nil
	})
	return infos, readError(ctx, "list", err)
}

// title returns the title of a session, the first line of the prompt in body, that of its first
// turn; empty: it has none. It is shown on terminals, so it must have no characters that move the
// cursor or change the direction of the text.
func title(body []byte) string {
	var turn session.TurnStarted
	if json.Unmarshal(body, &turn) != nil {
		return "" // the body was deleted, or has no prompt
	}
	line, _, _ := strings.Cut(strings.TrimSpace(turn.Prompt), "\n")
	runes := make([]rune, 0, maxTitleRunes)
	for _, r := range line {
		switch {
		case len(runes) == maxTitleRunes:
			return string(runes)
		case r == '\t' || unicode.Is(unicode.Zs, r):
			runes = append(runes, ' ')
		case unicode.IsPrint(r):
			runes = append(runes, r)
		}
	}
	return strings.TrimSpace(string(runes))
}

// openCalls selects the intended calls without a result. Only a later result counts, because
// providers reuse call ids.
const openCalls = `
	SELECT i.seq, i.session, i.turn, i.step, i.call, i.time FROM events i INDEXED BY events_intended
	WHERE i.type = 'call.intended' AND NOT EXISTS (
		SELECT 1 FROM events r INDEXED BY events_type
		WHERE r.session = i.session AND r.type = 'tool_result' AND r.call = i.call AND r.seq > i.seq)`

// OpenCalls lists the intended calls without a result, in the order of their intents.
func (s *Store) OpenCalls(ctx context.Context) (calls []session.OpenCall, err error) {
	before := s.completedUpTo(ctx)
	var last int64 // read first, so that events that come meanwhile do not count as completed
	if err = s.readers.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) FROM events").Scan(&last); err != nil {
		return nil, readError(ctx, "open calls", err)
	}
	now := last
	err = each(ctx, s.readers, `SELECT o.seq, o.session, o.turn, o.step, o.call, o.time, b.body
		FROM (`+openCalls+` AND i.seq > ?) o LEFT JOIN bodies b ON b.seq = o.seq ORDER BY o.seq`, func(rows *sql.Rows) error {
		var (
			call    session.OpenCall
			seq, at int64
			body    []byte
			intent  session.Intent
		)
		if err := rows.Scan(&seq, &call.Session, &call.Turn, &call.Step, &call.Call, &at, &body); err != nil {
			return err
		}
		_ = json.Unmarshal(body, &intent) // a deleted body has no name
		call.Time, call.Name = time.Unix(0, at).UTC(), intent.Tool
		calls, now = append(calls, call), min(now, seq-1)
		return nil
	}, before)
	if err == nil && now >= before+completedStep {
		s.saveCompletedUpTo(ctx, now)
	}
	return calls, readError(ctx, "open calls", err)
}

// Resolve returns the id that begins with prefix; an empty prefix fits none. A complete id is
// returned even if others begin with it. "last" stands for the session with the latest event.
func (s *Store) Resolve(ctx context.Context, prefix string) (string, error) {
	id, err := reader{q: s.readers}.resolve(ctx, prefix)
	switch {
	case errors.Is(err, session.ErrNoSession), errors.Is(err, session.ErrAmbiguous):
		return "", fmt.Errorf("session %q: %w", prefix, err)
	case err != nil:
		return "", readError(ctx, "ids", err)
	}
	return id, nil
}

func (r reader) resolve(ctx context.Context, prefix string) (string, error) {
	one := func(what, where string, args ...any) (string, error) {
		var id sql.NullString
		err := r.q.QueryRowContext(ctx, "SELECT "+what+" FROM events "+r.indexed+" "+where, args...).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		return id.String, err
	}
	switch prefix {
	case "":
		return "", session.ErrNoSession
	case "last":
		id, err := one("session", "ORDER BY seq DESC LIMIT 1")
		if err == nil && id == "" {
			err = session.ErrNoSession
		}
		return id, err
	}
	// Ids with the same beginning are neighbours in the order of ids, and the shortest
	// comes first. So two queries suffice for any number of ids.
	first, err := one("min(session)", "WHERE session >= ?", prefix)
	if err != nil || first == prefix {
		return first, err
	}
	if !strings.HasPrefix(first, prefix) {
		return "", session.ErrNoSession
	}
	second, err := one("min(session)", "WHERE session > ?", first)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(second, prefix) {
		return "", session.ErrAmbiguous
	}
	return first, nil
}
