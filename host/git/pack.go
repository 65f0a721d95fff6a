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
)

// pack is a packfile with its index, see gitformat-pack(5).
type pack struct {
	path      string // without its ending
	hashSize  int
	idx, pack *file
	fan       [256]uint32 // how many objects begin with a byte as high as this, or lower
	z         *inflater
}

const (
	idxHeader  = 8
	idxFan     = idxHeader + 1024
	packHeader = 12
)

var errFormat = errors.New("it is in a format that is not known here")

// openPack takes over both files.
func openPack(path string, hashSize int, idx, data *file, z *inflater) (*pack, error) {
	p := &pack{path: path, hashSize: hashSize, idx: idx, pack: data, z: z}
	var head [idxFan]byte
	if _, err := idx.ReadAt(head[:], 0); err != nil {
		return p, err
	}
	if !bytes.Equal(head[:idxHeader], []byte("\xfftOc\x00\x00\x00\x02")) {
		return p, errFormat
	}
	last := uint32(0)
	for i := range p.fan {
		if p.fan[i] = binary.BigEndian.Uint32(head[idxHeader+4*i:]); p.fan[i] < last {
			return p, &Lie{path + ".idx", "it is out of order"}
		}
		last = p.fan[i]
	}
	if least := idxFan + int64(last)*int64(hashSize+8) + 2*int64(hashSize); idx.size < least || (idx.size-least)%8 != 0 {
		return p, &Lie{path + ".idx", "it does not have the size that it says"}
	}
	return p, nil
}

func (p *pack) close() {
	_ = p.idx.Close()
	_ = p.pack.Close()
}

func (p *pack) count() int { return int(p.fan[255]) }

// load has the index be read from memory.
func (p *pack) load() error {
	data := make([]byte, p.idx.size)
	_, err := p.idx.ReadAt(data, 0)
	if err == nil || err == io.EOF {
		p.idx, err = &file{bytes.NewReader(data), p.idx.Closer, p.idx.size}, nil
	}
	return err
}

// name is the id of the object that is the i-th in the order of names.
func (p *pack) name(i int) string {
	id := make([]byte, p.hashSize)
	_, _ = p.idx.ReadAt(id, idxFan+int64(i)*int64(p.hashSize))
	return string(id)
}

// offset is where that object is in the pack.
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

// find returns the place of an object in the order of names.
func (p *pack) find(id string) (i int, ok bool) {
	low := 0
	if id[0] > 0 {
		low = int(p.fan[id[0]-1])
	}
	high := int(p.fan[id[0]])
	i = low + sort.Search(high-low, func(i int) bool { return p.name(low+i) >= id })
	return i, i < high && p.name(i) == id
}

// head is what stands before the data of an object in a pack.
type head struct {
	kind int
	size int64  // of the data, inflated
	at   int64  // of the data
	base int64  // of an offsetDelta
	name string // of a nameDelta
}

func (p *pack) head(off int64) (h head, err error) {
	bad := &Lie{p.path + ".pack", "it has no object where its index says"}
	b := make([]byte, 20+p.hashSize)
	n, err := p.pack.ReadAt(b, off)
	if off < packHeader || n < 2 || err != nil && err != io.EOF {
		return h, bad
	}
	c, i := b[0], 1
	h.kind, h.size = int(c>>4&7), int64(c&15)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if shift > 53 || i == n {
			return h, bad
		}
		c = b[i]
		h.size |= int64(c&0x7f) << shift
		i++
	}
	switch h.kind {
	case commitKind, treeKind, blobKind, tagKind:
	case offsetDelta:
		back, used := offsetIn(b[i:n])
		if h.base = off - back; used == 0 || back <= 0 || h.base < packHeader {
			return h, bad
		}
		i += used
	case nameDelta:
		if i+p.hashSize > n {
			return h, bad
		}
		h.name = string(b[i : i+p.hashSize])
		i += p.hashSize
	default:
		return h, bad
	}
	h.at = off + int64(i)
	return h, nil
}

