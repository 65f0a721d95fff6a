package hostmod

import (
	"encoding/binary"
	"errors"
	"strings"

	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/sandbox/search"
)

// Limits on the names in one call of search; more are the error case invalid. An empty name is
// one byte for the guest, and some tens for the host, so their number is limited, too.
const (
	maxSearchNameBytes = 1 << 20
	maxSearchCount     = 1 << 16
)

var (
	searchListResult    = layout{size: 16, align: 4, payload: 4, errorText: 8} // result<list<option<listing>>, error>
	searchStatResult    = layout{size: 16, align: 4, payload: 4, errorText: 8} // result<list<option<info>>, error>
	searchBeginResult   = layout{size: 16, align: 4, payload: 4, errorText: 8} // result<_, error>
	searchCollectResult = layout{size: 28, align: 4, payload: 4, errorText: 8} // result<found, error>
)

// Offsets of the fields of found in searchCollectResult.
const (
	searchFoundLines  = 4
	searchFoundText   = 12
	searchFoundFailed = 20
	searchFoundMore   = 24
)

// Offsets of the fields of line, and its size.
const (
	searchLineNumber  = 0
	searchLineFile    = 8
	searchLineSize    = 12
	searchLineMatches = 16
	searchLineCut     = 17
	searchLineBytes   = 24
)

// Offsets of the fields of option<listing>, and its size.
const (
	searchListingNames = 4
	searchListingKinds = 12
	searchListingBytes = 20
)

// Offsets of the fields of option<info>, and its size.
const (
	searchInfoSize     = 8
	searchInfoModified = 16
	searchInfoChanged  = 24
	searchInfoKind     = 32
	searchInfoBytes    = 40
)

// The cases of the variant error of search, see wit/.
const (
	searchDenied = iota
	searchInvalid
)

// searchList is search.list. Parameters: dirs (pointer, length), result pointer.
func searchList(c reply) error {
	dirs, err := c.names("dirs")
	if err != nil {
		return err
	}
	listings, err := search.List(c.ctx, c.world.Files, dirs, payer{c.account})
	if err != nil {
		return err
	}
	list := record{make([]byte, len(listings)*searchListingBytes)}
	for i, l := range listings {
		if l.Missing {
			continue
		}
		names, kinds := make([]byte, 0, l.Bytes+len(l.Entries)), make([]byte, 0, len(l.Entries))
		for _, e := range l.Entries {
			names = append(append(names, e.Name...), 0)
			kinds = append(kinds, byte(e.Kind))
		}
		at := i * searchListingBytes
		list.u8(at, 1)
		list.bytes(c.guest, at+searchListingNames, names)
		list.bytes(c.guest, at+searchListingKinds, kinds)
	}
	r := c.record()
	r.list(c.guest, c.payload, list.b, searchListingBytes, 4)
	return c.put(r)
}

// searchStat is search.stat. Parameters: names (pointer, length), result pointer.
func searchStat(c reply) error {
	names, err := c.names("names")
	if err != nil {
		return err
	}
	infos, err := search.Stat(c.ctx, c.world.Files, names, payer{c.account})
	if err != nil {
		return err
	}
	list := record{make([]byte, len(infos)*searchInfoBytes)}
	for i, info := range infos {
		if info.Missing {
			continue
		}
		at := i * searchInfoBytes
		list.u8(at, 1)
		binary.LittleEndian.PutUint64(list.b[at+searchInfoSize:], info.Size)
		binary.LittleEndian.PutUint64(list.b[at+searchInfoModified:], uint64(info.Modified))
		binary.LittleEndian.PutUint64(list.b[at+searchInfoChanged:], uint64(info.Changed))
		list.u8(at+searchInfoKind, uint8(info.Kind))
	}
	r := c.record()
	r.list(c.guest, c.payload, list.b, searchInfoBytes, 8)
	return c.put(r)
}

