package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/registry/source"
	"github.com/stockade-dev/stockade/host/registry/store"
)

// SystemFile is a module in the administrator's folder.
type SystemFile struct {
	Path  string
	Stamp string // changes when the file does
}

// maxSystemFiles bounds the administrator's folder.
const maxSystemFiles = 1000

// SystemFiles lists the modules in a folder. One that is not there holds none.
func SystemFiles(dir string) ([]SystemFile, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []SystemFile
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".wasm") {
			continue
		}
		st, err := e.Info()
		if err != nil {
			return nil, err
		}
		if len(out) == maxSystemFiles {
			return nil, fmt.Errorf("%s holds more than %d modules", dir, maxSystemFiles)
		}
		out = append(out, SystemFile{filepath.Join(dir, e.Name()), fmt.Sprintf("%d %d", st.Size(), st.ModTime().UnixNano())})
	}
	return out, nil
}

// elsewhere reports whether a module has the name of one that is in another file,
// which was there first.
func elsewhere(review *Review, files []SystemFile) bool {
	was := review.Was
	return was != nil && was.Source != review.Record.Source && slices.ContainsFunc(files, func(f SystemFile) bool { return f.of(*was) })
}

func (f SystemFile) of(r store.Record) bool { return r.System && r.Source == f.Path }

// TakeSystem takes over what is new or has changed in the administrator's folder,
// and drops what has gone. Its modules are approved by being there, and may use
// nothing before a person allows it. Read reads a file if nobody but the
// administrator could have written it. The notes say what is wrong with single ones,
// which are left out.
func (r *Reviewer) TakeSystem(ctx context.Context, files []SystemFile, read func(path string) ([]byte, error)) (notes []string, err error) {
	records, err := r.Store.Records()
	if err != nil {
		return nil, nil // it is said where the modules are listed
	}
	isNew := func(f SystemFile) bool {
		return !slices.ContainsFunc(records, func(r store.Record) bool { return f.of(r) && r.Stamp == f.Stamp })
	}
	gone := func(r store.Record) bool {
		return r.System && !slices.ContainsFunc(files, func(f SystemFile) bool { return f.of(r) })
	}
	if !slices.ContainsFunc(files, isNew) && !slices.ContainsFunc(records, gone) {
		return nil, nil
	}
	now := r.Now().UTC() // of all of them: which is looked at first is chance
	reviews, errs := make([]*Review, len(files)), make([]error, len(files))
	var wg sync.WaitGroup
	for i, f := range files {
		if !isNew(f) {
			continue
		}
		wg.Go(func() {
			code, err := read(f.Path)
			if err != nil {
				errs[i] = err
				return
			}
			reviews[i], errs[i] = r.Review(ctx, Request{Candidate: &source.Candidate{Code: code, Digest: sum(code), Source: f.Path}, System: true, Stamp: f.Stamp})
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var keep []*Review
	for i, review := range reviews {
		switch {
		case errs[i] != nil:
			notes = append(notes, fmt.Sprintf("%s is not offered: %v", files[i].Path, errs[i]))
		case review != nil && (slices.ContainsFunc(keep, func(o *Review) bool { return o.Record.Name == review.Record.Name }) || elsewhere(review, files)):
			notes = append(notes, fmt.Sprintf("%s is not offered: another module is called %s", files[i].Path, review.Record.Name))
		case review != nil:
			if review.Was == nil {
				review.Record.Since = now
			}
			keep = append(keep, review)
		}
	}
	err = r.Store.Change(nil, func(records []store.Record) ([]store.Record, error) { return slices.DeleteFunc(records, gone), nil })
	if err == nil && len(keep) > 0 {
		err = Keep(r.Store, keep...)
	}
	return notes, err
}
