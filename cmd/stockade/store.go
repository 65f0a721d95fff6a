package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/stockade-dev/stockade/host/agent"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/session/sqlite"
)

// store opens the sessions, and marks the calls that a crash has left open.
func (a *app) store(ctx context.Context) (session.Store, error) {
	if a.sessions != nil {
		return a.sessions, nil
	}
	for _, dir := range []string{a.dirs.Data, a.dirs.locks()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, &exitErr{code: exitError, message: err.Error(),
				hint: "sessions need a place to be kept: set HOME, or XDG_DATA_HOME and XDG_STATE_HOME, to a directory that can be written to"}
		}
	}
	db, err := sqlite.Open(ctx, a.dirs.sessions())
	if err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	st, err := newExporting(db, a.ceiling.AuditExports)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	a.onClose(st.Close)
	a.sessions = st
	return st, a.settle(ctx, st)
}

// settle gives each call that was intended and has no result one that says
// so, unless the process that runs it is still alive.
func (a *app) settle(ctx context.Context, st session.Store) error {
	open, err := st.OpenCalls(ctx)
	if err != nil || len(open) == 0 {
		return err
	}
	dead := map[string]bool{} // sessions whose process is gone
	for _, c := range open {
		if _, ok := dead[c.Session]; !ok {
			unlock, err := a.lock(c.Session)
			if err != nil && !errors.Is(err, errInUse) {
				return err
			}
			if dead[c.Session] = err == nil; dead[c.Session] {
				defer func() { _ = unlock() }()
			}
		}
		if !dead[c.Session] {
			continue
		}
		if err := agent.Interrupt(ctx, st, c); err != nil {
			return err
		}
		a.s.note("a call of %s in session %s was interrupted; its result is recorded as such", c.Name, c.Session)
	}
	return nil
}

var errInUse = errors.New("the session is in use by another process")

// lock keeps other processes out of a session. The lock goes with the process,
// however that ends; unlock also removes its file.
func (a *app) lock(id string) (unlock func() error, err error) {
	if !session.ValidID(id) {
		return nil, fmt.Errorf("session id %q is not one that stockade makes: the log was changed", id)
	}
	name := filepath.Join(a.dirs.locks(), id)
	for {
		l := flock.New(name)
		ok, err := l.TryLock()
		if err != nil {
			return nil, fmt.Errorf("lock session %s: %w", id, err)
		}
		if !ok {
			return nil, fmt.Errorf("session %s: %w", id, errInUse)
		}
		// Another process may have removed the file between our opening and our
		// locking it; then the lock that counts is on a new file.
		held, err := l.Stat()
		there, statErr := os.Stat(name)
		if err == nil && statErr == nil && os.SameFile(held, there) {
			return func() error { return errors.Join(os.Remove(name), l.Unlock()) }, nil
		}
		_ = l.Unlock()
	}
}

// log opens the log of a session, a new one where id is empty, and keeps
// others out of it until the program ends.
func (a *app) log(st session.Store, id string) (*session.Log, error) {
	if id == "" {
		id = session.NewID(time.Now())
	}
	unlock, err := a.lock(id)
	if err != nil {
		return nil, err
	}
	a.onClose(unlock)
	log := session.NewLog(st, id, time.Now)
	log.Redact(a.known)
	return log, nil
}
