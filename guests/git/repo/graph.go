package repo

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"path/filepath"
	"sort"
	"strings"
)

// This file reads git's commit-graph, see gitformat-commit-graph(5). It holds the [CommitNode]
// of most commits, in a form that is read a hundred times faster than objects, and often Bloom
// filters for the paths that each commit changes. It only saves work. A malformed commit-graph
// is not used; a wrong one is believed, as git does. A position is the number of a commit,
// from 0 in the lowest layer.

// graph is one layer of the commit-graph, read in pages. Each int64 is an offset in the file.
type graph struct {
	f          *pagedFile
	first      uint32 // position of the first commit: the number of commits in the layers below
	count      uint32 // number of commits in the layer
	fan        int64  // table: number of commits up to each first byte of an ID
	names      int64  // IDs of the commits
	data       int64  // trees, times and parents of the commits
	edges      chunk  // parents of commits with more than two, from the second parent on
	filterEnds int64  // ends of the Bloom filters in blooms; 0: there are no usable filters
	blooms     chunk  // Bloom filters of the commits
	hashes     uint32 // number of bits that a path sets in a filter
}

// chunk is a part of the file: its offset, and its size in bytes.
type chunk struct{ at, size int64 }

const (
	maxGraphs     = 64         // layers; a longer chain of them is not used
	graphHeader   = 8          // bytes before the table of chunks
	graphRow      = 12         // bytes of a row in the table of chunks
	graphData     = 36         // bytes of a commit in data
	graphNoParent = 0x70000000 // stands for a missing parent
	graphMore     = 1 << 31    // flag of the second parent: there are more; in edges: it is the last one
	bloomHeader   = 12         // bytes before the filters
	maxHashes     = 32         // limit for graph.hashes; with more, filters are not used
)

// openGraphs opens the layers of the first usable commit-graph in r.objects, at the first
// call. It opens none for a shallow clone, where commits have fewer parents.
func (r *Repo) openGraphs() {
	if r.graphsOpened {
		return
	}
	r.graphsOpened = true
	if r.Shallow() {
		return
	}
	for _, dir := range r.objects {
		names := []string{filepath.Join(dir, "info", "commit-graph")}
		chain := filepath.Join(dir, "info", "commit-graphs")
		if text, err := readSmall(filepath.Join(chain, "commit-graph-chain"), maxGraphs*41); err == nil {
			names = nil
			for line := range strings.Lines(string(text)) {
				if id, ok := parseID(strings.TrimSpace(line)); ok && len(names) < maxGraphs {
					names = append(names, filepath.Join(chain, "graph-"+id.String()+".graph"))
				}
			}
		}
		for _, name := range names {
			g, ok := r.openGraph(name, uint8(len(r.graphs)))
			if !ok {
				r.dropGraphs()
				break
			}
			if n := len(r.graphs); n > 0 {
				g.first = r.graphs[n-1].first + r.graphs[n-1].count
			}
			r.graphs = append(r.graphs, g)
		}
		if len(r.graphs) > 0 {
			return
		}
	}
}

// HasFilters reports whether there is a commit-graph, with Bloom filters in all layers.
func (r *Repo) HasFilters() bool {
	r.openGraphs()
	for _, g := range r.graphs {
		if g.filterEnds == 0 {
			return false
		}
	}
	return len(r.graphs) > 0
}

func (r *Repo) dropGraphs() {
	for _, g := range r.graphs {
		_ = g.f.f.Close()
	}
	r.graphs = nil
}

// openGraph opens a layer. below is the number of layers below it.
func (r *Repo) openGraph(name string, below uint8) (*graph, bool) {
	f, err := r.pages.open(name)
	if err != nil {
		return nil, false
	}
	g := &graph{f: f}
	if !g.parse(below) {
		_ = f.f.Close()
		return nil, false
	}
	return g, true
}

// parse reads the table of chunks. It returns false if the layer cannot be used, also if it
// was written for another number of layers below it.
func (g *graph) parse(below uint8) bool {
	var head [graphHeader]byte
	if g.f.read(head[:], 0) != nil || string(head[:6]) != "CGPH\x01\x01" || head[7] != below {
		return false
	}
	chunks := map[string]chunk{}
	for i := range int64(head[6]) {
		var row [2 * graphRow]byte // a row, and the next one, which has its end
		if g.f.read(row[:], graphHeader+i*graphRow) != nil {
			return false
		}
		at, end := int64(binary.BigEndian.Uint64(row[4:])), int64(binary.BigEndian.Uint64(row[4+graphRow:]))
		if at < graphHeader || end < at || end > g.f.size {
			return false
		}
		chunks[string(row[:4])] = chunk{at, end - at}
	}
	fan := chunks["OIDF"]
	if fan.size != 1024 {
		return false
	}
	count, ok := g.be32(fan.at + 1020)
	n := int64(count)
	if g.count = count; !ok || count >= graphNoParent/2 || chunks["OIDL"].size != n*20 || chunks["CDAT"].size != n*graphData {
		return false
	}
	g.fan, g.names, g.data, g.edges = fan.at, chunks["OIDL"].at, chunks["CDAT"].at, chunks["EDGE"]
	var settings [bloomHeader]byte
	if b := chunks["BDAT"]; b.size > bloomHeader && chunks["BIDX"].size == n*4 && g.f.read(settings[:], b.at) == nil {
		// Version 1 hashes other characters than ASCII in another way. KnownUnchanged does not
		// use the filter for such paths.
		version := binary.BigEndian.Uint32(settings[:])
		g.hashes = binary.BigEndian.Uint32(settings[4:])
		if version-1 < 2 && g.hashes-1 < maxHashes {
			g.filterEnds, g.blooms = chunks["BIDX"].at, chunk{b.at + bloomHeader, b.size - bloomHeader}
		}
	}
	return true
}

