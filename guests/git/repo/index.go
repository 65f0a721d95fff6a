package repo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"unicode"
)

// Index is what will be in the next commit, see gitformat-index(5).
type Index struct {
	Entries []IndexEntry // sorted by path, and by stage
	MTime   int64        // of the file, in nanoseconds
	trees   map[string]cachedTree
}

// IndexEntry is a file in the index.
type IndexEntry struct {
	Path  string
	Mode  uint32
	ID    ID
	MTime int64  // of the file when it was added, in nanoseconds
	CTime int64  // likewise
	Size  uint32 // likewise; the low 32 bits
	Stage uint8  // 1 to 3 in a conflict
	Flags uint8
}

// Flags of an entry.
const (
	AssumeValid  = 1 << iota // the user has said that it does not change
	SkipWorktree             // it is not checked out
	IntentToAdd              // only its name was added
)

type cachedTree struct {
	id      ID
	entries int
}

const (
	maxIndex        = 32 << 20
	maxIndexEntries = 300_000
	maxPath         = 4096
)

// Index reads the index. There is none in a repository to which nothing was added.
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

const (
	indexHeader = 12
	indexStat   = 62 // of an entry, with flags
)

func parseIndex(data []byte) (*Index, error) {
	if len(data) < indexHeader+idTrailer || string(data[:4]) != "DIRC" {
		return nil, corrupt("%s does not begin as an index of git does: something else has written it, or cut it off; git status, run by bash, tells more", "the file index in the git directory")
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return nil, Unsupported("the index has the version %d, and not 2 to 4; git status, run by bash, reads it", version)
	}
	if count > maxIndexEntries {
		return nil, TooLarge("the index has %d files, more than %d; git status, run by bash, reads it", count, maxIndexEntries)
	}
	if int(count) > len(data)/(indexStat-2) {
		return nil, Corrupt("the index is too short for %d files", count)
	}
	body := data[:len(data)-idTrailer]
	x := &Index{Entries: make([]IndexEntry, 0, count)}
	at, before := indexHeader, ""
	var bad error
	for range count {
		var e IndexEntry
		start := at
		if at+indexStat > len(body) {
			return nil, Corrupt("the index ends in the middle of a file")
		}
		b := data[at:]
		be32 := func(i int) int64 { return int64(binary.BigEndian.Uint32(b[i:])) }
		e.CTime, e.MTime = be32(0)*1e9+be32(4), be32(8)*1e9+be32(12)
		e.Mode, e.Size = uint32(be32(24)), uint32(be32(36))
		e.ID = ID(b[40:60])
		flags := binary.BigEndian.Uint16(b[60:])
		e.Stage = uint8(flags >> 12 & 3)
		if flags&0x8000 != 0 {
			e.Flags |= AssumeValid
		}
		at += indexStat
		if flags&0x4000 != 0 {
			if version < 3 || at+2 > len(body) {
				return nil, Corrupt("the index has flags that its version does not have")
			}
			more := binary.BigEndian.Uint16(data[at:])
			at += 2
			if more&0x4000 != 0 {
				e.Flags |= SkipWorktree
			}
			if more&0x2000 != 0 {
				e.Flags |= IntentToAdd
			}
		}
		if version == 4 {
			strip, rest, ok := offsetVarint(data[at:len(body)])
			at = len(body) - rest
			end := bytes.IndexByte(body[at:], 0)
			if !ok || strip > len(before) || end < 0 {
				return nil, Corrupt("the index has a path that is not one")
			}
			e.Path = before[:len(before)-strip] + string(body[at:at+end])
			at += end + 1
		} else {
			end := bytes.IndexByte(body[at:], 0)
			if end < 0 {
				return nil, Corrupt("the index has a path without end")
			}
			e.Path = string(body[at : at+end])
			at += end
			at = start + (at-start+8)&^7 // one to eight NULs
		}
		if at > len(body) {
			return nil, Corrupt("the index ends in the middle of a path")
		}
		if Type(e.Mode) == ModeTree {
			return nil, errSparse
		}
		if !validPath(e.Path) {
			// What a split index replaces has no path: whether it is split is told at the end.
			if bad == nil {
				bad = Corrupt("the index has the path %q, which git would not check out", shorten(e.Path))
			}
			continue
		}
		if !knownMode(&e.Mode) {
			return nil, Corrupt("the index has a file of the mode %o", e.Mode)
		}
		if n := len(x.Entries); n > 0 && !less(&x.Entries[n-1], &e) {
			return nil, Corrupt("the index is out of order at %q", shorten(e.Path))
		}
		before = e.Path
		x.Entries = append(x.Entries, e)
	}
	if err := x.extensions(data[at:len(body)]); err != nil {
		return nil, err
	}
	return x, bad
}

