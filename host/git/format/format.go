// Package format parses the data in git's files: packs, trees, references and indexes. The
// host and guests use it. It opens no files and keeps no data. Data may be damaged or made
// to mislead: the result ok is false if the parsed part of the data is not in git's format.
package format

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Kinds of objects, with their numbers in packs. The last two are deltas.
const (
	Commit = iota + 1
	Tree
	Blob
	Tag
	_
	OffsetDelta
	RefDelta
)

// Kinds holds the names of the kinds by number; it has no elements for deltas.
var Kinds = [...]string{Commit: "commit", Tree: "tree", Blob: "blob", Tag: "tag"}

// LooseHeader parses the inflated header of a loose object. begin is the offset of the
// content, and size its number of bytes.
func LooseHeader(data []byte) (kind int, size int64, begin int, ok bool) {
	head, _, ok := strings.Cut(string(data), "\x00")
	word, digits, _ := strings.Cut(head, " ")
	kind = slices.Index(Kinds[:], word)
	size, err := strconv.ParseInt(digits, 10, 64)
	return kind, size, len(head) + 1, ok && kind > 0 && err == nil && size >= 0 && strconv.FormatInt(size, 10) == digits
}

// The modes of entries in trees and in the index. ModeType is the mask of their type.
const (
	ModeType    = 0o170000
	ModeTree    = 0o040000
	ModeFile    = 0o100000
	ModeLink    = 0o120000
	ModeGitlink = 0o160000
)

// ObjectHeader is the header of an object in a pack, see gitformat-pack(5).
type ObjectHeader struct {
	Kind         int
	Size         uint64 // bytes of the data, inflated
	BaseDistance int64  // bytes from the start of the base to the start of an OffsetDelta
	Base         []byte // id of the base of a RefDelta
	Len          int    // bytes of the header
}

// MaxObjectHeader is the greatest number of bytes of an object's header, without an id.
const MaxObjectHeader = 20

// ParseObjectHeader parses the header at the start of b. An id has hashSize bytes.
func ParseObjectHeader(b []byte, hashSize int) (h ObjectHeader, ok bool) {
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
		h.BaseDistance, used = Offset(b)
		h.Len += used
		return h, h.BaseDistance > 0
	case RefDelta:
		if len(b) < hashSize {
			return h, false
		}
		h.Base = b[:hashSize]
		h.Len += hashSize
		return h, true
	}
	return h, false
}

// Offset parses a number in the variable-length format that OffsetDelta and index version 4 use.
// used is the number of its bytes; 0: b does not begin with such a number of at most 8 bytes.
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

// ApplyDelta applies a delta to its base. size is the size of the result that the delta
// names. ok is false if the delta is for a base of another size, if it is malformed, if the
// result has another size, or if size exceeds limit.
func ApplyDelta(base, delta []byte, limit int) (out []byte, size uint64, ok bool) {
	was, n := binary.Uvarint(delta)
	if n <= 0 || was != uint64(len(base)) {
		return nil, 0, false
	}
	size, m := binary.Uvarint(delta[n:])
	if m <= 0 || size > uint64(limit) {
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

// TreeEntry parses the first entry in the data of a tree. rest is the data after the entry.
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

// IsRef reports whether a name of at most [MaxName] bytes keeps to the rules for references in
// git-check-ref-format(1); it may have one level, such as HEAD or @. Such a name never leads
// out of the git directory.
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

// IsPath reports whether git on any system accepts the name of a file in a worktree, of at most
// [MaxName] bytes. Such a name never leads out of the worktree, or into a git directory.
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

// isDotGit reports whether git or some file system takes a name for .git.
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

// IsPerWorktreeRef reports whether each worktree has its own reference of this name.
func IsPerWorktreeRef(name string) bool {
	rest, ok := strings.CutPrefix(name, "refs/")
	return !ok || strings.HasPrefix(rest, "bisect/") || strings.HasPrefix(rest, "worktree/") || strings.HasPrefix(rest, "rewritten/")
}
