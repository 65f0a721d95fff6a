package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
)

// exporting is a store whose events also go to the directories that the
// administrator requires, a file for each session, a line for each event. What
// cannot be exported counts as not recorded, so that no effect follows it.
type exporting struct {
	session.Store
	to []policy.Line

	mu    sync.Mutex
	files map[string]*os.File
}

// newExporting fails where an export is required and cannot be written.
func newExporting(st session.Store, to []policy.Line) (session.Store, error) {
	x := &exporting{Store: st, files: map[string]*os.File{}}
	for _, l := range to {
		if l.Value == "" {
			continue // the log alone
		}
		probe, err := os.CreateTemp(l.Value, ".stockade-*")
		if err != nil {
			return nil, &exitErr{code: exitError, message: fmt.Sprintf("sessions have to be exported (%s), and cannot be: %v", l.From, err),
				hint: "no tool runs without the export; an administrator makes the directory and lets you make files in it"}
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

// Append implements session.Store.
func (x *exporting) Append(ctx context.Context, drafts ...session.Draft) ([]session.Event, error) {
	x.mu.Lock() // over the store too: the lines are in the order of the log
	defer x.mu.Unlock()
	events, err := x.Store.Append(ctx, drafts...)
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		line, err := jsonLine(e)
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

func (x *exporting) write(name string, line []byte) error {
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
func (x *exporting) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.files {
		_ = f.Close() // each line was synced
	}
	x.files = map[string]*os.File{}
	return x.Store.Close()
}