// searchBegin is search.begin. Parameters: files (pointer, length), pattern (pointer, length),
// context, max-matches, max-text, max-chars, result pointer.
func searchBegin(c reply) error {
	if c.world.search != nil {
		return refusal{searchInvalid, "the result of another query was not collected yet"}
	}
	files, err := c.names("files")
	if err != nil {
		return err
	}
	if c.u32(3) > search.MaxPattern {
		return refusal{searchInvalid, search.ErrPattern.Error()}
	}
	pattern, err := c.mem.String("pattern", c.u32(2), c.u32(3), search.MaxPattern)
	if err != nil {
		return err
	}
	limit := func(i int) int { return int(min(c.u32(i), 1<<30)) }
	c.world.search, err = search.Begin(c.ctx, c.world.Files, search.Query{
		Files: files, Pattern: pattern,
		Context: limit(4), MaxMatches: limit(5), MaxText: limit(6), MaxChars: limit(7),
	}, payer{c.account})
	if errors.Is(err, search.ErrPattern) {
		return refusal{searchInvalid, err.Error()}
	}
	if err != nil {
		return c.exhaustIfSpent(err)
	}
	return c.put(c.record())
}

// searchCollect is search.collect. Parameters: result pointer.
func searchCollect(c reply) error {
	s := c.world.search
	if s == nil {
		return refusal{searchInvalid, "no query was begun"}
	}
	c.world.search = nil
	found, err := s.Collect()
	if err != nil {
		return c.exhaustIfSpent(err)
	}
	list := record{make([]byte, len(found.Lines)*searchLineBytes)}
	for i, l := range found.Lines {
		at := i * searchLineBytes
		binary.LittleEndian.PutUint64(list.b[at+searchLineNumber:], l.Number)
		list.u32(at+searchLineFile, uint32(l.File))
		list.u32(at+searchLineSize, uint32(l.Size))
		list.bool(at+searchLineMatches, l.Matches)
		list.bool(at+searchLineCut, l.Cut)
	}
	r := c.record()
	r.list(c.guest, searchFoundLines, list.b, searchLineBytes, 8)
	r.bytes(c.guest, searchFoundText, found.Text)
	r.u32(searchFoundFailed, uint32(found.Failed))
	r.bool(searchFoundMore, found.More)
	return c.put(r)
}

// exhaustIfSpent makes the error of a guest that cannot pay for a search one that ends the
// guest. It returns other errors unchanged.
func (g *guest) exhaustIfSpent(err error) error {
	if errors.Is(err, search.ErrSpent) {
		return g.account.Exhaust()
	}
	return err
}

// withFiles returns a function of search that run carries out. It refuses a call that has no
// files to search.
func withFiles(l layout, run func(reply) error) func(*guest) error {
	return replies(l, func(c reply) error {
		if why := c.world.whyDenied(c.world != nil && c.world.Files != nil && len(c.world.Grant.Mounts()) > 0, "searching files"); why != "" {
			return refusal{searchDenied, why}
		}
		return run(c)
	})
}

// names lifts the text in the parameters 0 and 1, in which each name ends with a NUL. what
// names them in errors.
func (g *guest) names(what string) ([]string, error) {
	tooMany := refusal{searchInvalid, what + ": too many names for one call"}
	if g.u32(1) > maxSearchNameBytes {
		return nil, tooMany
	}
	text, err := g.mem.String(what, g.u32(0), g.u32(1), maxSearchNameBytes)
	if err != nil || text == "" {
		return nil, err
	}
	if strings.Count(text, "\x00") > maxSearchCount {
		return nil, tooMany
	}
	return strings.Split(strings.TrimSuffix(text, "\x00"), "\x00"), nil
}

type payer struct{ *meter.Account }

// Pay charges the guest for finished work, and lets other guests have their turn. The error
// means that the guest has to stop.
func (p payer) Pay(units uint64) error {
	p.Charge(units)
	if err := p.Settle(); err != nil {
		return err
	}
	return p.Yield(0)
}
