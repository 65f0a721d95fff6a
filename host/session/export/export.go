// Package export also writes the events of a store into other directories, as an administrator can
// require. Each session has a file there, and each event a line (see [session.Event.Line]). If an
// event cannot be exported, recording it fails, so that no call has an effect after it.
package export

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
)

// exportingStore exports the events of a store.
type exportingStore struct {
	session.Store
	to []policy.Setting // settings, each with a directory

	mu    sync.Mutex          // guards files
	files map[string]*os.File // open files, by path
}

// Error is returned if sessions must be exported to the directory in To and cannot be.
type Error struct {
	To  policy.Setting
	Err error
}

func (e *Error) Error() string {
	return fmt.Sprintf("sessions have to be exported (%s), and cannot be: %v", e.To.From, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// New returns a store that also exports the events of st. A setting with an empty directory
// requires only that sessions are recorded. If no setting has a directory, New returns st. The
// error is an *Error if a directory cannot be written. Closing the returned store closes st.
func New(st session.Store, to []policy.Setting) (session.Store, error) {
	x := &exportingStore{Store: st, files: map[string]*os.File{}}
	for _, l := range to {
		if l.Value == "" {
			continue
		}
		probe, err := os.CreateTemp(l.Value, ".stockade-*")
		if err != nil {
			return nil, &Error{l, err}
		}
		_ = probe.Close()
		_ = os.Remove(probe.Name())
		x.to = append(x.to, l)
	}
	if x.to == nil {
		return st, nil
	}
	return x, nil
}

// Append implements session.Store. After an error of exporting, the events are in the store.
func (x *exportingStore) Append(ctx context.Context, drafts ...session.Draft) ([]session.Event, error) {
	x.mu.Lock() // also during the store's Append, so that the lines are in the order of the log
	defer x.mu.Unlock()
	events, err := x.Store.Append(ctx, drafts...)
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		line, err := e.Line()
		if err != nil {
			return nil, fmt.Errorf("export: %w", err)
		}
		for _, l := range x.to {
			if err := x.write(filepath.Join(l.Value, e.Session+".jsonl"), line); err != nil {
				return nil, fmt.Errorf("export, which is required (%s): %w", l.From, err)
			}
		}
	}
	return events, nil
}

func (x *exportingStore) write(name string, line []byte) error {
	f, ok := x.files[name]
	if !ok {
		var err error
		if f, err = os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|noFollow, 0o600); err != nil {
			return err
		}
		x.files[name] = f
	}
	if _, err := f.Write(line); err != nil {
		return err
	}
	return f.Sync()
}

// Close implements session.Store.
func (x *exportingStore) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.files {
		_ = f.Close() // each line was synced
	}
	clear(x.files)
	return x.Store.Close()
}