var errSparse = Unsupported("the index is sparse: it has directories for files; git status, run by bash, reads it (git sparse-checkout disable, run by a person, makes it whole)")

func less(a, b *IndexEntry) bool {
	return a.Path < b.Path || a.Path == b.Path && a.Stage < b.Stage
}

func shorten(s string) string { return s[:min(len(s), 200)] }

// offsetVarint is the number of git's offsets; rest is how many bytes follow.
func offsetVarint(b []byte) (v, rest int, ok bool) {
	for i, c := range b[:min(len(b), 4)] {
		if i > 0 {
			v = (v + 1) << 7
		}
		v |= int(c & 0x7f)
		if c&0x80 == 0 {
			return v, len(b) - i - 1, true
		}
	}
	return 0, len(b), false
}

// validPath is what git takes for a path: none leads out of the worktree, or into a
// git directory.
func validPath(path string) bool {
	if len(path) > maxPath {
		return false
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." || isDotGit(part) {
			return false
		}
	}
	return true
}

// isDotGit also knows what some file systems take for it.
func isDotGit(name string) bool {
	if len(name) < 4 || name[0] != '.' && name[0] != 'g' && name[0] != 'G' && name[0] < 0x80 {
		return false
	}
	name = strings.TrimRight(name, ". ")
	name, _, _ = strings.Cut(name, ":")
	name = strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Cf, c) {
			return -1
		}
		return c
	}, name)
	return strings.EqualFold(name, ".git") || strings.EqualFold(name, "git~1")
}

// extensions reads those that matter. One whose name begins with a small letter has
// to be understood.
func (x *Index) extensions(data []byte) error {
	for len(data) >= 8 {
		name, size := string(data[:4]), int64(binary.BigEndian.Uint32(data[4:]))
		if size > int64(len(data)-8) {
			return Corrupt("the index ends in the middle of an extension")
		}
		body := data[8 : 8+size]
		data = data[8+size:]
		switch {
		case name == "link":
			return Unsupported("the index is split; git status, run by bash, reads it (git update-index --no-split-index, run by a person, makes it whole)")
		case name == "sdir":
			return errSparse
		case name == "TREE":
			x.trees = map[string]cachedTree{}
			readTrees(x.trees, "", body, 0)
		case name[0] < 'A' || name[0] > 'Z':
			return Unsupported("the index needs the extension %q, which is not known here; git status, run by bash, reads it", name)
		}
	}
	return nil
}

const maxTreeDepth = 500

// readTrees reads the trees that git knows parts of the index to be, as far as they
// go: they only save work.
func readTrees(out map[string]cachedTree, dir string, data []byte, depth int) []byte {
	cut := func(end byte) (string, bool) {
		i := bytes.IndexByte(data[:min(len(data), maxPath)], end)
		if i < 0 {
			return "", false
		}
		word := string(data[:i])
		data = data[i+1:]
		return word, true
	}
	name, ok1 := cut(0)
	entries, ok2 := cut(' ')
	subtrees, ok3 := cut('\n')
	count, known, ok4 := number(entries)
	below, _, ok5 := number(subtrees)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || depth == maxTreeDepth {
		return nil
	}
	if depth > 0 {
		dir += name + "/"
	}
	if known {
		if len(data) < len(ID{}) {
			return nil
		}
		out[dir] = cachedTree{ID(data[:len(ID{})]), count}
		data = data[len(ID{}):]
	}
	for range below {
		if data = readTrees(out, dir, data, depth+1); data == nil {
			return nil
		}
	}
	if data == nil {
		data = []byte{}
	}
	return data
}

// number reads a count; -1 is one that is not known.
func number(s string) (n int, known, ok bool) {
	if s == "-1" {
		return 0, false, true
	}
	if s == "" || len(s) > 9 {
		return 0, false, false
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true, true
}

// Entry finds the first entry of a path, or returns nil.
func (x *Index) Entry(path string) *IndexEntry {
	if x == nil {
		return nil
	}
	i := sort.Search(len(x.Entries), func(i int) bool { return x.Entries[i].Path >= path })
	if i == len(x.Entries) || x.Entries[i].Path != path {
		return nil
	}
	return &x.Entries[i]
}

// Has reports whether there is a file or a directory of a path.
func (x *Index) Has(path string) bool {
	if x.Entry(path) != nil {
		return true
	}
	if x == nil {
		return false
	}
	below := path + "/"
	i := sort.Search(len(x.Entries), func(i int) bool { return x.Entries[i].Path >= below })
	return i < len(x.Entries) && strings.HasPrefix(x.Entries[i].Path, below)
}

// Same reports how many entries from the i-th on are exactly the tree of a directory,
// which ends in a slash; 0 if that is not known.
func (x *Index) Same(dir string, tree ID, i int) int {
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
