package diff

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/tool"
)

// maxIndex is how large an index of git is that is looked into, and maxName a name in
// one.
const (
	maxIndex = 16 << 20
	maxName  = 4096
)

// index is what an index of git says of its files: what is staged of each, by name and
// stage, and the rest. What it keeps of their times and inodes is not there: git
// writes that anew whenever it has looked.
type index struct {
	entries map[string]string
	rest    []byte // the extensions
}

var errIndex = errors.New("this is no index of git that is known")

// readIndex reads an index of version 2, 3 or 4 with SHA-1. The format is that of
// gitformat-index(5).
func (b *budget) readIndex(v *tool.Version) (x index, err error) {
	if x, ok := b.indexes[v]; ok {
		return x, nil
	}
	x.entries = map[string]string{}
	if v == nil {
		return x, nil
	}
	if v.Size > maxIndex || !take(&b.index, v.Size) {
		return x, errIndex
	}
	data, err := head(v, v.Size)
	if err != nil {
		return x, err
	}
	const header, trailer, stat, fixed = 12, 20, 40, 62
	if len(data) < header+trailer || string(data[:4]) != "DIRC" {
		return x, errIndex
	}
	if sum := sha1.Sum(data[:len(data)-trailer]); !bytes.Equal(sum[:], data[len(data)-trailer:]) {
		return x, errIndex // of a repository with another hash
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return x, errIndex
	}
	data = data[header : len(data)-trailer]
	name := ""
	for range count {
		if len(data) < fixed {
			return x, errIndex
		}
		n := fixed
		// The mode lies among what the file system says.
		says := string(data[24:28]) + string(data[stat:fixed])
		flags := binary.BigEndian.Uint16(data[60:])
		if flags&0x4000 != 0 {
			if n += 2; version < 3 || len(data) < n {
				return x, errIndex
			}
			says += string(data[fixed:n])
		}
		if version == 4 { // the name is what is left of the one before, and more
			cut, used := offset(data[n:])
			if used == 0 || cut > len(name) {
				return x, errIndex
			}
			n += used
			name = name[:len(name)-cut]
		} else {
			name = ""
		}
		end := bytes.IndexByte(data[n:], 0)
		if end < 0 {
			return x, errIndex
		}
		if len(name)+end > maxName || !take(&b.names, int64(len(name)+end)) {
			return x, errIndex // a version 4 of some bytes has names of gigabytes
		}
		name += string(data[n : n+end])
		if n += end + 1; version < 4 {
			n = (n + 7) &^ 7 // with the zero bytes that fill it up
		}
		if len(data) < n {
			return x, errIndex
		}
		// Without the length of the name.
		says = says[:24] + string([]byte{says[24] & 0xf0}) + says[26:]
		x.entries[name+"\x00"+string([]byte{byte(flags>>12) & 3})] = says
		data = data[n:]
	}
	x.rest = data
	b.indexes[v] = x
	return x, nil
}

// offset reads a number as version 4 of an index has it.
func offset(data []byte) (value, used int) {
	for used < len(data) && used < 5 {
		b := data[used]
		value = value<<7 | int(b&0x7f)
		if used++; b&0x80 == 0 {
			return value, used
		}
		value++
	}
	return 0, 0
}

// Negligible reports whether nothing is lost if the changes are not kept, and no others
// are: git has written down anew when it has looked at which file, or the message of a
// commit, or what it has found elsewhere, that came to nothing.
func Negligible(changes []tool.Change) bool {
	left := newBudget()
	return !slices.ContainsFunc(changes, func(c tool.Change) bool { return !left.negligible(c) })
}

func (b *budget) negligible(c tool.Change) bool {
	_, rel, inside := cutRepository(c.Path)
	switch {
	case !inside || !regular(c.After) || c.Kind == tool.Renamed:
		return false
	case rel == "COMMIT_EDITMSG", rel == "FETCH_HEAD":
		return true
	case rel != "index" || c.Kind != tool.Modified || !regular(c.Before) || c.Before.Mode != c.After.Mode:
		return false
	}
	before, err := b.readIndex(c.Before)
	if err != nil {
		return false
	}
	after, err := b.readIndex(c.After)
	return err == nil && len(staged(before, after)) == 0 && bytes.Equal(before.rest, after.rest)
}

// staged are the names of the files of which something else is staged.
func staged(before, after index) []string {
	var names []string
	for key, says := range after.entries {
		if was, ok := before.entries[key]; !ok || was != says {
			names = append(names, key)
		}
	}
	for key := range before.entries {
		if _, ok := after.entries[key]; !ok {
			names = append(names, key)
		}
	}
	for i, key := range names {
		names[i], _, _ = strings.Cut(key, "\x00")
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// maxStaged is how many files are named of which something is staged.
const maxStaged = 12

// indexed says what has become of an index.
func (r *repository) indexed(c tool.Change) *Fact {
	f := &Fact{Kind: FactIndex}
	before, err := r.left.readIndex(c.Before)
	if err != nil {
		return f
	}
	after, err := r.left.readIndex(c.After)
	if err != nil {
		return f
	}
	names := staged(before, after)
	f.Files = names[:min(len(names), maxStaged)]
	f.More = len(names) - len(f.Files)
	return f
}
