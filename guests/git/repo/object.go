package repo

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/stockade-dev/stockade/host/git/format"
)

const (
	// MaxObject limits an object that [Repo.Read] returns, in bytes; a larger one is an error.
	MaxObject     = 8 << 20
	maxCut        = 256 << 10 // bytes of a commit or a tag that are read; the rest is cut, see read
	maxChain      = 4095      // deltas between an object and its first base, as in git; more are an error
	maxChainBytes = 256 << 20 // bytes of all objects that these deltas make; more are an error
)

// Read returns the kind and the content of an object. [IsTooLarge] is true for the error if
// the object has more than [MaxObject] bytes or is made from larger ones, and also if the call
// has spent its work, see [IsSpent]. The caller must not change the bytes, which stay valid.
func (r *Repo) Read(id ID) (Kind, []byte, error) {
	kind, data, cut, err := r.read(id, MaxObject)
	if err == nil && cut {
		size := "more"
		if n, err := r.Size(id); err == nil {
			size = strconv.FormatUint(n, 10) + " bytes, more"
		}
		err = TooLarge("the object %s has %s than the %d MiB that are read; git cat-file -p, run by bash, writes it", id, size, MaxObject>>20)
	}
	return kind, data, err
}

// ReadAs is Read for an object that must be of a kind; another kind is an error.
func (r *Repo) ReadAs(id ID, want Kind) ([]byte, error) {
	kind, data, err := r.Read(id)
	if err == nil && kind != want {
		err = Corrupt("the object %s is a %s and not a %s", id, kind, want)
	}
	return data, err
}

// read returns an object. If it has more than maxBytes bytes, read returns the first maxBytes
// of them and sets cut, or returns all of a cached one. For an object that is stored as a
// delta it returns an error instead, also if only a base has more.
func (r *Repo) read(id ID, maxBytes int) (kind Kind, data []byte, cut bool, err error) {
	if err := r.Check(); err != nil {
		return 0, nil, false, err
	}
	p, off, err := r.findPacked(id)
	if p != nil {
		return r.unpack(p, off, maxBytes)
	}
	kind, data, cut, looseErr := r.readLoose(id, maxBytes)
	if errors.Is(looseErr, fs.ErrNotExist) {
		if err != nil {
			return 0, nil, false, err // a pack that cannot be read may hold it
		}
		return 0, nil, false, r.missing(id)
	}
	return kind, data, cut, looseErr
}

// unpack reads the object at an offset of a pack, with the objects of which it is a delta.
// maxBytes limits each of them as in read.
func (r *Repo) unpack(p *pack, off int64, maxBytes int) (kind Kind, data []byte, cut bool, err error) {
	type step struct {
		p       *pack
		off, at int64
		size    int
	}
	var chain []step
	for data == nil {
		if kind, data = r.cache.get(p, off); data != nil {
			r.Spend(workCached)
			break
		}
		e, err := p.entry(off)
		if err != nil {
			return 0, nil, false, err
		}
		if e.size > uint64(maxBytes) {
			if len(chain) == 0 && e.kind <= KindTag {
				data = make([]byte, maxBytes)
				err = r.inflate(p, e.at, data, true)
				return e.kind, data, true, err
			}
			return 0, nil, false, tooLargeIn(p, maxBytes)
		}
		if e.kind <= KindTag {
			kind = e.kind
			data = make([]byte, e.size)
			if err = r.inflate(p, e.at, data, false); err != nil {
				return 0, nil, false, err
			}
			r.cache.put(p, off, kind, data)
			break
		}
		if chain = append(chain, step{p, off, e.at, int(e.size)}); len(chain) > maxChain {
			return 0, nil, false, Corrupt("%s.pack has a chain of more than %d deltas", p.name, maxChain)
		}
		if off = e.base; e.kind == format.RefDelta {
			base, at, err := r.findPacked(e.name)
			if err != nil {
				return 0, nil, false, err
			}
			if p, off = base, at; base == nil {
				if kind, data, cut, err = r.readLoose(e.name, maxBytes); errors.Is(err, fs.ErrNotExist) {
					err = r.missing(e.name)
				} else if err == nil && cut {
					err = TooLarge("the object %s has more than %d KiB; git itself, run by bash, reads it", e.name, maxBytes>>10)
				}
				if err != nil {
					return 0, nil, false, err
				}
			}
		}
	}
	total := 0
	for i := len(chain) - 1; i >= 0; i-- {
		if err := r.Check(); err != nil {
			return 0, nil, false, err
		}
		s := chain[i]
		if cap(r.delta) < s.size {
			r.delta = make([]byte, s.size, max(s.size, usualDelta))
		}
		delta := r.delta[:s.size]
		if err := r.inflate(s.p, s.at, delta, false); err != nil {
			return 0, nil, false, err
		}
		out, size, ok := format.ApplyDelta(data, delta, maxBytes)
		if size > uint64(maxBytes) {
			return 0, nil, false, tooLargeIn(s.p, maxBytes)
		} else if !ok {
			return 0, nil, false, Corrupt("%s.pack has a delta at %d that does not fit its base", s.p.name, s.off)
		}
		r.Spend(len(out) / copiedPerUnit)
		data = out
		if total += len(data); total > maxChainBytes {
			return 0, nil, false, TooLarge("a chain of deltas in %s.pack makes more than %d MiB; git itself, run by bash, reads it", s.p.name, maxChainBytes>>20)
		}
		r.cache.put(s.p, s.off, kind, data)
	}
	return kind, data, false, nil
}

