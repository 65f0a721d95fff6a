package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"
)

// IndexEntry is an entry of an index, see gitformat-index(5). Its slices are valid until
// the next entry is parsed.
type IndexEntry struct {
	Name  []byte
	Mode  uint32
	ID    []byte
	Flags uint32 // flags of the entry, without the length of the name
	Stat  []byte // times, inode and other data of the file
}

// Flags of an index entry, and masks of parts of its flags.
const (
	StageMask      = 0x3000
	NameLengthMask = 0x0fff // a name that is longer than this has this as its length
	AssumeValid    = 0x8000
	SkipWorktree   = 0x4000 << 16
	IntentToAdd    = 0x2000 << 16
)

// MinEntry is the least number of bytes of an index entry.
const MinEntry = 62

const (
	indexHeader = 12
	indexStat   = 40
	extended    = 0x4000 // flag: more flags follow
)

// Limits of an index; one that exceeds them does not parse.
const (
	MaxName  = 4096 // bytes of a path
	MaxDepth = 256  // nested directories with a cached tree
)

// IndexHeader returns the version of an index, and the number of entries that its header names.
func IndexHeader(data []byte, hashSize int) (version, count uint32, ok bool) {
	if len(data) < indexHeader+hashSize || string(data[:4]) != "DIRC" {
		return 0, 0, false
	}
	return binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:]), true
}

// ErrIndex is returned for data that is not an index, or that has an unknown version.
var ErrIndex = errors.New("it is not a git index of a known version")

// IndexEntries calls each for every entry of an index of version 2 to 4, until each returns
// an error, which it then returns. rest holds the extensions after the entries. Like git, it
// does not check the hash at the end.
func IndexEntries(data []byte, hashSize int, each func(*IndexEntry) error) (rest []byte, err error) {
	version, count, ok := IndexHeader(data, hashSize)
	if !ok || version < 2 || version > 4 {
		return nil, ErrIndex
	}
	data = data[indexHeader : len(data)-hashSize]
	var e IndexEntry
	for ; count > 0; count-- {
		if data, ok = e.cut(data, hashSize, version); !ok {
			return nil, ErrIndex
		}
		if err := each(&e); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// cut parses the first entry of data into e, which before must be the preceding entry or zero.
// rest is the data after the entry.
func (e *IndexEntry) cut(data []byte, hashSize int, version uint32) (rest []byte, ok bool) {
	n := indexStat + hashSize + 2
	if len(data) < n {
		return nil, false
	}
	flags := binary.BigEndian.Uint16(data[n-2:])
	e.Mode, e.ID, e.Stat = binary.BigEndian.Uint32(data[24:]), data[indexStat:n-2], data[:indexStat]
	e.Flags = uint32(flags &^ NameLengthMask)
	if flags&extended != 0 {
		if n += 2; version < 3 || len(data) < n {
			return nil, false
		}
		e.Flags |= uint32(binary.BigEndian.Uint16(data[n-2:])) << 16
	}
	kept := e.Name[:0]
	if version == 4 { // the name is the beginning of the preceding one, and a new end
		cut, used := Offset(data[n:])
		if used == 0 || cut > int64(len(e.Name)) {
			return nil, false
		}
		n, kept = n+used, e.Name[:len(e.Name)-int(cut)]
	}
	end := bytes.IndexByte(data[n:], 0)
	if end < 0 || len(kept)+end > MaxName {
		return nil, false
	}
	if e.Name = data[n : n+end : n+end]; version == 4 {
		e.Name = append(kept, e.Name...)
	}
	n += end
	all := n + 1
	if version < 4 {
		all = (n + 8) &^ 7 // with the zero bytes of the padding
	}
	if all > len(data) || int(flags&NameLengthMask) != min(len(e.Name), NameLengthMask) {
		return nil, false // git trusts the length
	}
	for ; n < all; n++ {
		if data[n] != 0 {
			return nil, false
		}
	}
	return data[all:], true
}

// Extension parses the first extension in the data after the entries of an index. rest is the
// data after the extension. name is empty if there is none.
func Extension(data []byte) (name string, body, rest []byte, ok bool) {
	if len(data) < 8 {
		return "", nil, nil, true
	}
	size := int64(binary.BigEndian.Uint32(data[4:]))
	if size > int64(len(data)-8) {
		return "", nil, nil, false
	}
	return string(data[:4]), data[8 : 8+size], data[8+size:], true
}

// CachedTrees parses the body of a TREE extension. It calls each for every directory, until
// each returns false: with the name of the directory, which is empty or ends in a slash; the
// id of its tree, nil if git has to write the tree anew; and its number of entries, negative
// without an id. It reports whether the whole body was parsed.
func CachedTrees(data []byte, hashSize int, each func(dir string, id []byte, entries int) bool) bool {
	rest, ok := cachedTrees(data, hashSize, each, "", 0)
	return ok && len(rest) == 0
}

func cachedTrees(data []byte, hashSize int, each func(string, []byte, int) bool, dir string, depth int) (rest []byte, ok bool) {
	name, rest, ok := bytes.Cut(data, []byte{0})
	first, rest, ok2 := bytes.Cut(rest, []byte{' '})
	second, rest, ok3 := bytes.Cut(rest, []byte{'\n'})
	entries, ok4 := number(first)
	below, ok5 := number(second)
	if !ok || !ok2 || !ok3 || !ok4 || !ok5 || depth > MaxDepth || len(dir)+len(name) > MaxName {
		return nil, false
	}
	if depth > 0 {
		dir += string(name) + "/"
	}
	var id []byte
	if entries >= 0 {
		if len(rest) < hashSize {
			return nil, false
		}
		id, rest = rest[:hashSize], rest[hashSize:]
	}
	ok = each(dir, id, entries)
	for ; below > 0 && ok; below-- {
		rest, ok = cachedTrees(rest, hashSize, each, dir, depth+1)
	}
	return rest, ok
}

// number parses a decimal number in git's form: without leading zeros or a plus sign.
func number(digits []byte) (int, bool) {
	n, err := strconv.Atoi(string(digits))
	return n, err == nil && strconv.Itoa(n) == string(digits)
}
