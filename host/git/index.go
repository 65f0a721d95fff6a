package git

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/tool"
)

// maxIndex is how large an index of git is that is looked into, and maxName a name in
// one.
const (
	maxIndex = 64 << 20
	maxName  = 4096
)

// index is what an index of git says of its files. What it keeps of their times and
// inodes is not there: git writes that anew whenever it has looked.
type index struct {
	entries []staged // by name and stage
	rest    []byte   // the extensions
	partial bool     // entries stand for others, or are in another file
}

// staged is an entry of an index.
type staged struct {
	entry
	name  string
	flags uint32 // the stage among them; without the length of the name
}

// Flags of an entry.
const (
	extended    = 0x4000
	stages      = 0x3000
	longest     = 0x0fff // a length of a name that is longer
	intentToAdd = 0x2000 << 16
	told        = 0x8000 | 0x4000<<16 // assume-unchanged and skip-worktree
)

var errIndex = errors.New("this is no index of git that is known")

// readIndex reads an index of version 2, 3 or 4, see gitformat-index(5). As git does, it
// does not look at the sum. Of no file it is empty.
func readIndex(v *tool.Version, hashSize int, left *budget) (x index, err error) {
	if v == nil {
		return x, nil
	}
	if !take(&left.index, v.Size) {
		return x, errTooLong
	}
	data, err := content(v, maxIndex)
	if err != nil {
		return x, err
	}
	return parseIndex(data, hashSize, left)
}

func parseIndex(data []byte, hashSize int, left *budget) (x index, err error) {
	const header, stat = 12, 40
	if len(data) < header+hashSize || string(data[:4]) != "DIRC" {
		return x, errIndex
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return x, errIndex
	}
	data = data[header : len(data)-hashSize]
	if int64(count)*int64(stat+hashSize+2) > int64(len(data)) {
		return x, errIndex
	}
	p := indexParser{data: data, text: string(data), version: version, hashSize: hashSize, left: left}
	x.entries = make([]staged, 0, count)
	for ; count > 0; count-- {
		e, ok := p.next()
		if last := len(x.entries) - 1; !ok || last >= 0 && order(x.entries[last], e) >= 0 {
			return x, errIndex
		}
		x.partial = x.partial || e.mode&modeType == modeTree
		x.entries = append(x.entries, e)
	}
	x.rest = data[p.at:]
	for rest := x.rest; len(rest) >= 8; {
		size := int64(binary.BigEndian.Uint32(rest[4:]))
		x.partial = x.partial || string(rest[:4]) == "link"
		if size > int64(len(rest)-8) {
			return x, errIndex
		}
		rest = rest[8+size:]
	}
	return x, nil
}

// indexParser reads one entry after another.
type indexParser struct {
	data     []byte
	text     string // the same: names and ids are parts of it
	at       int
	version  uint32
	hashSize int
	name     string // of the entry before
	left     *budget
}

func (p *indexParser) next() (e staged, ok bool) {
	const stat = 40
	b, n := p.data[p.at:], stat+p.hashSize+2
	if len(b) < n {
		return e, false
	}
	e.entry = entry{known(binary.BigEndian.Uint32(b[24:])), p.text[p.at+stat : p.at+stat+p.hashSize]}
	flags := binary.BigEndian.Uint16(b[n-2:])
	e.flags = uint32(flags & 0xf000)
	if flags&extended != 0 {
		if n += 2; p.version < 3 || len(b) < n {
			return e, false
		}
		e.flags |= uint32(binary.BigEndian.Uint16(b[n-2:])) << 16
	}
	kept := ""
	if p.version == 4 { // the name is what is left of the one before, and more
		cut, used := offsetIn(b[n:])
		if used == 0 || cut > int64(len(p.name)) {
			return e, false
		}
		n += used
		kept = p.name[:len(p.name)-int(cut)]
	}
	end := bytes.IndexByte(b[n:], 0)
	if end < 0 || len(kept)+end > maxName || kept != "" && !take(&p.left.index, int64(len(kept)+end)) {
		return e, false // a version 4 of some bytes has names of gigabytes
	}
	e.name = p.text[p.at+n : p.at+n+end]
	if kept != "" {
		e.name = kept + e.name
	}
	p.name = e.name
	n += end
	all := n + 1
	if p.version < 4 {
		all = (n + 8) &^ 7 // with the zero bytes that fill it up
	}
	if all > len(b) || int(flags&longest) != min(len(e.name), longest) || len(bytes.Trim(b[n:all], "\x00")) > 0 {
		return e, false // git goes by the length
	}
	p.at += all
	return e, true
}

var errTrees = errors.New("it has noted down a directory that it does not have so")

