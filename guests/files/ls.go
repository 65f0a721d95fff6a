package main

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/sdk/go/filename"
	"github.com/stockade-dev/stockade/sdk/go/search"
)

// maxLsEntries is the greatest value of max_entries.
const maxLsEntries = 1000

type lsArgs struct {
	Path       string `json:"path,omitempty" desc:"The directory." default:"."`
	ShowHidden bool   `json:"show_hidden,omitempty" desc:"Include what starts with a dot."`
	SortBy     string `json:"sort_by,omitempty" desc:"What to sort by." enum:"name,size,modified" default:"name"`
	Reverse    bool   `json:"reverse,omitempty" desc:"Turn the order round."`
	MaxEntries int    `json:"max_entries,omitempty" desc:"How many entries to show." min:"1" max:"1000" default:"500"`
}

type lsResult struct {
	Output    string `json:"output"`
	Count     int    `json:"count"` // number of shown entries
	Truncated bool   `json:"truncated,omitempty"`
	// The totals are of the whole directory; hidden entries count only with show_hidden.
	Files      int   `json:"files"` // with pipes, devices and the like
	Dirs       int   `json:"dirs"`
	Links      int   `json:"links"`
	TotalBytes int64 `json:"total_bytes"`
}

type lsEntry struct {
	kind  string // FILE, DIR, LINK or OTHER
	name  string
	size  int64
	mtime time.Time
}

func ls(_ context.Context, in lsArgs) (lsResult, error) {
	l, err := locate(in.Path)
	if err != nil {
		return lsResult{}, err
	}
	if err := l.checkDir("list"); err != nil {
		return lsResult{}, err
	}
	dirEntries, err := readDir(l.abs)
	if err != nil {
		return lsResult{}, l.toolError("list", err)
	}
	var out lsResult
	var entries []lsEntry
	hidden := 0
	infos := lookUp(l, dirEntries)
	for i, d := range dirEntries {
		if !in.ShowHidden && strings.HasPrefix(d.Name, ".") {
			hidden++
			continue
		}
		entry := describe(l, d, infos[i])
		entries = append(entries, entry)
		switch entry.kind {
		case "DIR":
			out.Dirs++
		case "LINK":
			out.Links++
		default:
			out.Files++
			out.TotalBytes += entry.size
		}
	}
	sortEntries(entries, in.SortBy, in.Reverse)
	limit := min(max(in.MaxEntries, 1), maxLsEntries)
	out.Truncated = len(entries) > limit
	out.Count = min(len(entries), limit)
	out.Output = table(l, entries[:out.Count]) + totals(out, len(entries), hidden)
	return out, nil
}

// lookUp returns the sizes and times of the entries of the directory l, in their order; nil
// for an entry that the host does not report, and for all from a request on that fails. One
// request is for at most 1000 entries.
func lookUp(l location, entries search.Listing) []*search.Info {
	const atOnce = 1000
	out := make([]*search.Info, len(entries))
	for from := 0; from < len(entries); from += atOnce {
		var names []string
		for _, d := range entries[from:min(from+atOnce, len(entries))] {
			names = append(names, l.childPath(d.Name))
		}
		infos, err := search.Stat(names...)
		if err != nil {
			break
		}
		copy(out[from:], infos)
	}
	return out
}

// describe returns an entry of the list. info is the host's report and may be nil. describe
// never fails: an entry that is gone, or that may not be read, is listed without its size and
// time.
func describe(dir location, d search.Entry, info *search.Info) lsEntry {
	entry := lsEntry{kind: "FILE", name: d.Name}
	switch {
	case d.Type.IsDir():
		entry.kind = "DIR"
	case d.Type&fs.ModeSymlink != 0:
		entry.kind = "LINK"
	case !d.Type.IsRegular(), info != nil && info.Type == fs.ModeIrregular: // package os takes some of these for regular
		entry.kind = "OTHER"
	}
	if info != nil {
		entry.mtime = time.Unix(0, info.Modified)
		if entry.kind == "FILE" {
			entry.size = info.Size
		}
	} else if info, err := os.Lstat(dir.childPath(d.Name)); err == nil {
		entry.mtime = info.ModTime()
		if entry.kind == "FILE" {
			entry.size = info.Size()
		}
	}
	return entry
}

// sortEntries sorts entries, which come in the order of their names, by "size" or "modified", the
// smallest or oldest first: equal ones keep the order of names, and so do all for another value.
// Then, if reverse is set, it turns the whole order round.
func sortEntries(entries []lsEntry, by string, reverse bool) {
	slices.SortStableFunc(entries, func(a, b lsEntry) int {
		order := 0
		switch by {
		case "size":
			order = cmp.Compare(a.size, b.size)
		case "modified":
			order = a.mtime.Compare(b.mtime)
		}
		return order
	})
	if reverse {
		slices.Reverse(entries)
	}
}

func table(dir location, entries []lsEntry) string {
	var out strings.Builder
	for _, e := range entries {
		size, mtime := "-", strings.Repeat("-", len("2006-01-02 15:04"))
		if e.kind == "FILE" {
			size = humanSize(e.size)
		}
		name := filename.Show(e.name)
		switch e.kind {
		case "DIR":
			name += "/"
		case "LINK":
			if target, err := os.Readlink(dir.childPath(e.name)); err == nil {
				name += " -> " + filename.Show(target)
			}
		}
		if !e.mtime.IsZero() {
			mtime = e.mtime.UTC().Format("2006-01-02 15:04")
		}
		fmt.Fprintf(&out, "%-5s %10s  %s  %s\n", e.kind, size, mtime, name)
	}
	return out.String()
}

func totals(r lsResult, entries, hidden int) string {
	text := fmt.Sprintf("total: %s, %s", count(r.Files, "file", "files"), count(r.Dirs, "directory", "directories"))
	if r.Links > 0 {
		text += ", " + count(r.Links, "link", "links")
	}
	text += ", " + humanSize(r.TotalBytes)
	if r.Truncated {
		text += fmt.Sprintf(" (%d of %d entries shown; raise max_entries or change sort_by)", r.Count, entries)
	}
	if hidden > 0 {
		text += fmt.Sprintf(" (%d hidden not shown)", hidden)
	}
	return text
}
