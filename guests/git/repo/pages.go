package repo

import (
	"errors"
	"io"
	"os"
)

const (
	pageBytes = 8 << 10
	maxPages  = 512 // 4 MiB in all
)

// pages reads files in pages, and caches the pages that were used last.
type pages struct {
	list []page
	at   map[pageKey]int // positions in list
	hand int             // position in list from which free searches
}

type pageKey struct {
	file   *pagedFile
	number int64
}

// page is a cached page. used is set when it is read, and cleared when free passes it over.
type page struct {
	pageKey
	data []byte
	used bool
}

// pagedFile is a file that is read in pages.
type pagedFile struct {
	f     *os.File
	size  int64
	pages *pages
	last  int // position of its last page in pages.list
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

// pageFrom returns the rest of a page from an offset of the file on: at least one byte,
// valid until the next call.
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

// free takes a page that was not used lately out of the cache, and returns its position.
// It returns false if the cache may still grow.
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

// read fills buf from an offset of the file on.
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

// reader reads a file from an offset on. Nothing else may read pages at the same time.
type reader struct {
	f    *pagedFile
	off  int64
	have []byte
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