// verify looks at the ids of directories that an index has noted down: git takes these
// for its next commit.
func (x index) verify(hashSize int, left *budget) error {
	for rest := x.rest; len(rest) >= 8; {
		data, is := rest[8:8+binary.BigEndian.Uint32(rest[4:])], string(rest[:4]) == "TREE"
		if rest = rest[8+len(data):]; !is || x.partial {
			continue
		}
		t := treeMaker{x.entries, map[string]directory{}, hashSize, left}
		if _, _, ok := t.dir("", 0); !ok {
			return errTooLong
		}
		if data, ok := t.noted(data, "", 0); !ok || len(data) > 0 {
			return errTrees
		}
	}
	return nil
}

// treeMaker makes the trees of the directories of an index.
type treeMaker struct {
	entries  []staged // that are left
	dirs     map[string]directory
	hashSize int
	left     *budget
}

// directory is a tree; of no id if git can make none.
type directory struct {
	id      string
	entries int
}

func (t *treeMaker) dir(name string, depth int) (m directory, data []byte, ok bool) {
	if depth > maxDepth || !take(&t.left.index, int64(len(name))+100) {
		return m, nil, false
	}
	sound := true
	for len(t.entries) > 0 && strings.HasPrefix(t.entries[0].name, name) {
		e := t.entries[0]
		part, _, below := strings.Cut(e.name[len(name):], "/")
		if below {
			sub, _, ok := t.dir(name+part+"/", depth+1)
			if !ok {
				return m, nil, false
			}
			e.entry = entry{modeTree, sub.id}
			sound, m.entries = sound && sub.id != "", m.entries+sub.entries
		} else {
			t.entries = t.entries[1:]
			sound, m.entries = sound && e.flags&(stages|intentToAdd) == 0, m.entries+1
		}
		data = append(fmt.Appendf(data, "%o %s\x00", e.mode, part), e.id...)
	}
	if sound {
		m.id = nameOf(t.hashSize, treeKind, data)
	}
	t.dirs[name] = m
	return m, data, true
}

// noted reports whether a directory and those in it are as they are noted down.
func (t *treeMaker) noted(data []byte, in string, depth int) (rest []byte, ok bool) {
	name, rest, ok := bytes.Cut(data, []byte{0})
	line, rest, ok2 := bytes.Cut(rest, []byte{'\n'})
	var m directory
	var below int
	_, err := fmt.Sscanf(string(line), "%d %d", &m.entries, &below)
	if !ok || !ok2 || err != nil || depth > maxDepth || string(line) != fmt.Sprint(m.entries, below) {
		return nil, false
	}
	if depth > 0 {
		in += string(name) + "/"
	}
	if m.entries >= 0 {
		if len(rest) < t.hashSize {
			return nil, false
		}
		if m.id, rest = string(rest[:t.hashSize]), rest[t.hashSize:]; m != t.dirs[in] {
			return nil, false
		}
	}
	for ; below > 0 && ok; below-- {
		rest, ok = t.noted(rest, in, depth+1)
	}
	return rest, ok
}

func order(a, b staged) int {
	if c := strings.Compare(a.name, b.name); c != 0 {
		return c
	}
	return int(a.flags&stages) - int(b.flags&stages)
}

// changes calls each for what differs between two indexes; one of both may be nil.
func (x index) changes(now index, each func(was, is *staged)) {
	a, b := x.entries, now.entries
	for len(a)+len(b) > 0 {
		c := len(b) - len(a) // where one has ended
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

// Negligible reports whether nothing is lost if the changes are not kept, and no others
// are: git has written down anew when it has looked at which file, or the message of a
// commit, or what it has found elsewhere, that came to nothing.
func Negligible(changes []tool.Change) bool {
	left := newBudget()
	return !slices.ContainsFunc(changes, func(c tool.Change) bool { return !negligible(c, left) })
}

func negligible(c tool.Change, left *budget) bool {
	_, rel, inside := strings.Cut(filepath.ToSlash(c.Path), "/.git/")
	switch {
	case !inside || !regular(c.After) || c.Kind == tool.Renamed:
		return false
	case rel == "COMMIT_EDITMSG", rel == "FETCH_HEAD":
		return true
	case rel != "index" || c.Kind != tool.Modified || !regular(c.Before) || c.Before.Mode != c.After.Mode:
		return false
	}
	was, wasSize := sumOf(c.Before, left)
	is, isSize := sumOf(c.After, left)
	if wasSize == 0 || wasSize != isSize {
		return false
	}
	x, err := parseIndex(was, wasSize, left)
	if err != nil {
		return false
	}
	y, err := parseIndex(is, isSize, left)
	return err == nil && slices.Equal(x.entries, y.entries) && bytes.Equal(x.rest, y.rest)
}

// sumOf reads an index, and tells by its sum which hash it has; 0 if that is neither.
func sumOf(v *tool.Version, left *budget) (data []byte, hashSize int) {
	if !take(&left.index, v.Size) {
		return nil, 0
	}
	data, err := content(v, maxIndex)
	for _, size := range []int{sha1.Size, sha256.Size} {
		if err == nil && len(data) > size {
			h := newHash(size)
			h.Write(data[:len(data)-size])
			if bytes.Equal(h.Sum(nil), data[len(data)-size:]) {
				return data, size
			}
		}
	}
	return nil, 0
}
