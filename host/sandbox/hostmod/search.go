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
func searchList(g *guest) error {
	out := g.u32(2)
	fail := func(errorCase uint8, why string) error { return searchListResult.fail(g, out, errorCase, why) }
	if why := g.whyNoFiles(); why != "" {
		return fail(searchDenied, why)
	}
	dirs, why, err := g.names("dirs", 0)
	if err != nil {
		return err
	}
	if why != "" {
		return fail(searchInvalid, why)
	}
	listings, err := search.List(g.ctx, g.world.Files, dirs, payer{g.account})
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
		if err := list.bytes(g, at+searchListingNames, names); err != nil {
			return err
		}
		if err := list.bytes(g, at+searchListingKinds, kinds); err != nil {
			return err
		}
	}
	r := searchListResult.record()
	if err := r.list(g, searchListResult.payload, list.b, searchListingBytes, 4); err != nil {
		return err
	}
	return searchListResult.put(g, out, r)
}

// searchStat is search.stat. Parameters: names (pointer, length), result pointer.
func searchStat(g *guest) error {
	out := g.u32(2)
	fail := func(errorCase uint8, why string) error { return searchStatResult.fail(g, out, errorCase, why) }
	if why := g.whyNoFiles(); why != "" {
		return fail(searchDenied, why)
	}
	names, why, err := g.names("names", 0)
	if err != nil {
		return err
	}
	if why != "" {
		return fail(searchInvalid, why)
	}
	infos, err := search.Stat(g.ctx, g.world.Files, names, payer{g.account})
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
	r := searchStatResult.record()
	if err := r.list(g, searchStatResult.payload, list.b, searchInfoBytes, 8); err != nil {
		return err
	}
	return searchStatResult.put(g, out, r)
}

// searchBegin is search.begin. Parameters: files (pointer, length), pattern (pointer, length),
// context, max-matches, max-text, max-chars, result pointer.
func searchBegin(g *guest) error {
	out := g.u32(8)
	fail := func(errorCase uint8, why string) error { return searchBeginResult.fail(g, out, errorCase, why) }
	if why := g.whyNoFiles(); why != "" {
		return fail(searchDenied, why)
	}
	if g.world.search != nil {
		return fail(searchInvalid, "the result of another query was not collected yet")
	}
	files, why, err := g.names("files", 0)
	if err != nil {
		return err
	}
	if size := g.u32(3); why == "" && size > search.MaxPattern {
		why = search.ErrPattern.Error()
	}
	if why != "" {
		return fail(searchInvalid, why)
	}
	pattern, err := g.mem.String("pattern", g.u32(2), g.u32(3), search.MaxPattern)
	if err != nil {
		return err
	}
	limit := func(i int) int { return int(min(g.u32(i), 1<<30)) }
	g.world.search, err = search.Begin(g.ctx, g.world.Files, search.Query{
		Files: files, Pattern: pattern,
		Context: limit(4), MaxMatches: limit(5), MaxText: limit(6), MaxChars: limit(7),
	}, payer{g.account})
	if errors.Is(err, search.ErrPattern) {
		return fail(searchInvalid, err.Error())
	}
	if err != nil {
		return g.exhaustIfSpent(err)
	}
	return searchBeginResult.put(g, out, searchBeginResult.record())
}

// searchCollect is search.collect. Parameters: result pointer.
func searchCollect(g *guest) error {
	out := g.u32(0)
	fail := func(errorCase uint8, why string) error { return searchCollectResult.fail(g, out, errorCase, why) }
	if why := g.whyNoFiles(); why != "" {
		return fail(searchDenied, why)
	}
	s := g.world.search
	if s == nil {
		return fail(searchInvalid, "no query was begun")
	}
	g.world.search = nil
	found, err := s.Collect()
	if err != nil {
		return g.exhaustIfSpent(err)
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
	r := searchCollectResult.record()
	if err := r.list(g, searchFoundLines, list.b, searchLineBytes, 8); err != nil {
		return err
	}
	if err := r.bytes(g, searchFoundText, found.Text); err != nil {
		return err
	}
	r.u32(searchFoundFailed, uint32(found.Failed))
	r.bool(searchFoundMore, found.More)
	return searchCollectResult.put(g, out, r)
}

// exhaustIfSpent makes the error of a guest that cannot pay for a search one that ends the
// guest. It returns other errors unchanged.
func (g *guest) exhaustIfSpent(err error) error {
	if errors.Is(err, search.ErrSpent) {
		return g.account.Exhaust()
	}
	return err
}

// whyNoFiles returns the reason why the call has no files to search; "": it has some.
func (g *guest) whyNoFiles() string {
	return g.world.whyDenied(g.world != nil && g.world.Files != nil && len(g.world.Grant.Mounts()) > 0, "searching files")
}

// names lifts the text in the parameters i and i+1, in which each name ends with a NUL. why is
// the reason for refusing the names; "": they are accepted. what names them in errors.
func (g *guest) names(what string, i int) (names []string, why string, _ error) {
	if g.u32(i+1) > maxSearchNameBytes {
		return nil, what + ": too many names for one call", nil
	}
	text, err := g.mem.String(what, g.u32(i), g.u32(i+1), maxSearchNameBytes)
	if err != nil || text == "" {
		return nil, "", err
	}
	if strings.Count(text, "\x00") > maxSearchCount {
		return nil, what + ": too many names for one call", nil
	}
	return strings.Split(strings.TrimSuffix(text, "\x00"), "\x00"), "", nil
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