// offsetIn reads a number as deltas have it, and version 4 of an index.
func offsetIn(data []byte) (value int64, used int) {
	for used < len(data) && used < 9 {
		b := data[used]
		value = value<<7 | int64(b&0x7f)
		if used++; b&0x80 == 0 {
			return value, used
		}
		value++
	}
	return 0, 0
}

const (
	maxChain = 4095 // deltas between an object and the one that is whole, as in git
	maxLive  = 256 << 20
)

// read reads an object by way of those that it is a delta of.
func (p *pack) read(off, most int64) (kind int, data []byte, err error) {
	var chain []head
	var h head
	for end := p.pack.size; ; {
		if h, err = p.head(off); err != nil {
			return 0, nil, err
		}
		if h.size > most {
			return 0, nil, errTooLong
		}
		if h.kind < offsetDelta {
			data, err = p.z.read(p.pack, h.at, end, h.size, false)
			break
		}
		if chain = append(chain, h); len(chain) > maxChain {
			return 0, nil, errTooLong
		}
		if off = h.base; h.kind == nameDelta {
			i, ok := p.find(h.name)
			if !ok {
				return 0, nil, errMissing
			}
			off = p.offset(i)
		}
	}
	for total := int64(0); err == nil && len(chain) > 0; chain = chain[:len(chain)-1] {
		d := chain[len(chain)-1]
		var delta []byte
		if delta, err = p.z.read(p.pack, d.at, p.pack.size, d.size, false); err == nil {
			data, err = patch(data, delta, most)
		}
		if total += int64(len(data)); total > maxLive {
			return 0, nil, errTooLong
		}
	}
	return h.kind, data, err
}

// placed is an object of a pack that is verified.
type placed struct {
	head
	name      string // of the object
	off, end  int64
	base      int // in the order of places; -1: it is whole
	kids, sib int // the first delta of it, and the next one of its base; -1: none
}

// layout reads where the objects of a pack are. The index must have all that the pack
// has, each once, one behind the other.
func (p *pack) layout() ([]placed, error) {
	if err := p.load(); err != nil {
		return nil, err
	}
	n := p.count()
	bad := func(what string) error { return &Lie{p.path + ".idx", what} }
	at := make([]placed, n)
	last := ""
	for i := range at {
		id := p.name(i)
		if id <= last && i > 0 || int(p.fan[id[0]]) <= i || id[0] > 0 && int(p.fan[id[0]-1]) > i {
			return nil, bad("it is out of order")
		}
		last, at[i] = id, placed{name: id, off: p.offset(i), base: -1, kids: -1, sib: -1}
	}
	var magic [packHeader]byte
	sums := make([]byte, 2*p.hashSize)
	_, err := p.pack.ReadAt(magic[:], 0)
	_, err2 := p.pack.ReadAt(sums[:p.hashSize], p.pack.size-int64(p.hashSize))
	_, err3 := p.idx.ReadAt(sums[p.hashSize:], p.idx.size-2*int64(p.hashSize))
	switch v := binary.BigEndian.Uint32(magic[4:]); {
	case err != nil || err2 != nil && err2 != io.EOF || err3 != nil || string(magic[:4]) != "PACK" || v != 2 && v != 3:
		return nil, &Lie{p.path + ".pack", "it is no pack"}
	case int(binary.BigEndian.Uint32(magic[8:])) != n:
		return nil, bad("it does not list all objects of the pack")
	case !bytes.Equal(sums[:p.hashSize], sums[p.hashSize:]):
		return nil, bad("it is the index of another pack")
	}
	slices.SortFunc(at, func(a, b placed) int { return cmp.Compare(a.off, b.off) })
	end := p.pack.size - int64(p.hashSize)
	for i := n - 1; i >= 0; i-- {
		o := &at[i]
		if o.end = end; o.off >= end {
			return nil, bad("it has two objects in one place")
		}
		end = o.off
		if o.head, err = p.head(o.off); err != nil {
			return nil, err
		}
		if o.size > (o.end-o.at)*maxRatio {
			return nil, &Lie{p.path + ".pack", "its object " + short(o.name) + " does not have the size that it says"}
		}
	}
	if n > 0 && at[0].off != packHeader {
		return nil, bad("it does not list all objects of the pack")
	}
	return at, nil
}

