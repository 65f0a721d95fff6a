package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/stockade-dev/stockade/host/agent"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/session/export"
	"github.com/stockade-dev/stockade/host/session/sqlite"
)

// store opens the sessions, and marks the calls that a crash has left open.
func (a *app) store(ctx context.Context) (session.Store, error) {
	if a.sessions != nil {
		return a.sessions, nil
	}
	for _, dir := range []string{a.dirs.data, a.dirs.locks()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, &exitErr{code: exitError, message: err.Error(),
				hint: "sessions need a place to be kept: set HOME, or XDG_DATA_HOME and XDG_STATE_HOME, to a directory that can be written to"}
		}
	}
	db, err := sqlite.Open(ctx, a.dirs.sessions(), nil)
	if err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	st, err := export.New(db, a.ceiling.AuditExports)
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
			unlock, err := session.Lock(a.dirs.locks(), c.Session)
			if err != nil && !errors.Is(err, session.ErrInUse) {
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

// log opens the log of a session, a new one where id is empty, and keeps
// others out of it until the program ends.
func (a *app) log(st session.Store, id string) (*session.Log, error) {
	if id == "" {
		id = session.NewID(time.Now())
	}
	unlock, err := session.Lock(a.dirs.locks(), id)
	if err != nil {
		return nil, err
	}
	a.onClose(unlock)
	log := session.NewLog(st, id, time.Now)
	log.Redact(a.known)
	return log, nil
}
