package repo

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/stockade-dev/stockade/host/git/format"
)

// Index is the index, which holds the content of the next commit, see gitformat-index(5).
type Index struct {
	Entries []IndexEntry          // sorted by path, and by stage
	MTime   int64                 // modification time of the index file, in nanoseconds; 0: no file
	trees   map[string]cachedTree // known trees of directories, by path with a final slash; "": the top
}

// IndexEntry is a file in the index. MTime, CTime and Size are those that the file in the
// worktree had when git last updated the entry.
type IndexEntry struct {
	Path  string
	Mode  uint32
	ID    ID
	MTime int64  // nanoseconds since 1970
	CTime int64  // nanoseconds since 1970
	Size  uint32 // low 32 bits of the number of bytes
	Stage uint8  // 1 to 3 in a conflict, otherwise 0
	Flags uint8  // AssumeValid, SkipWorktree and IntentToAdd
}

// Flags of an index entry.
const (
	AssumeValid  = format.AssumeValid >> 12  // the user has promised that the file does not change
	SkipWorktree = format.SkipWorktree >> 24 // the file is not checked out
	IntentToAdd  = format.IntentToAdd >> 24  // only the name was added
)

// cachedTree is the tree of a directory that has not changed since it was written.
type cachedTree struct {
	id      ID
	entries int // number of index entries below the directory
}

const (
	maxIndex        = 32 << 20 // bytes of an index; a larger one is an error
	maxIndexEntries = 300_000  // entries of an index; one with more is an error
)

// Index reads the index of the worktree. It is empty if nothing was ever added.
func (r *Repo) Index() (*Index, error) {
	name := filepath.Join(r.GitDir, "index")
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return &Index{}, nil
	}
	if err != nil {
		return nil, Corrupt("read the index: %v", err)
	}
	data, err := readSmall(name, maxIndex)
	if errors.Is(err, errTooLong) {
		return nil, TooLarge("the index has more than %d MiB; git status, run by bash, reads it", maxIndex>>20)
	} else if err != nil {
		return nil, Corrupt("read the index: %v", err)
	}
	x, err := parseIndex(data)
	if err != nil {
		return nil, err
	}
	x.MTime = info.ModTime().UnixNano()
	return x, r.Check()
}

func parseIndex(data []byte) (*Index, error) {
	version, count, ok := format.IndexHeader(data, len(ID{}))
	switch {
	case !ok:
		return nil, corrupt("%s does not begin as an index of git does: something else has written it, or cut it off; git status, run by bash, tells more", "the file index in the git directory")
	case version < 2 || version > 4:
		return nil, Unsupported("the index has the version %d, and not 2 to 4; git status, run by bash, reads it", version)
	case count > maxIndexEntries:
		return nil, TooLarge("the index has %d files, more than %d; git status, run by bash, reads it", count, maxIndexEntries)
	case int(count) > len(data)/format.MinEntry:
		return nil, Corrupt("the index is too short for %d files", count)
	}
	x := &Index{Entries: make([]IndexEntry, 0, count)}
	var bad error
	rest, err := format.IndexEntries(data, len(ID{}), func(f *format.IndexEntry) error {
		be32 := func(i int) int64 { return int64(binary.BigEndian.Uint32(f.Stat[i:])) }
		e := IndexEntry{
			Path: string(f.Name), Mode: f.Mode, ID: ID(f.ID), Size: uint32(be32(36)),
			CTime: be32(0)*1e9 + be32(4), MTime: be32(8)*1e9 + be32(12),
			Stage: uint8(f.Flags & format.StageMask >> 12),
			Flags: uint8(f.Flags>>12&AssumeValid | f.Flags>>24&(SkipWorktree|IntentToAdd)),
		}
		switch n := len(x.Entries); {
		case Type(e.Mode) == ModeTree:
			return errSparse
		case !format.IsPath(e.Path):
			// In a split index, entries that replace others have no path. Its extension comes
			// at the end, and then its error takes precedence.
			if bad == nil {
				bad = Corrupt("the index has the path %q, which git would not check out", shorten(e.Path))
			}
			return nil
		case !normalizeMode(&e.Mode):
			return Corrupt("the index has a file of the mode %o", e.Mode)
		case n > 0 && !less(&x.Entries[n-1], &e):
			return Corrupt("the index is out of order at %q", shorten(e.Path))
		}
		x.Entries = append(x.Entries, e)
		return nil
	})
	if errors.Is(err, format.ErrIndex) {
		return nil, Corrupt("the index is damaged behind %d files", len(x.Entries))
	} else if err != nil {
		return nil, err
	}
	if err := x.extensions(rest); err != nil {
		return nil, err
	}
	return x, bad
}

var errSparse = Unsupported("the index is sparse: it has directories for files; git status, run by bash, reads it (git sparse-checkout disable, run by a person, makes it whole)")

func less(a, b *IndexEntry) bool {
	return a.Path < b.Path || a.Path == b.Path && a.Stage < b.Stage
}

func shorten(s string) string { return s[:min(len(s), 200)] }

// extensions reads the cached trees in the extensions of the index. Any other extension is
// ignored, or an error if its name does not begin with a capital letter: git requires that
// such a one is understood.
func (x *Index) extensions(data []byte) error {
	for {
		name, body, rest, ok := format.Extension(data)
		if data = rest; !ok {
			return Corrupt("the index ends in the middle of an extension")
		}
		switch {
		case name == "":
			return nil
		case name == "link":
			return Unsupported("the index is split; git status, run by bash, reads it (git update-index --no-split-index, run by a person, makes it whole)")
		case name == "sdir":
			return errSparse
		case name == "TREE":
			x.trees = map[string]cachedTree{}
			format.CachedTrees(body, len(ID{}), func(dir string, id []byte, entries int) bool {
				if id != nil {
					x.trees[dir] = cachedTree{ID(id), entries}
				}
				return true
			})
		case name[0] < 'A' || name[0] > 'Z':
			return Unsupported("the index needs the extension %q, which is not known here; git status, run by bash, reads it", name)
		}
	}
}

// Entry returns the first entry of a path; nil: there is none. x may be nil.
func (x *Index) Entry(path string) *IndexEntry {
	if x == nil {
		return nil
	}
	i := x.find(path)
	if i == len(x.Entries) || x.Entries[i].Path != path {
		return nil
	}
	return &x.Entries[i]
}

// find returns the position of the first entry of a path, or the position where it would be.
func (x *Index) find(path string) int {
	return sort.Search(len(x.Entries), func(i int) bool { return x.Entries[i].Path >= path })
}

// Has reports whether a path is a file or a directory in the index. x may be nil.
func (x *Index) Has(path string) bool {
	if x == nil {
		return false
	}
	below := path + "/"
	i := x.find(below)
	return x.Entry(path) != nil || i < len(x.Entries) && strings.HasPrefix(x.Entries[i].Path, below)
}

// MatchingEntries returns the number of entries from position i on that are exactly the tree
// of the directory dir; 0: they differ, or it is not known. dir ends in a slash or is "".
func (x *Index) MatchingEntries(dir string, tree ID, i int) int {
	t, ok := x.trees[dir]
	if !ok || t.id != tree || t.entries <= 0 || i+t.entries > len(x.Entries) {
		return 0
	}
	first, last := x.Entries[i].Path, x.Entries[i+t.entries-1].Path
	if !strings.HasPrefix(first, dir) || !strings.HasPrefix(last, dir) {
		return 0
	}
	return t.entries
}
