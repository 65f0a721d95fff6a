package git

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"sort"

	"github.com/stockade-dev/stockade/host/git/format"
)

// pack is a packfile with its index, see gitformat-pack(5).
type pack struct {
	path       string // absolute path without .pack or .idx
	hashSize   int
	idx, pack  *file
	fan        [256]uint32 // at each i: number of ids whose first byte is at most i
	z          *inflater
	ends       map[int64]int64  // offset of the end of each object, by its offset; nil: not known
	cache      map[int64]object // inflated objects by offset; it is emptied when it exceeds maxCache
	cacheBytes int              // estimated number of bytes in cache
}

const (
	idxHeader  = 8
	idxFan     = idxHeader + 1024
	packHeader = 12
)

var errFormat = errors.New("its format is not known")

// openPack opens a pack and its index on a side. name is the path without an ending.
func (s *store) openPack(at side, name string) (p *pack, err error) {
	p = &pack{path: name, hashSize: s.hashSize, z: &s.z}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	part := func(end string) (*file, error) {
		v, err := s.files.version(at, s.top, name+end)
		if err != nil {
			return nil, err
		}
		return open(v)
	}
	if p.idx, err = part(".idx"); err != nil {
		return p, err
	}
	if p.pack, err = part(".pack"); err != nil {
		return p, err
	}
	var head [idxFan]byte
	if _, err := p.idx.ReadAt(head[:], 0); err != nil {
		return p, err
	}
	if !bytes.Equal(head[:idxHeader], []byte("\xfftOc\x00\x00\x00\x02")) {
		return p, errFormat
	}
	last := uint32(0)
	for i := range p.fan {
		if p.fan[i] = binary.BigEndian.Uint32(head[idxHeader+4*i:]); p.fan[i] < last {
			return p, &IntegrityError{name + ".idx", "it is out of order"}
		}
		last = p.fan[i]
	}
	if least := idxFan + int64(last)*int64(s.hashSize+8) + 2*int64(s.hashSize); p.idx.size < least || (p.idx.size-least)%8 != 0 {
		return p, &IntegrityError{name + ".idx", "its size is wrong"}
	}
	return p, nil
}

