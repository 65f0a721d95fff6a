package git

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/git/format"
	"github.com/stockade-dev/stockade/host/tool"
)

// newHash returns a new SHA-256 or SHA-1, depending on the number of bytes of a hash.
func newHash(size int) hash.Hash {
	if size == sha256.Size {
		return sha256.New()
	}
	return sha1.New()
}

// newObjectHash returns a hash to which the caller must write the object's size bytes.
func newObjectHash(hashSize, kind int, size int64) hash.Hash {
	h := newHash(hashSize)
	fmt.Fprintf(h, "%s %d\x00", format.Kinds[kind], size)
	return h
}

func hashObject(hashSize, kind int, data []byte) string {
	h := newObjectHash(hashSize, kind, int64(len(data)))
	h.Write(data)
	return string(h.Sum(nil))
}

// parseID parses an id in hexadecimal digits and returns its bytes; false: s is no id.
func parseID(s string) (string, bool) {
	if len(s) != 2*sha1.Size && len(s) != 2*sha256.Size {
		return "", false
	}
	raw, err := hex.DecodeString(s)
	if err != nil {
		return "", false
	}
	return string(raw), true
}

// inflater inflates one stream after another.
type inflater struct {
	in, out *bufio.Reader // the compressed bytes, and the inflated bytes
	zlib    io.ReadCloser
}

// open starts to inflate the bytes of a file from the offset at to the offset end.
func (z *inflater) open(f io.ReaderAt, at, end int64) (err error) {
	section := io.NewSectionReader(f, at, end-at)
	if z.in == nil {
		const longestHeader = 64 // of a loose object
		z.in, z.out = bufio.NewReader(section), bufio.NewReaderSize(nil, longestHeader)
	} else {
		z.in.Reset(section)
	}
	if z.zlib == nil {
		z.zlib, err = zlib.NewReader(z.in)
	} else {
		err = z.zlib.(zlib.Resetter).Reset(z.in, nil)
	}
	z.out.Reset(z.zlib)
	return err
}

var errSize = errors.New("its size is wrong")

// checkEnd returns an error unless both the stream and the section of the file have ended.
func (z *inflater) checkEnd() error {
	if _, err := z.out.ReadByte(); err != io.EOF {
		return errors.Join(errSize, err)
	}
	if _, err := z.in.ReadByte(); err != io.EOF {
		return errSize
	}
	return nil
}

// maxRatio is zlib's highest compression ratio; an object that claims a higher one is damaged.
const maxRatio = 1032

// read inflates an object of a pack, or a delta without applying it.
func (z *inflater) read(f io.ReaderAt, h objectHeader) ([]byte, error) {
	if err := z.open(f, h.at, h.end); err != nil {
		return nil, err
	}
	data := make([]byte, h.size)
	if _, err := io.ReadFull(z.out, data); err != nil {
		return nil, errors.Join(errSize, err)
	}
	if h.exact {
		return data, z.checkEnd()
	}
	return data, nil
}

// sum returns the id of an object of size bytes whose content is the rest of the stream.
func (z *inflater) sum(hashSize, kind int, size int64) (string, error) {
	h := newObjectHash(hashSize, kind, size)
	if _, err := io.CopyN(h, z.out, size); err != nil {
		return "", err
	}
	return string(h.Sum(nil)), z.checkEnd()
}

// openLoose opens the file of a loose object and parses its header. z.out then has the content.
func (z *inflater) openLoose(v *tool.Version) (f *file, kind int, size int64, err error) {
	if f, err = open(v); err != nil {
		return nil, 0, 0, err
	}
	var head []byte
	if err = z.open(f, 0, f.size); err == nil {
		head, err = z.out.ReadSlice(0)
	}
	kind, size, _, ok := format.LooseHeader(head)
	if err == nil && !ok {
		err = errors.New("it is no object")
	}
	if err != nil {
		_ = f.Close()
	}
	return f, kind, size, err
}

// applyDelta applies a delta to its base. It returns errTooLong beyond limit bytes.
func applyDelta(base, delta []byte, limit int64) ([]byte, error) {
	data, size, ok := format.ApplyDelta(base, delta, int(limit))
	switch {
	case size > uint64(limit):
		return nil, errTooLong
	case !ok:
		return nil, errors.New("a delta does not fit its base")
	}
	return data, nil
}

// commit holds the parts of a commit that are shown, compared or followed.
type commit struct {
	id, tree string
	parents  []string
	when     int64 // time of the committer in seconds since 1970; 0: it cannot be parsed
	subject  string
}

// parseCommit parses a commit like git, which reads only the first lines of the header.
func parseCommit(id string, data []byte) (*commit, bool) {
	c := &commit{id: id}
	header, message, _ := bytes.Cut(data, []byte("\n\n"))
	lines := strings.Split(string(header), "\n")
	hex, ok := strings.CutPrefix(lines[0], "tree ")
	if ok {
		c.tree, ok = parseID(hex)
	}
	if !ok || len(c.tree) != len(id) {
		return nil, false
	}
	lines = lines[1:]
	for len(lines) > 0 && strings.HasPrefix(lines[0], "parent ") {
		parent, ok := parseID(lines[0][len("parent "):])
		if !ok || len(parent) != len(id) {
			return nil, false
		}
		c.parents, lines = append(c.parents, parent), lines[1:]
	}
	if len(lines) > 1 && strings.HasPrefix(lines[1], "committer ") {
		_, when, _ := strings.Cut(lines[1][strings.LastIndexByte(lines[1], '>')+1:], " ")
		digits, _, _ := strings.Cut(when, " ")
		c.when, _ = strconv.ParseInt(digits, 10, 64)
	}
	c.subject, _, _ = strings.Cut(strings.TrimSpace(string(message[:min(len(message), maxSubject)])), "\n")
	return c, true
}

// maxSubject limits the bytes at the start of a message in which its first line is searched.
const maxSubject = 1 << 10

// entry is the mode and id of an entry of a tree or of the index.
type entry struct {
	mode uint32
	id   string
}

// parseTree returns the entries of a tree, by name. ok is false if the tree is malformed, or
// has a name twice or one that is too long.
func parseTree(hashSize int, data []byte) (entries map[string]entry, ok bool) {
	entries = map[string]entry{}
	for len(data) > 0 {
		name, mode, id, rest, ok := format.TreeEntry(data, hashSize)
		if !ok || entries[string(name)] != (entry{}) || len(name) > format.MaxName {
			return nil, false
		}
		entries[string(name)] = entry{normalMode(mode), string(id)}
		data = rest
	}
	return entries, true
}

// normalMode keeps the mode of a file, a link or a tree; any other becomes a submodule's.
func normalMode(mode uint32) uint32 {
	switch mode & format.ModeType {
	case format.ModeFile, format.ModeLink, format.ModeTree:
		return mode
	}
	return format.ModeGitlink
}
