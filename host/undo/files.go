package undo

import (
	"cmp"
	"iter"
	"slices"

	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// File is what the calls of a session have done to one file, directory or link, all of
// them together; without those that undo or make again.
type File struct {
	Path string `json:"path"` // as it is called in the end
	From string `json:"from,omitempty"`
	// Status is what has become of it: created, changed, deleted, moved, or "came and went".
	Status string `json:"how"`
	// Added and Removed are the lines of the diffs that the log has, added up.
	Added   int `json:"added"`
	Removed int `json:"removed"`
	Calls   int `json:"calls"`
	// Undone says whether what the calls have done is undone: no, partly or yes.
	Undone string `json:"undone"`
}

// fileTally is a file while its changes are added up.
type fileTally struct {
	File
	existedBefore, existsAfter bool // there before the first change, and after the last
	moved                      bool
	undoneCalls                int // of the calls
	last                       *call
}

// Files lists what the calls of a session have changed, in the order in which they came
// to it, and how many calls may have changed files of which the log says nothing: what a
// command changes directly is recorded nowhere. Of a call that was interrupted nobody
// knows whether its changes were made; they count as made. events are those of its log.
func Files(events iter.Seq2[session.Event, error]) (files []File, unrecorded int, err error) {
	p, err := read(events)
	if err != nil {
		return nil, 0, err
	}
	var all []*fileTally
	byPath := map[string]*fileTally{}
	for _, c := range p.calls {
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
				all = addChange(all, byPath, c, change, p.undone[c.turn])
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

// addChange adds one change of a call.
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
		other.existsAfter = false // this one takes its place
	}
	byPath[change.Path], f.Path = f, change.Path
	f.existsAfter = !slices.Contains([]tool.ChangeKind{tool.Removed, tool.DirectoryRemoved}, change.Kind)
	f.Added, f.Removed = f.Added+change.Added, f.Removed+change.Removed
	if f.last != c { // a call can change it twice
		f.last = c
		f.Calls++
		if undone {
			f.undoneCalls++
		}
	}
	return all
}
