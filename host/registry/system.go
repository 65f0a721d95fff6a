package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/registry/source"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/registry/trust"
	"github.com/stockade-dev/stockade/host/tool"
)

// SystemFile is a module in the administrator's folder, which gives every user tools.
type SystemFile struct {
	Path  string
	Stamp string // the size and the modification time of the file: it changes when the file does
}

// maxSystemFiles limits the modules in the administrator's folder; more are an error.
const maxSystemFiles = 1000

// SystemFiles lists the modules in a folder. If the folder does not exist, the list is empty.
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

// isNameTaken reports whether another file of the administrator's folder has already provided
// a module with the reviewed module's name.
func isNameTaken(review *Review, files []SystemFile) bool {
	was := review.Previous
	return was != nil && was.Source != review.Record.Source && slices.ContainsFunc(files, func(f SystemFile) bool { return f.isSourceOf(*was) })
}

func (f SystemFile) isSourceOf(r store.Record) bool { return r.System && r.Source == f.Path }

// SyncSystem stores new and changed modules from the administrator's folder, and drops the
// records of files that are gone. Being in the folder approves a module, but it may use
// nothing before a person allows it. read returns the content of a file if only the
// administrator could have written it; see RATIONALE, "Why does the administrator's folder
// need no yes?" The notes explain why modules were left out. A refused module is reviewed
// again only when a file or a name has changed, or with RetryRefused: to ask a module for its
// tools can take a second.
func (r *Reviewer) SyncSystem(ctx context.Context, files []SystemFile, read func(path string) ([]byte, error)) (notes []string, err error) {
	records, err := r.Store.Records()
	if err != nil {
		return nil, nil // reported when the modules are listed
	}
	kept := r.Store.Refusals()
	known := kept.Notes
	if r.RetryRefused || kept.State != stateOf(files, records) {
		known = nil
	}
	isNew := func(f SystemFile) bool {
		return known[f.Path] == "" && !slices.ContainsFunc(records, func(r store.Record) bool { return f.isSourceOf(r) && r.Stamp == f.Stamp })
	}
	gone := func(r store.Record) bool {
		return r.System && !slices.ContainsFunc(files, func(f SystemFile) bool { return f.isSourceOf(r) })
	}
	if !slices.ContainsFunc(files, isNew) && !slices.ContainsFunc(records, gone) {
		for _, f := range files {
			if note := known[f.Path]; note != "" {
				notes = append(notes, note)
			}
		}
		return notes, nil
	}
	now := r.Now().UTC() // the same for all, as the order of the reviews is chance
	reviews, errs, unread := make([]*Review, len(files)), make([]error, len(files)), make([]bool, len(files))
	var wg sync.WaitGroup
	for i, f := range files {
		if !isNew(f) {
			continue
		}
		wg.Go(func() {
			code, err := read(f.Path)
			if err != nil {
				errs[i], unread[i] = err, true
				return
			}
			reviews[i], errs[i] = r.Review(ctx, Request{Candidate: &source.Candidate{Code: code, Digest: tool.SHA256(code), Source: f.Path}, System: true, Stamp: f.Stamp})
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var keep []*Review
	refused := store.RefusalCache{Notes: map[string]string{}}
	for i, review := range reviews {
		path := files[i].Path
		note := known[path]
		switch {
		case errs[i] != nil:
			note = fmt.Sprintf("%s is not offered: %v", path, errs[i])
		case review != nil && (slices.ContainsFunc(keep, func(o *Review) bool { return o.Record.Name == review.Record.Name }) || isNameTaken(review, files)):
			note = fmt.Sprintf("%s is not offered: another module is called %s", path, review.Record.Name)
		case review != nil:
			if review.Previous == nil {
				review.Record.FirstAdded = now
			}
			keep = append(keep, review)
		}
		if note == "" {
			continue
		}
		notes = append(notes, note)
		_, denied := errors.AsType[*policy.ModuleError](errs[i])
		if _, ok := errors.AsType[*trust.Error](errs[i]); !ok && !denied && !unread[i] { // these errors can go away without a change of the file
			refused.Notes[path] = note
		}
	}
	if len(keep) > 0 { // before the drop, so that a renamed file replaces its old record
		if err := Save(r.Store, keep...); err != nil {
			return notes, err
		}
	}
	err = r.Store.Change(nil, func(records []store.Record) ([]store.Record, error) { return slices.DeleteFunc(records, gone), nil })
	if err != nil {
		return notes, err
	}
	if records, err = r.Store.Records(); err != nil {
		return notes, err
	}
	if refused.State = stateOf(files, records); !maps.Equal(refused.Notes, kept.Notes) || len(refused.Notes) > 0 && refused.State != kept.State {
		err = r.Store.SaveRefusals(refused)
	}
	return notes, err
}

// stateOf returns a hash of everything that can change a refusal, except the content of the
// refused file: the list of files in the administrator's folder, and the names that are taken.
func stateOf(files []SystemFile, records []store.Record) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", files)
	for _, r := range records {
		if r.Project == "" {
			fmt.Fprintf(h, "%q %q\n", r.Name, r.Source)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
