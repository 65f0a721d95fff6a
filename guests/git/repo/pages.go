package repo

import (
	"errors"
	"io"
	"os"
)

const (
	pageBytes = 8 << 10 // bytes of a page
	maxPages  = 512     // cached pages, 4 MiB in all; beyond, those not used lately are dropped
)

// pages reads files in pages, and caches the pages that were used lately.
type pages struct {
	list []page
	at   map[pageKey]int // positions in list
	hand int             // position in list from which free searches
}

type pageKey struct {
	file   *pagedFile
	number int64
}

// page is a cached page.
type page struct {
	pageKey
	data []byte
	used bool // set when the page is read; cleared when free passes it over
}

// pagedFile is a file that is read in pages.
type pagedFile struct {
	f     *os.File
	size  int64
	pages *pages
	last  int // position in pages.list of the page of this file that was read last
}

func (p *pages) open(name string) (*pagedFile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("is not a file")
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &pagedFile{f: f, size: info.Size(), pages: p}, nil
}

// pageFrom returns the rest of a page from an offset of the file on: at least one byte. The bytes are
// valid until the next call for any file of f.pages.
func (f *pagedFile) pageFrom(off int64) ([]byte, error) {
	if off < 0 || off >= f.size {
		return nil, io.ErrUnexpectedEOF
	}
	key := pageKey{f, off / pageBytes}
	p := f.pages
	i, ok := f.last, f.last < len(p.list) && p.list[f.last].pageKey == key
	if !ok {
		i, ok = p.at[key]
	}
	if !ok {
		if i, ok = p.free(); !ok {
			i = len(p.list)
			p.list = append(p.list, page{data: make([]byte, pageBytes)})
		}
		pg := &p.list[i]
		pg.data = pg.data[:min(pageBytes, f.size-key.number*pageBytes)]
		if _, err := f.f.ReadAt(pg.data, key.number*pageBytes); err != nil {
			pg.pageKey = pageKey{}
			return nil, err
		}
		if p.at == nil {
			p.at = map[pageKey]int{}
		}
		pg.pageKey = key
		p.at[key] = i
	}
	f.last = i
	p.list[i].used = true
	return p.list[i].data[off%pageBytes:], nil
}

// free takes a page that was not used lately out of the cache, and returns its position in list. It
// returns false if the cache may still grow.
func (p *pages) free() (int, bool) {
	if len(p.list) < maxPages {
		return 0, false
	}
	for p.list[p.hand].used {
		p.list[p.hand].used = false
		p.hand = (p.hand + 1) % len(p.list)
	}
	i := p.hand
	p.hand = (p.hand + 1) % len(p.list)
	delete(p.at, p.list[i].pageKey)
	return i, true
}

// read fills buf with the bytes from an offset of the file on.
func (f *pagedFile) read(buf []byte, off int64) error {
	for len(buf) > 0 {
		have, err := f.pageFrom(off)
		if err != nil {
			return err
		}
		n := copy(buf, have)
		buf, off = buf[n:], off+int64(n)
	}
	return nil
}

// reader reads a file from an offset on. Until it is done, nothing else may read pages.
type reader struct {
	f    *pagedFile
	off  int64  // offset of the bytes behind have
	have []byte // bytes that were read and not used yet
}

// fill reads the next bytes into have.
func (r *reader) fill() error {
	have, err := r.f.pageFrom(r.off)
	if err != nil {
		return err
	}
	r.have, r.off = have, r.off+int64(len(have))
	return nil
}
