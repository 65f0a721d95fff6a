package git

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/git/format"
	"github.com/stockade-dev/stockade/host/tool"
)

// maxIndex limits the bytes of an index; a larger one is not read.
const maxIndex = 64 << 20

// index is the content of a git index, without the times and inodes of files, which git
// updates whenever it reads a file.
type index struct {
	entries []indexEntry // sorted by name and stage
	rest    []byte       // the data after the entries: the extensions
	trees   [][]byte     // the bodies of the extensions TREE (cached trees)
	partial bool         // some entries stand for directories, or are in a shared index file
}

type indexEntry struct {
	entry
	name  string
	flags uint32 // flags with the stage, but without the length of the name
}

// hideFlags are the flags with which git ignores changes of a file in the worktree.
const hideFlags = format.AssumeValid | format.SkipWorktree

// readIndex reads an index, at the expense of left. A nil version is an empty index.
func readIndex(v *tool.Version, hashSize int, left *budget) (x index, err error) {
	if v == nil {
		return x, nil
	}
	if !spend(&left.index, v.Size) {
		return x, errTooLong
	}
	data, err := v.Content(maxIndex)
	if err != nil {
		return x, err
	}
	return parseIndex(data, hashSize, left)
}

func parseIndex(data []byte, hashSize int, left *budget) (x index, err error) {
	x.rest, err = format.IndexEntries(data, hashSize, func(f *format.IndexEntry) error {
		e := indexEntry{entry{normalMode(f.Mode), string(f.ID)}, string(f.Name), f.Flags}
		if !spend(&left.index, int64(len(e.name))) { // in version 4, a few bytes can expand to gigabytes of names
			return errTooLong
		}
		if last := len(x.entries) - 1; last >= 0 && order(x.entries[last], e) >= 0 {
			return format.ErrIndex
		}
		x.partial = x.partial || e.mode&format.ModeType == format.ModeTree
		x.entries = append(x.entries, e)
		return nil
	})
	for rest := x.rest; err == nil; {
		name, body, more, ok := format.Extension(rest)
		switch rest = more; {
		case !ok:
			err = format.ErrIndex
		case name == "":
			return x, nil
		case name == "link":
			x.partial = true
		case name == "TREE":
			x.trees = append(x.trees, body)
		}
	}
	return x, err
}

var errTrees = errors.New("its cached tree of a directory differs from its entries")

// verify compares the cached trees of an index with its entries, because git uses these trees
// for its next commit. It returns errTrees if they differ, and errTooLong beyond a limit. If x
// is partial, it does nothing.
func (x index) verify(hashSize int, left *budget) error {
	if x.partial || len(x.trees) == 0 {
		return nil
	}
	type directory struct {
		id      string // of its tree; empty: git cannot write the tree
		entries int
	}
	dirs, entries := map[string]directory{}, x.entries // entries not visited yet
	var make func(name string, depth int) bool
	make = func(name string, depth int) bool {
		if depth > maxDepth || !spend(&left.index, int64(len(name))+100) {
			return false
		}
		var m directory
		var data []byte
		sound := true
		for len(entries) > 0 && strings.HasPrefix(entries[0].name, name) {
			e := entries[0]
			part, _, below := strings.Cut(e.name[len(name):], "/")
			if below {
				if !make(name+part+"/", depth+1) {
					return false
				}
				sub := dirs[name+part+"/"]
				e.entry = entry{format.ModeTree, sub.id}
				sound, m.entries = sound && sub.id != "", m.entries+sub.entries
			} else {
				entries = entries[1:]
				sound, m.entries = sound && e.flags&(format.StageMask|format.IntentToAdd) == 0, m.entries+1
			}
			data = append(fmt.Appendf(data, "%o %s\x00", e.mode, part), e.id...)
		}
		if sound {
			m.id = hashObject(hashSize, format.Tree, data)
		}
		dirs[name] = m
		return true
	}
	within := make("", 0)
	for _, data := range x.trees {
		same := format.CachedTrees(data, hashSize, func(dir string, id []byte, entries int) bool {
			within = within && spend(&left.index, int64(len(dir)))
			return within && (id == nil || dirs[dir] == directory{string(id), entries})
		})
		if within && !same {
			return errTrees
		}
	}
	if !within {
		return errTooLong
	}
	return nil
}