// verify hashes each object of a pack.
func (p *pack) verify(ctx context.Context, left *budget) error {
	if p.count() > maxObjects || p.pack.size > maxPack {
		return errTooLong
	}
	at, err := p.layout()
	if err != nil {
		return err
	}
	names := map[string]int{} // only of what a delta names
	for i := range at {
		if at[i].kind == nameDelta {
			names[at[i].head.name] = -1
		}
	}
	for i := range at {
		if _, ok := names[at[i].name]; ok {
			names[at[i].name] = i
		}
	}
	for i := range at {
		o := &at[i]
		switch o.kind {
		case nameDelta:
			o.base = names[o.head.name]
		case offsetDelta:
			var ok bool
			if o.base, ok = slices.BinarySearchFunc(at[:i], o.head.base, func(b placed, off int64) int { return cmp.Compare(b.off, off) }); !ok {
				o.base = -1
			}
		default:
			continue
		}
		if o.base < 0 {
			return &Lie{p.path + ".pack", "it has a delta of what is not in it"}
		}
		o.sib, at[o.base].kids = at[o.base].kids, i
	}
	v := verifier{p: p, at: at, ctx: ctx, left: left}
	for i := range at {
		if at[i].kind < offsetDelta {
			if err := v.whole(i); err != nil {
				return err
			}
		}
	}
	if v.seen < len(at) {
		return &Lie{p.path + ".pack", "it has deltas of one another"}
	}
	return nil
}

// verifier hashes the objects of one pack.
type verifier struct {
	p    *pack
	at   []placed
	ctx  context.Context
	left *budget
	seen int
	live int64 // bytes of the objects whose deltas are looked at
}

// lies says what is wrong with an object.
func (v *verifier) lies(o *placed, err error) error {
	if errors.Is(err, errTooLong) {
		return err
	}
	what := "its object " + short(o.name) + " is another one"
	if err != nil {
		what = "its object " + short(o.name) + " cannot be read: " + err.Error()
	}
	return &Lie{v.p.path + ".pack", what}
}

// whole verifies an object that is no delta, and those that are deltas of it.
func (v *verifier) whole(i int) error {
	o := &v.at[i]
	v.seen++
	if err := v.ctx.Err(); err != nil {
		return err
	}
	if !take(&v.left.bytes, o.size) {
		return errTooLong
	}
	if o.kids < 0 && o.size > maxParsed {
		h := begin(v.p.hashSize, o.kind, o.size)
		err := v.p.z.open(v.p.pack, o.at, o.end)
		if err == nil {
			_, err = io.CopyN(h, v.p.z.zlib, o.size)
		}
		if err == nil {
			err = v.p.z.ends()
		}
		if err != nil || string(h.Sum(nil)) != o.name {
			return v.lies(o, err)
		}
		return nil
	}
	if o.size > maxLive {
		return errTooLong
	}
	data, err := v.p.z.read(v.p.pack, o.at, o.end, o.size, true)
	if err != nil || nameOf(v.p.hashSize, o.kind, data) != o.name {
		return v.lies(o, err)
	}
	return v.deltas(o, o.kind, data, 0)
}

// deltas verifies those of an object.
func (v *verifier) deltas(of *placed, kind int, base []byte, depth int) error {
	v.live += int64(len(base))
	defer func(n int64) { v.live -= n }(int64(len(base)))
	if depth > maxChain || v.live > maxLive {
		return errTooLong
	}
	for i := of.kids; i >= 0; i = v.at[i].sib {
		o := &v.at[i]
		v.seen++
		if err := v.ctx.Err(); err != nil {
			return err
		}
		if !take(&v.left.bytes, o.size) {
			return errTooLong
		}
		delta, err := v.p.z.read(v.p.pack, o.at, o.end, o.size, true)
		var data []byte
		if err == nil {
			data, err = patch(base, delta, min(maxLive, v.left.bytes))
		}
		if err != nil || nameOf(v.p.hashSize, kind, data) != o.name {
			return v.lies(o, err)
		}
		take(&v.left.bytes, int64(len(data)))
		if err := v.deltas(o, kind, data, depth+1); err != nil {
			return err
		}
	}
	return nil
}