func (g *graph) be32(at int64) (uint32, bool) {
	if b, err := g.f.pageFrom(at); err == nil && len(b) >= 4 {
		return binary.BigEndian.Uint32(b), true
	}
	var b [4]byte
	err := g.f.read(b[:], at)
	return binary.BigEndian.Uint32(b[:]), err == nil
}

// layer returns the layer that has a position, and the commit's number in it; nil: none.
func (r *Repo) layer(at uint32) (*graph, int64) {
	for i := len(r.graphs) - 1; i >= 0; i-- {
		if g := r.graphs[i]; at >= g.first {
			if at -= g.first; at < g.count {
				return g, int64(at)
			}
			break
		}
	}
	return nil, 0
}

// position returns the position of a commit in the commit-graph; false: it was not found.
func (r *Repo) position(id ID) (uint32, bool) {
	r.openGraphs()
	for _, g := range r.graphs {
		r.Spend(workFind)
		low, ok := uint32(0), true
		if id[0] > 0 {
			low, ok = g.be32(g.fan + 4*int64(id[0]-1))
		}
		high, ok2 := g.be32(g.fan + 4*int64(id[0]))
		if !ok || !ok2 || high > g.count {
			continue
		}
		bad := false
		i, found := sort.Find(int(high)-int(low), func(i int) int {
			var at ID
			bad = bad || g.f.read(at[:], g.names+20*(int64(low)+int64(i))) != nil
			return bytes.Compare(id[:], at[:])
		})
		if bad || found {
			return g.first + low + uint32(i), found && !bad
		}
	}
	return 0, false
}

// nodeAt reads the commit at a position; nil: there is none, or the commit-graph is malformed.
func (r *Repo) nodeAt(at uint32) *CommitNode {
	g, i := r.layer(at)
	if g == nil {
		return nil
	}
	r.Spend(workGraph)
	l := &CommitNode{graphPos: at + 1}
	var data [graphData]byte
	if g.f.read(data[:], g.data+i*graphData) != nil || g.f.read(l.ID[:], g.names+20*i) != nil {
		return nil
	}
	l.Tree = ID(data[:20])
	l.When = int64(binary.BigEndian.Uint64(data[28:]) & (1<<34 - 1))
	first, second := binary.BigEndian.Uint32(data[20:]), binary.BigEndian.Uint32(data[24:])
	if first != graphNoParent && !r.addParent(l, first) {
		return nil
	}
	if first == graphNoParent || second == graphNoParent {
		return l
	}
	if second&graphMore == 0 {
		if !r.addParent(l, second) {
			return nil
		}
		return l
	}
	for at := int64(second&^graphMore) * 4; ; at += 4 {
		edge, ok := g.be32(g.edges.at + at)
		if !ok || at+4 > g.edges.size || len(l.Parents) == maxParents || !r.addParent(l, edge&^graphMore) {
			return nil
		}
		if edge&graphMore != 0 {
			return l
		}
	}
}

// addParent adds the commit at a position as a parent of l. It returns false if there is none.
func (r *Repo) addParent(l *CommitNode, at uint32) bool {
	g, i := r.layer(at)
	var id ID
	if g == nil || g.f.read(id[:], g.names+20*i) != nil {
		return false
	}
	l.Parents, l.parentPositions = append(l.Parents, id), append(l.parentPositions, at)
	return true
}

// KnownUnchanged reports whether a Bloom filter shows that a path is the same in a commit as
// in its first parent. False: it may differ.
func (r *Repo) KnownUnchanged(l *CommitNode, path string) bool {
	if l.graphPos == 0 || len(l.Parents) == 0 || path == "" {
		return false
	}
	g, i := r.layer(l.graphPos - 1)
	if g == nil || g.filterEnds == 0 {
		return false
	}
	start, ok := uint32(0), true
	if i > 0 {
		start, ok = g.be32(g.filterEnds + 4*(i-1))
	}
	end, ok2 := g.be32(g.filterEnds + 4*i)
	if !ok || !ok2 || end <= start || int64(end) > g.blooms.size {
		return false
	}
	if r.bloom.path != path {
		r.bloom.path = path
		r.bloom.a, r.bloom.b = murmur3(0x293ae76f, path), murmur3(0x7e646e2c, path)
		r.bloom.unusable = strings.ContainsFunc(path, func(c rune) bool { return c >= 0x80 })
	}
	if r.bloom.unusable {
		return false
	}
	size := uint64(end-start) * 8
	for k := range g.hashes {
		bit := uint64(r.bloom.a+k*r.bloom.b) % size
		b, err := g.f.pageFrom(g.blooms.at + int64(start) + int64(bit/8))
		if err != nil {
			return false
		}
		if b[0]>>(bit%8)&1 == 0 {
			return true
		}
	}
	return false
}

// bloomKey holds the hashes of the path that was last looked up in a Bloom filter.
type bloomKey struct {
	path     string
	a, b     uint32
	unusable bool // git's hashes of this path may differ, see [graph.parse]
}

// murmur3 returns the 32-bit MurmurHash3 of s.
func murmur3(seed uint32, s string) uint32 {
	mix := func(k uint32) uint32 { return bits.RotateLeft32(k*0xcc9e2d51, 15) * 0x1b873593 }
	h, n := seed, uint32(len(s))
	for ; len(s) >= 4; s = s[4:] {
		k := uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
		h = bits.RotateLeft32(h^mix(k), 13)*5 + 0xe6546b64
	}
	k := uint32(0)
	for i := len(s) - 1; i >= 0; i-- {
		k = k<<8 | uint32(s[i])
	}
	h ^= mix(k) ^ n
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}