// order compares two entries by name and stage.
func order(a, b indexEntry) int {
	if c := strings.Compare(a.name, b.name); c != 0 {
		return c
	}
	return int(a.flags&format.StageMask) - int(b.flags&format.StageMask)
}

// changes calls each for each entry that differs between two indexes. was or is is nil if
// the entry is in only one of the indexes.
func (x index) changes(now index, each func(was, is *indexEntry)) {
	a, b := x.entries, now.entries
	for len(a)+len(b) > 0 {
		c := len(b) - len(a) // only one of them has entries left
		if len(a) > 0 && len(b) > 0 {
			c = order(a[0], b[0])
		}
		switch {
		case c < 0:
			each(&a[0], nil)
			a = a[1:]
		case c > 0:
			each(nil, &b[0])
			b = b[1:]
		default:
			if a[0] != b[0] {
				each(&a[0], &b[0])
			}
			a, b = a[1:], b[1:]
		}
	}
}

// IndexDigest returns a digest of what an index says of files and commits: without the times and
// inodes of files, and the extensions about what git has seen in the worktree, or where the
// entries are. It returns false for data that is no sound index, or has too many entries.
func IndexDigest(data []byte) (sum [sha256.Size]byte, ok bool) {
	return indexDigest(data, newBudget())
}

// indexDigest is IndexDigest, at the expense of left.
func indexDigest(data []byte, left *budget) (sum [sha256.Size]byte, ok bool) {
	for _, size := range []int{sha1.Size, sha256.Size} {
		end := len(data) - size
		if end < 0 || len(data) > maxIndex {
			continue
		}
		sound := newHash(size)
		sound.Write(data[:end])
		x, err := parseIndex(data, size, left)
		unhashed := bytes.Equal(data[end:], make([]byte, size)) // with index.skipHash
		if err != nil || !unhashed && !bytes.Equal(sound.Sum(nil), data[end:]) {
			continue
		}
		h := sha256.New()
		for _, e := range x.entries {
			fmt.Fprintf(h, "%q %o %x %x\n", e.name, e.mode, e.id, e.flags)
		}
		for rest := x.rest; len(rest) > 0; {
			name, body, more, _ := format.Extension(rest)
			if name == "" {
				break
			}
			if rest = more; !slices.Contains([]string{"UNTR", "FSMN", "EOIE", "IEOT"}, name) {
				fmt.Fprintf(h, "%q %x\n", name, sha256.Sum256(body))
			}
		}
		return [sha256.Size]byte(h.Sum(nil)), true
	}
	return sum, false
}

// Negligible reports whether all changes can be dropped without a loss. A change can if it
// only updates the times and inodes in git's index, or writes COMMIT_EDITMSG or FETCH_HEAD, in
// which git leaves the message of its last commit and the list of its last fetch.
func Negligible(changes []tool.Change) bool {
	left := newBudget()
	return !slices.ContainsFunc(changes, func(c tool.Change) bool { return !negligible(c, left) })
}

func negligible(c tool.Change, left *budget) bool {
	_, rel, inside := strings.Cut(filepath.ToSlash(c.Path), "/.git/")
	switch {
	case !inside || !c.After.IsFile() || c.Kind == tool.Renamed:
		return false
	case rel == "COMMIT_EDITMSG", rel == "FETCH_HEAD":
		return true
	case rel != "index" || c.Kind != tool.Modified || !c.Before.IsFile() || c.Before.Mode != c.After.Mode, !spend(&left.index, c.Before.Size+c.After.Size):
		return false
	}
	before, err := c.Before.Content(maxIndex)
	after, err2 := c.After.Content(maxIndex)
	was, ok := indexDigest(before, left)
	is, ok2 := indexDigest(after, left)
	return err == nil && err2 == nil && ok && ok2 && was == is
}
