package repo

import (
	"bytes"
	"strings"

	"github.com/stockade-dev/stockade/host/git/format"
)

// Modes of entries in trees and in the index.
const (
	ModeTree    = 0o040000
	ModeFile    = 0o100644
	ModeExec    = 0o100755
	ModeLink    = 0o120000
	ModeGitlink = 0o160000
	modeType    = 0o170000
)

// Type returns a mode without its permissions.
func Type(mode uint32) uint32 { return mode & modeType }

// Entry is an entry of a tree.
type Entry struct {
	Name string
	Mode uint32
	ID   ID
}

// Tree reads a tree. The zero ID is an empty tree.
func (r *Repo) Tree(id ID) ([]Entry, error) {
	if id.IsZero() {
		return nil, nil
	}
	data, err := r.ReadAs(id, KindTree)
	if err != nil {
		return nil, err
	}
	r.Spend(len(data) / treeBytesPerUnit)
	const perEntry = 40
	out := make([]Entry, 0, len(data)/perEntry+1)
	for len(data) > 0 {
		name, mode, hash, rest, ok := format.TreeEntry(data, len(ID{}))
		if !ok || bytes.IndexByte(name, '/') >= 0 || !normalizeMode(&mode) {
			return nil, Corrupt("the tree %s has an entry that is not one", id)
		}
		out = append(out, Entry{string(name), mode, ID(hash)})
		data = rest
	}
	return out, nil
}

// normalizeMode reduces a mode to one that git writes. It returns false for an unknown type.
func normalizeMode(mode *uint32) bool {
	switch Type(*mode) {
	case ModeTree, ModeLink, ModeGitlink:
		*mode = Type(*mode)
	case Type(ModeFile):
		if *mode&0o100 != 0 {
			*mode = ModeExec
		} else {
			*mode = ModeFile
		}
	default:
		return false
	}
	return true
}

// lookupKey is a name in a tree that Lookup has looked up. Most commits leave the directories of a
// path unchanged, so the result is used again.
type lookupKey struct {
	tree ID
	name string
}

const maxLookups = 1000 // stored results of lookup; one more clears them

// lookup returns the entry with a name in the data of a tree; zero: there is none. It parses only the
// matching entry, because a walk can spend most of its time here.
func (r *Repo) lookup(tree ID, data []byte, part string) (Entry, error) {
	all := len(data)
	defer func() { r.Spend((all - len(data)) / treeBytesPerUnit) }()
	for len(data) > 0 {
		blank := bytes.IndexByte(data[:min(len(data), 8)], ' ')
		if len(data) > 6 && data[5] != ' ' && data[6] == ' ' {
			blank = 6
		}
		if blank < 0 {
			break
		}
		end := blank + 1
		for end < len(data) && data[end] != 0 {
			end++
		}
		if len(data)-end <= len(ID{}) {
			break
		}
		if end-blank-1 == len(part) && string(data[blank+1:end]) == part {
			name, mode, hash, _, ok := format.TreeEntry(data, len(ID{}))
			if !ok || !normalizeMode(&mode) || string(name) != part {
				break
			}
			return Entry{string(name), mode, ID(hash)}, nil
		}
		data = data[end+1+len(ID{}):]
	}
	if len(data) == 0 {
		return Entry{}, nil
	}
	return Entry{}, Corrupt("the tree %s has an entry that is not one", tree)
}

// Lookup returns the entry at a path of a tree; found is false if there is none.
func (r *Repo) Lookup(tree ID, path string) (e Entry, found bool, err error) {
	e = Entry{Mode: ModeTree, ID: tree}
	for part := range strings.SplitSeq(path, "/") {
		if Type(e.Mode) != ModeTree {
			return Entry{}, false, nil
		}
		at := lookupKey{e.ID, part}
		r.Spend(workTree)
		if known, ok := r.lookups[at]; ok {
			if e, found = known, known.Mode != 0; !found {
				return Entry{}, false, nil
			}
			continue
		}
		data, err := r.ReadAs(e.ID, KindTree)
		if err != nil {
			return Entry{}, false, err
		}
		if e, err = r.lookup(e.ID, data, part); err != nil {
			return Entry{}, false, err
		}
		found = e.Mode != 0
		if len(r.lookups) == maxLookups {
			clear(r.lookups)
		}
		r.lookups[at] = e
		if !found {
			return Entry{}, false, nil
		}
	}
	return e, true, nil
}
