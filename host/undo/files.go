package undo

import (
	"cmp"
	"iter"
	"slices"

	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// File holds the changes that the calls of a session have made to one file, directory or link,
// taken together. Changes by undoing a turn, or making it again, do not count.
type File struct {
	Path    string `json:"path"`           // path after the newest change
	From    string `json:"from,omitempty"` // path before the first change; empty: it was made, or not moved
	Status  string `json:"how"`            // created, changed, deleted, moved, or "came and went"
	Added   int    `json:"added"`          // number of added lines in the diffs of the log
	Removed int    `json:"removed"`        // number of removed lines in the diffs of the log
	Calls   int    `json:"calls"`          // number of calls with a change of the file
	Undone  string `json:"undone"`         // yes, partly, no: all, some or none of these calls are undone
}

// fileTally is a File while its changes are added up.
type fileTally struct {
	File
	existedBefore, existsAfter bool  // whether it exists before the first change, and after the newest
	moved                      bool  // set if a change has renamed the file
	undoneCalls                int   // number of Calls that are undone
	last                       *call // newest call with a change of the file
}

// Files lists the files that the calls of a session have changed, in the order of their first
// change. unrecorded is the number of calls that may have changed more files than the log has:
// direct changes of commands are not recorded. Changes of interrupted calls count as made,
// which is not certain. events are all events of the session's log; a broken chain is an
// error.
func Files(events iter.Seq2[session.Event, error]) (files []File, unrecorded int, err error) {
	log, err := read(events)
	if err != nil {
		return nil, 0, err
	}
	var all []*fileTally
	byPath := map[string]*fileTally{}
	for _, c := range log.calls {
		if c.outcome == outcomeFailed || c.undo {
			continue
		}
		if c.wroteDirectly || c.bodyDeleted {
			unrecorded++
		}
		for _, changes := range c.changes {
			if changes.More > 0 {
				unrecorded++
			}
			for _, change := range changes.Files {
				all = addChange(all, byPath, c, change, log.undone[c.turn])
			}
		}
	}
	files = make([]File, len(all))
	for i, f := range all {
		switch {
		case !f.existedBefore && !f.existsAfter:
			f.Status = "came and went"
		case !f.existsAfter:
			f.Status = "deleted"
		case !f.existedBefore:
			f.Status = "created"
		case f.moved:
			f.Status = "moved"
		default:
			f.Status = "changed"
		}
		if !f.existedBefore || !f.moved {
			f.From = ""
		}
		switch f.undoneCalls {
		case 0:
			f.Undone = "no"
		case f.Calls:
			f.Undone = "yes"
		default:
			f.Undone = "partly"
		}
		files[i] = f.File
	}
	return files, unrecorded, nil
}

// addChange adds one change of call c to the tallies, and returns them. byPath holds the tallies by
// their newest path. undone is set if c is undone.
func addChange(all []*fileTally, byPath map[string]*fileTally, c *call, change session.Change, undone bool) []*fileTally {
	key := cmp.Or(change.From, change.Path)
	f := byPath[key]
	if f == nil {
		f = &fileTally{existedBefore: change.Before != nil || !slices.Contains([]tool.ChangeKind{tool.Created, tool.DirectoryCreated}, change.Kind)}
		f.From = key
		all = append(all, f)
	}
	if change.From != "" {
		delete(byPath, change.From)
		f.moved = true
	}
	if other := byPath[change.Path]; other != nil && other != f {
		other.existsAfter = false // f replaces it
	}
	byPath[change.Path], f.Path = f, change.Path
	f.existsAfter = !slices.Contains([]tool.ChangeKind{tool.Removed, tool.DirectoryRemoved}, change.Kind)
	f.Added, f.Removed = f.Added+change.Added, f.Removed+change.Removed
	if f.last != c { // a call can change a file twice
		f.last = c
		f.Calls++
		if undone {
			f.undoneCalls++
		}
	}
	return all
}
