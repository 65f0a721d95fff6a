// Package format reads what stands in the files of git: packs, trees, references and
// indexes. It opens nothing and holds no more than it is given, for the host and for
// guests alike. All of it may be damaged or made to mislead: what is not as git makes it is
// told by ok being false.
package format

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Kinds of objects, with the numbers that packs have for them. The last two are deltas.
const (
	Commit = iota + 1
	Tree
	Blob
	Tag
	_
	OffsetDelta
	NameDelta
)

// Kinds are the words for them.
var Kinds = [...]string{Commit: "commit", Tree: "tree", Blob: "blob", Tag: "tag"}

// LooseHeader reads what stands before the content of a loose object, and says where that
// begins.
func LooseHeader(data []byte) (kind int, size int64, begin int, ok bool) {
	head, _, ok := strings.Cut(string(data), "\x00")
	word, digits, _ := strings.Cut(head, " ")
	kind = slices.Index(Kinds[:], word)
	size, err := strconv.ParseInt(digits, 10, 64)
	return kind, size, len(head) + 1, ok && kind > 0 && err == nil && size >= 0 && strconv.FormatInt(size, 10) == digits
}

// The modes of entries of trees and of the index.
const (
	ModeType    = 0o170000
	ModeTree    = 0o040000
	ModeFile    = 0o100000
	ModeLink    = 0o120000
	ModeGitlink = 0o160000
)

// Head is what stands before the data of an object in a pack, see gitformat-pack(5).
type Head struct {
	Kind int
	Size uint64 // of the data, inflated
	Back int64  // of an OffsetDelta: how far before it its base begins
	Base []byte // of a NameDelta: the id of its base
	Len  int    // how many bytes this is
}

// MaxHead is how many bytes a head has at most, without an id.
const MaxHead = 20

// ParseHead reads a head from bytes that may end behind it.
func ParseHead(b []byte, hashSize int) (h Head, ok bool) {
	if len(b) == 0 {
		return h, false
	}
	c := b[0]
	h.Kind, h.Size, h.Len = int(c>>4&7), uint64(c&15), 1
	for shift := 4; c&0x80 != 0; shift += 7 {
		if shift > 53 || h.Len == len(b) {
			return h, false
		}
		c = b[h.Len]
		h.Size |= uint64(c&0x7f) << shift
		h.Len++
	}
	b = b[h.Len:]
	switch h.Kind {
	case Commit, Tree, Blob, Tag:
		return h, true
	case OffsetDelta:
		var used int
		h.Back, used = Offset(b)
		h.Len += used
		return h, h.Back > 0
	case NameDelta:
		if len(b) < hashSize {
			return h, false
		}
		h.Base = b[:hashSize]
		h.Len += hashSize
		return h, true
	}
	return h, false
}

// Offset reads a number as deltas have it, and version 4 of an index. used is how many
// bytes that are; 0 if it is none.
func Offset(b []byte) (value int64, used int) {
	for i, c := range b[:min(len(b), 8)] {
		value = value<<7 | int64(c&0x7f)
		if c&0x80 == 0 {
			return value, i + 1
		}
		value++
	}
	return 0, 0
}

// Patch makes an object of its base and a delta. It fails if the delta is not one of this
// base, does not make what it says, or would make more than most bytes: then size is more.
func Patch(base, delta []byte, most int) (out []byte, size uint64, ok bool) {
	was, n := binary.Uvarint(delta)
	if n <= 0 || was != uint64(len(base)) {
		return nil, 0, false
	}
	size, m := binary.Uvarint(delta[n:])
	if m <= 0 || size > uint64(most) {
		return nil, size, false
	}
	delta = delta[n+m:]
	out = make([]byte, 0, size)
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		if op&0x80 == 0 {
			n := int(op)
			if n == 0 || n > len(delta) || n > cap(out)-len(out) {
				return nil, size, false
			}
			out = append(out, delta[:n]...)
			delta = delta[n:]
			continue
		}
		var from, n int
		for i := range 7 {
			if op>>i&1 == 0 {
				continue
			}
			if len(delta) == 0 {
				return nil, size, false
			}
			if i < 4 {
				from |= int(delta[0]) << (8 * i)
			} else {
				n |= int(delta[0]) << (8 * (i - 4))
			}
			delta = delta[1:]
		}
		if n == 0 {
			n = 0x10000
		}
		if from > len(base) || n > len(base)-from || n > cap(out)-len(out) {
			return nil, size, false
		}
		out = append(out, base[from:from+n]...)
	}
	return out, size, uint64(len(out)) == size
}

// TreeEntry cuts the first entry from the data of a tree.
func TreeEntry(data []byte, hashSize int) (name []byte, mode uint32, id, rest []byte, ok bool) {
	i := 0
	for ; i < len(data) && data[i] != ' '; i++ {
		if data[i] < '0' || data[i] > '7' || i == 7 {
			return nil, 0, nil, nil, false
		}
		mode = mode<<3 | uint32(data[i]-'0')
	}
	if i >= len(data) {
		return nil, 0, nil, nil, false
	}
	data = data[i+1:]
	end := bytes.IndexByte(data, 0)
	if end <= 0 || len(data) < end+1+hashSize {
		return nil, 0, nil, nil, false
	}
	return data[:end], mode, data[end+1 : end+1+hashSize], data[end+1+hashSize:], true
}

// IsRef reports whether git takes a name for that of a reference, see
// git-check-ref-format(1). None leads out of the git directory.
func IsRef(name string) bool {
	if len(name) > MaxName || strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.HasSuffix(name, ".") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return !strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c == 0x7f || strings.ContainsRune(`~^:?*[\`, c) })
}

// IsPath reports whether git takes a name for that of a file: none leads out of the
// worktree, or into a git directory.
func IsPath(name string) bool {
	more := len(name) <= MaxName
	for part := ""; more; {
		part, name, more = strings.Cut(name, "/")
		if part == "" || part == "." || part == ".." || isDotGit(part) {
			return false
		}
	}
	return name == ""
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

// IsOwnRef reports whether each worktree has a reference for itself.
func IsOwnRef(name string) bool {
	rest, ok := strings.CutPrefix(name, "refs/")
	return !ok || strings.HasPrefix(rest, "bisect/") || strings.HasPrefix(rest, "worktree/") || strings.HasPrefix(rest, "rewritten/")
}