func tooLargeIn(p *pack, maxBytes int) error {
	return TooLarge("an object in %s.pack has more than the %d KiB that are read; git itself, run by bash, reads it", p.name, maxBytes>>10)
}

// Size returns the size of an object in bytes, without reading all of the object.
func (r *Repo) Size(id ID) (uint64, error) {
	p, off, err := r.findPacked(id)
	if err != nil {
		return 0, err
	}
	if p == nil {
		f, err := r.openLoose(id)
		if err != nil {
			return 0, r.missing(id)
		}
		defer f.f.Close()
		_, size, _, err := r.looseHeader(f)
		return size, err
	}
	e, err := p.entry(off)
	if err != nil || e.kind <= KindTag {
		return e.size, err
	}
	head := make([]byte, min(e.size, 2*10)) // two numbers: the sizes of the base and of the object
	if err := r.inflate(p, e.at, head, true); err != nil {
		return 0, err
	}
	_, n := binary.Uvarint(head)
	size, m := binary.Uvarint(head[max(n, 0):])
	if n <= 0 || m <= 0 {
		return 0, Corrupt("%s.pack has a delta at %d without a size", p.name, off)
	}
	return size, nil
}

const usualDelta = 16 << 10 // minimum capacity of the buffer for deltas, in bytes

// inflate fills data from an offset of a pack. cut is as in inflater.inflate.
func (r *Repo) inflate(p *pack, at int64, data []byte, cut bool) error {
	r.Spend(workObject + len(data)/inflatedPerUnit)
	if err := r.inflater.inflate(&reader{f: p.pack, off: at}, data, cut); err != nil {
		return Corrupt("%s.pack at %d: %v", p.name, at, err)
	}
	return nil
}

const maxLooseHeader = 32 // bytes of the header of a loose object: the longest kind with the longest size

func (r *Repo) openLoose(id ID) (f *pagedFile, err error) {
	name := id.String()
	for _, dir := range r.objects {
		if f, err = r.pages.open(filepath.Join(dir, name[:2], name[2:])); err == nil {
			break
		}
	}
	return f, err
}

func (r *Repo) readLoose(id ID, maxBytes int) (Kind, []byte, bool, error) {
	f, err := r.openLoose(id)
	if err != nil {
		return 0, nil, false, err
	}
	defer f.f.Close()
	kind, size, begin, err := r.looseHeader(f)
	cut := size > uint64(maxBytes)
	var data []byte
	if err == nil {
		data = make([]byte, begin+int(min(size, uint64(maxBytes))))
		err = r.inflater.inflate(&reader{f: f}, data, cut)
	}
	r.Spend(workLoose + len(data)/loosePerUnit)
	if err != nil {
		return 0, nil, false, Corrupt("the object %s: %v", id, err)
	}
	return kind, data[begin:], cut, nil
}

// looseHeader reads the header of a loose object: its kind, its size, and the offset begin of
// its content in the decoded data.
func (r *Repo) looseHeader(f *pagedFile) (kind Kind, size uint64, begin int, err error) {
	head := make([]byte, maxLooseHeader)
	if r.inflater.inflate(&reader{f: f}, head, true) != nil {
		head = head[:r.inflater.at] // the object may be shorter
	}
	k, n, begin, ok := format.LooseHeader(head)
	if !ok {
		err = errors.New("its header is not one of git")
	}
	return Kind(k), uint64(n), begin, err
}

const (
	maxCache       = 8 << 20 // bytes of all cached objects; beyond, those not used lately are dropped
	maxCacheObject = 1 << 20 // bytes of one object; a larger one is not cached
)

// cache holds objects of packs that were read lately: they may be bases of further deltas.
type cache struct {
	objects map[packOffset]*cached
	queue   []*cached // all objects; the first one is dropped next, unless used is set
	size    int       // bytes of all objects, with an overhead for each
}

type packOffset struct {
	p   *pack
	off int64
}

type cached struct {
	packOffset
	kind Kind
	data []byte
	used bool // set by put and get; cleared when the object is passed over in queue
}

func (c *cache) get(p *pack, off int64) (Kind, []byte) {
	o := c.objects[packOffset{p, off}]
	if o == nil {
		return 0, nil
	}
	o.used = true
	return o.kind, o.data
}

func (c *cache) put(p *pack, off int64, kind Kind, data []byte) {
	at := packOffset{p, off}
	if len(data) == 0 || len(data) > maxCacheObject || c.objects[at] != nil {
		return
	}
	if c.objects == nil {
		c.objects = map[packOffset]*cached{}
	}
	c.objects[at] = &cached{at, kind, data, true}
	c.queue = append(c.queue, c.objects[at])
	const overhead = 128
	for c.size += len(data) + overhead; c.size > maxCache; {
		old := c.queue[0]
		c.queue = c.queue[1:]
		if old.used {
			old.used = false
			c.queue = append(c.queue, old)
			continue
		}
		delete(c.objects, old.packOffset)
		c.size -= len(old.data) + overhead
	}
}

// readDir lists a directory in no order, up to maxEntries entries.
func readDir(name string) ([]fs.DirEntry, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(maxEntries)
	if err == io.EOF {
		err = nil
	}
	return entries, err
}

const maxEntries = 50_000 // entries of a directory, more than is usual; further ones are left out

// Kind returns the kind of an object.
func (r *Repo) Kind(id ID) (Kind, error) {
	kind, _, _, err := r.read(id, MaxObject)
	return kind, err
}