func (p *pack) close() {
	for _, f := range []*file{p.idx, p.pack} {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (p *pack) count() int { return int(p.fan[255]) }

// load reads the whole index into memory.
func (p *pack) load() error {
	data := make([]byte, p.idx.size)
	_, err := p.idx.ReadAt(data, 0)
	if err == nil || err == io.EOF {
		p.idx, err = &file{bytes.NewReader(data), p.idx.Closer, p.idx.size}, nil
	}
	return err
}

// id returns the id at position i of the index, in the order of ids.
func (p *pack) id(i int) string {
	id := make([]byte, p.hashSize)
	_, _ = p.idx.ReadAt(id, idxFan+int64(i)*int64(p.hashSize))
	return string(id)
}

// offset returns the offset that the index gives for the object at its position i; -1: none. It
// may be wrong.
func (p *pack) offset(i int) int64 {
	var b [8]byte
	n, h := int64(p.count()), int64(p.hashSize)
	_, _ = p.idx.ReadAt(b[:4], idxFan+n*(h+4)+int64(i)*4)
	const large = 1 << 31
	off := int64(binary.BigEndian.Uint32(b[:4]))
	if off&large == 0 {
		return off
	}
	at := idxFan + n*(h+8) + (off&^large)*8
	if at+8 > p.idx.size-2*h {
		return -1
	}
	_, _ = p.idx.ReadAt(b[:], at)
	return int64(binary.BigEndian.Uint64(b[:]))
}

// find returns the position of an id in the index. ok is false if it is not there.
func (p *pack) find(id string) (i int, ok bool) {
	low := 0
	if id[0] > 0 {
		low = int(p.fan[id[0]-1])
	}
	high := int(p.fan[id[0]])
	i = low + sort.Search(high-low, func(i int) bool { return p.id(low+i) >= id })
	return i, i < high && p.id(i) == id
}

// objectHeader is the header of an object in a pack.
type objectHeader struct {
	kind    int
	size    int64 // bytes of the inflated data
	at, end int64 // offset of the data; and of its end, or of the end of the pack if exact is not set
	exact   bool  // end is exactly the end of the data
	base    int64 // offset of the base, if the object is a delta
}

// head parses the header of the object at an offset.
func (p *pack) head(off int64) (h objectHeader, err error) {
	bad := &IntegrityError{p.path + ".pack", "it has no object at an offset of its index"}
	b := make([]byte, format.MaxObjectHeader+p.hashSize)
	n, err := p.pack.ReadAt(b, off)
	f, ok := format.ParseObjectHeader(b[:n], p.hashSize)
	if h = (objectHeader{kind: f.Kind, size: int64(f.Size), base: off - f.BaseDistance}); !ok || off < packHeader || err != nil && err != io.EOF {
		return h, bad
	}
	if f.Kind == format.RefDelta {
		at, ok := p.find(string(f.Base))
		if !ok {
			return h, &IntegrityError{p.path + ".pack", "it has a delta whose base is not in it"}
		}
		h.base = p.offset(at)
	}
	h.at, h.end = off+int64(f.Len), p.pack.size
	if p.ends != nil {
		if h.end, h.exact = p.ends[off]; !h.exact {
			return h, &IntegrityError{p.path + ".pack", "it has a delta whose base is not in it"}
		}
	}
	if h.size > (h.end-h.at)*maxRatio {
		return h, &IntegrityError{p.path + ".pack", "the size of an object is wrong"}
	}
	return h, nil
}

const (
	maxChain    = 4095      // deltas in a chain, or tags in one, as git has for deltas; more are an error
	maxVerified = 256 << 20 // bytes of an object that is built from deltas; a larger one is not verified
	maxCache    = 64 << 20  // bytes of pack.cache
)

// read reads the object at an offset and applies its chain of deltas. It returns errTooLong if
// an object or delta of the chain has more than limit bytes, if the chain is too long, or if left
// is used up: from left it subtracts the sizes of all data that it inflates or makes.
func (p *pack) read(off, limit int64, left *int64) (o object, err error) {
	var offs []int64
	var heads []objectHeader
	for {
		var ok bool
		if o, ok = p.cache[off]; ok {
			break
		}
		h, err := p.head(off)
		switch offs, heads = append(offs, off), append(heads, h); {
		case err != nil:
			return o, err
		case len(heads) > p.count():
			return o, &IntegrityError{p.path + ".pack", "its deltas are based on each other"}
		case h.size > limit, len(heads) > maxChain, !spend(left, h.size):
			return o, errTooLong
		}
		if h.kind < format.OffsetDelta {
			o.kind = h.kind
			break
		}
		off = h.base
	}
	for i, h := range slices.Backward(heads) {
		data, err := p.z.read(p.pack, h)
		if err == nil && h.kind >= format.OffsetDelta {
			data, err = applyDelta(o.data, data, min(limit, *left))
			spend(left, int64(len(data)))
		}
		if err != nil {
			return o, err
		}
		o.data = data
		const overhead = 100
		if p.cacheBytes += len(data) + overhead; p.cacheBytes > maxCache || p.cache == nil {
			p.cache, p.cacheBytes = map[int64]object{}, len(data)+overhead
		}
		p.cache[offs[i]] = o
	}
	return o, nil
}

type packedObject struct {
	id  string
	off int64
}

// layout lists the objects of a pack by offset, and sets p.ends. It returns an error unless
// the index has all objects of the pack, each at a different offset, the first directly after
// the header.
func (p *pack) layout() ([]packedObject, error) {
	if err := p.load(); err != nil {
		return nil, err
	}
	n := p.count()
	bad := func(what string) error { return &IntegrityError{p.path + ".idx", what} }
	at := make([]packedObject, n)
	for i := range at {
		id := p.id(i)
		if i > 0 && id <= at[i-1].id || int(p.fan[id[0]]) <= i || id[0] > 0 && int(p.fan[id[0]-1]) > i {
			return nil, bad("it is out of order")
		}
		at[i] = packedObject{id, p.offset(i)}
	}
	var magic [packHeader]byte
	sums := make([]byte, 2*p.hashSize)
	_, err := p.pack.ReadAt(magic[:], 0)
	_, err2 := p.pack.ReadAt(sums[:p.hashSize], p.pack.size-int64(p.hashSize))
	_, err3 := p.idx.ReadAt(sums[p.hashSize:], p.idx.size-2*int64(p.hashSize))
	switch v := binary.BigEndian.Uint32(magic[4:]); {
	case err != nil || err2 != nil && err2 != io.EOF || err3 != nil || string(magic[:4]) != "PACK" || v != 2 && v != 3:
		return nil, &IntegrityError{p.path + ".pack", "it is no pack"}
	case int(binary.BigEndian.Uint32(magic[8:])) != n:
		return nil, bad("it does not list all objects of the pack")
	case !bytes.Equal(sums[:p.hashSize], sums[p.hashSize:]):
		return nil, bad("it is the index of another pack")
	}
	slices.SortFunc(at, func(a, b packedObject) int { return cmp.Compare(a.off, b.off) })
	if n > 0 && at[0].off != packHeader {
		return nil, bad("it does not list all objects of the pack")
	}
	p.ends = make(map[int64]int64, n)
	end := p.pack.size - int64(p.hashSize)
	for _, o := range slices.Backward(at) {
		if o.off >= end {
			return nil, bad("it has two objects at the same offset")
		}
		p.ends[o.off], end = end, o.off
	}
	return at, nil
}

// verify hashes each object of a pack, in the order of offsets, because most deltas follow
// their base, which is then still in the cache. It returns errTooLong if the pack or an object
// exceeds a limit, or if left is used up.
func (p *pack) verify(ctx context.Context, left *int64) error {
	if p.count() > maxObjects || p.pack.size > maxPack {
		return errTooLong
	}
	at, err := p.layout()
	for i := 0; i < len(at) && err == nil; i++ {
		if err = p.verifyObject(at[i], left); err == nil {
			err = ctx.Err()
		}
	}
	return err
}

func (p *pack) verifyObject(at packedObject, left *int64) error {
	h, err := p.head(at.off)
	var name string
	if err == nil && h.kind < format.OffsetDelta && h.size > maxParsed { // too large for memory
		if !spend(left, h.size) {
			return errTooLong
		}
		if err = p.z.open(p.pack, h.at, h.end); err == nil {
			name, err = p.z.sum(p.hashSize, h.kind, h.size)
		}
	} else if err == nil {
		var o object
		if o, err = p.read(at.off, maxVerified, left); err == nil {
			name = hashObject(p.hashSize, o.kind, o.data)
		}
	}
	_, known := errors.AsType[*IntegrityError](err)
	switch what := "its object " + short(at.id); {
	case known || errors.Is(err, errTooLong):
		return err
	case err != nil:
		return &IntegrityError{p.path + ".pack", what + " cannot be read: " + err.Error()}
	case name != at.id:
		return &IntegrityError{p.path + ".pack", what + " has another hash"}
	}
	return nil
}
