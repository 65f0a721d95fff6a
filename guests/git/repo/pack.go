package repo

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"strings"

	"github.com/stockade-dev/stockade/host/git/format"
)

// pack is a packfile with its index, see gitformat-pack(5). Both files are read in pages.
type pack struct {
	name    string // path without .pack
	idx     *pagedFile
	pack    *pagedFile
	fan     [256]uint32 // fan[b] is the number of objects whose ID begins with the byte b or a lower one
	openErr error       // error of open; nil: open has not failed
}

func (p *pack) close() {
	for _, f := range []*pagedFile{p.idx, p.pack} {
		if f != nil {
			_ = f.f.Close()
		}
	}
}

const (
	idxHeader  = 8
	idxFan     = idxHeader + 1024
	idTrailer  = 20
	packHeader = 12
)

// open opens both files at the first call. Each further call returns the same error.
func (p *pack) open(pages *pages) error {
	if p.idx != nil || p.openErr != nil {
		return p.openErr
	}
	p.openErr = func() (err error) {
		if p.idx, err = pages.open(p.name + ".idx"); err != nil {
			return Corrupt("open %s.idx: %v", p.name, err)
		}
		if p.pack, err = pages.open(p.name + ".pack"); err != nil {
			return Corrupt("open %s.pack: %v", p.name, err)
		}
		var head [idxFan]byte
		if err := p.idx.read(head[:], 0); err != nil {
			return Corrupt("read %s.idx: %v", p.name, err)
		}
		if !bytes.Equal(head[:idxHeader], []byte("\xfftOc\x00\x00\x00\x02")) {
			return Unsupported("%s.idx is not an index of version 2; git itself, run by bash, reads it", p.name)
		}
		before := uint32(0)
		for i := range p.fan {
			if p.fan[i] = binary.BigEndian.Uint32(head[idxHeader+4*i:]); p.fan[i] < before {
				return Corrupt("%s.idx is out of order", p.name)
			}
			before = p.fan[i]
		}
		if p.idx.size < idxFan+int64(before)*28+2*idTrailer {
			return Corrupt("%s.idx is too short for %d objects", p.name, before)
		}
		var magic [packHeader]byte
		if err := p.pack.read(magic[:], 0); err != nil || !bytes.Equal(magic[:4], []byte("PACK")) {
			return Corrupt("%s.pack is not a pack", p.name)
		}
		return nil
	}()
	return p.openErr
}

func (p *pack) count() int { return int(p.fan[255]) }

// id returns the ID of object number i, from 0, in the order of IDs.
func (p *pack) id(i int) (id ID, err error) {
	err = p.idx.read(id[:], idxFan+int64(i)*int64(len(id)))
	return id, err
}

// search returns the number of the first ID that is not less than id, and whether it is id.
func (p *pack) search(id ID) (i int, found bool, err error) {
	low := 0
	if id[0] > 0 {
		low = int(p.fan[id[0]-1])
	}
	high := int(p.fan[id[0]])
	// IDs are evenly distributed, so their position can be guessed. A hostile pack can mislead
	// the guesses: after some of them, the search goes on by halves.
	const guesses = 8
	key := func(id []byte) uint64 { return uint64(binary.BigEndian.Uint32(id[1:])) }
	want := key(id[:])
	lowKey, highKey := uint64(0), uint64(1)<<32
	for n := 0; low < high; n++ {
		mid := low + (high-low)/2
		if n < guesses && lowKey <= want && want < highKey {
			mid = low + int(uint64(high-low)*(want-lowKey)/(highKey-lowKey))
		}
		off := idxFan + int64(mid)*int64(len(id))
		at, err := p.idx.pageFrom(off)
		if err == nil && len(at) < len(id) { // the ID continues on the next page
			var whole ID
			err = p.idx.read(whole[:], off)
			at = whole[:]
		}
		if err != nil {
			return 0, false, err
		}
		switch order := bytes.Compare(at[:len(id)], id[:]); {
		case order == 0:
			return mid, true, nil
		case order < 0:
			low, lowKey = mid+1, key(at)
		default:
			high, highKey = mid, key(at)
		}
	}
	return low, false, nil
}

// find returns the offset of an object in the pack. found false: the pack lacks it.
func (p *pack) find(id ID) (off int64, found bool, err error) {
	i, found, err := p.search(id)
	if found {
		off, err = p.offset(i)
	}
	if err != nil {
		return 0, false, Corrupt("read %s.idx: %v", p.name, err)
	}
	return off, found, nil
}

func (p *pack) offset(i int) (int64, error) {
	n := int64(p.count())
	var b [8]byte
	if err := p.idx.read(b[:4], idxFan+n*24+int64(i)*4); err != nil {
		return 0, err
	}
	const large = 1 << 31
	off := int64(binary.BigEndian.Uint32(b[:4]))
	if off&large == 0 {
		return off, nil
	}
	if err := p.idx.read(b[:], idxFan+n*28+(off&^large)*8); err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64(b[:]) & (1<<63 - 1)), nil
}

// entry is the header of an object in a pack.
type entry struct {
	kind Kind
	size uint64 // bytes of the inflated data
	at   int64  // offset of the data in the pack
	base int64  // offset of the base in the pack, if kind is OffsetDelta
	name ID     // ID of the base, if kind is RefDelta
}

func (p *pack) entry(off int64) (e entry, err error) {
	var b [format.MaxObjectHeader + len(e.name)]byte
	n := min(int64(len(b)), p.pack.size-idTrailer-off)
	if off < packHeader || n <= 0 || p.pack.read(b[:n], off) != nil {
		n = 0
	}
	h, ok := format.ParseObjectHeader(b[:n], len(e.name))
	e = entry{kind: Kind(h.Kind), size: h.Size, at: off + int64(h.Len), base: off - h.BaseDistance}
	copy(e.name[:], h.Base)
	if !ok || e.base < packHeader {
		return e, Corrupt("%s.pack has no object at %d", p.name, off)
	}
	return e, nil
}

const maxPacks = 2000 // packs of a repository; more are an error

// listPacks lists the packs in all directories of objects, at the first call.
func (r *Repo) listPacks() error {
	if r.packsListed {
		return nil
	}
	for _, dir := range r.objects {
		dir = filepath.Join(dir, "pack")
		entries, err := readDir(dir)
		if err != nil {
			continue // there are none
		}
		for _, e := range entries {
			if name, ok := strings.CutSuffix(e.Name(), ".idx"); ok {
				if len(r.packs) == maxPacks {
					r.packs = nil // the next call fails, too
					return TooLarge("the repository has more than %d packs; git gc, run by bash, makes one of them", maxPacks)
				}
				r.packs = append(r.packs, &pack{name: filepath.Join(dir, name)})
			}
			r.partialClone = r.partialClone || strings.HasSuffix(e.Name(), ".promisor")
		}
	}
	r.packsListed = true
	return nil
}

// findPacked returns the pack and the offset of an object; nil: no pack has it. It searches
// first the pack in which it found the previous object. A pack that cannot be opened is an
// error only if no other pack has the object.
func (r *Repo) findPacked(id ID) (*pack, int64, error) {
	if err := r.listPacks(); err != nil {
		return nil, 0, err
	}
	var bad error
	for i, p := range r.packs {
		r.Spend(workFind)
		err := p.open(&r.pages)
		if err != nil {
			bad = err
			continue
		}
		off, found, err := p.find(id)
		if err != nil {
			return nil, 0, err
		}
		if found {
			copy(r.packs[1:], r.packs[:i])
			r.packs[0] = p
			return p, off, nil
		}
	}
	return nil, 0, bad
}
