package fuel

// The charges are placed by the method with which profilers place counters on the edges of a graph
// (Knuth and Stevenson 1973; Ball and Larus, "Optimally profiling and tracing programs", 1994):
// the edges of a spanning tree of the graph get none. Blocks are the edges, ports the nodes.
//
// Let ahead(p) be the units charged but not yet consumed when control passes port p, and 0
// outside of the function. A block then has to charge
//
//	weight + ahead(out) - ahead(in)
//
// which can be made 0 for all blocks of a spanning tree by the choice of ahead. The tree takes
// the blocks that run most often, but none with a check or an unreachable. ahead is never
// negative: a debt would be multiplied by the depth of a recursion. Charges can be negative.

// tree is the working memory of placeCharges, which is reused. The fields except for order, links
// and stack have an element for each port or bucket.
type tree struct {
	buckets   [freqRange + 1]int32 // positions in order for the counting sort by frequency
	order     []int32              // indices of blocks, the most frequent first
	parent    []int32              // of each port: the port it is connected to by the tree (union-find)
	firstLink []int32              // of each port: its first edge in links, or -1
	links     []link
	ahead     []int64 // of each port: the units charged ahead, see above
	seen      []bool  // of each port: ahead was set
	stack     []int32 // ports of the part of the tree that setAhead visits
}

// link is one direction of a block in the tree.
type link struct {
	to, next int32 // the port to which the link leads; and the index of the next link from its port, or -1
	gain     int64 // ahead(to) - ahead(from)
}

// freqRange is the number of distinct frequencies: enough for loops nested five deep. Others
// count as the least or the greatest.
const freqRange = 256

// placeCharges computes the charge of each block.
func (t *tree) placeCharges(f *flow) {
	for i := range f.blocks {
		b := &f.blocks[i]
		b.in, b.out = f.find(b.in), f.find(b.out)
		b.charge = int64(b.weight)
	}
	if f.catchesExceptions || len(f.blocks) < 2 {
		return // an exception leaves a block in its middle
	}
	t.reset(len(f.parent))
	t.sort(f.blocks)
	for _, i := range t.order {
		b := &f.blocks[i]
		if b.check || b.trap || !t.connect(b.in, b.out) {
			continue
		}
		t.link(b.in, b.out, -int64(b.weight))
		t.link(b.out, b.in, int64(b.weight))
	}
	t.setAhead(outside)
	for i := range f.blocks {
		t.setAhead(f.blocks[i].in)
	}
	for i := range t.ahead {
		if t.ahead[i] > maxAhead {
			return // keep the charge of each block at its weight
		}
	}
	for i := range f.blocks {
		b := &f.blocks[i]
		if b.trap {
			b.charge = max(0, int64(b.weight)-t.ahead[b.in])
			continue
		}
		b.charge = int64(b.weight) + t.ahead[b.out] - t.ahead[b.in]
	}
}

func (t *tree) reset(ports int) {
	t.order, t.links, t.stack = t.order[:0], t.links[:0], t.stack[:0]
	t.parent, t.firstLink, t.ahead, t.seen = t.parent[:0], t.firstLink[:0], t.ahead[:0], t.seen[:0]
	for p := range ports {
		t.parent = append(t.parent, int32(p))
		t.firstLink = append(t.firstLink, -1)
		t.ahead = append(t.ahead, 0)
		t.seen = append(t.seen, false)
	}
}

// sort orders the blocks by frequency, the highest first, and among equals the later ones first,
// so that charges come early.
func (t *tree) sort(blocks []block) {
	bucket := func(b *block) int { return freqRange - 1 - int(min(max(b.freq+freqRange/4, 0), freqRange-1)) }
	clear(t.buckets[:])
	for i := range blocks {
		t.buckets[bucket(&blocks[i])+1]++
		t.order = append(t.order, 0)
	}
	for i := range freqRange {
		t.buckets[i+1] += t.buckets[i]
	}
	for i := len(blocks) - 1; i >= 0; i-- {
		k := bucket(&blocks[i])
		t.order[t.buckets[k]] = int32(i)
		t.buckets[k]++
	}
}

// connect joins the parts of the tree that hold two ports, and reports whether they differed.
func (t *tree) connect(p, q int32) bool {
	find := func(p int32) int32 {
		for t.parent[p] != p {
			t.parent[p] = t.parent[t.parent[p]]
			p = t.parent[p]
		}
		return p
	}
	p, q = find(p), find(q)
	t.parent[p] = q
	return p != q
}

// link adds an edge of the tree between two ports, in one direction.
func (t *tree) link(from, to int32, gain int64) {
	t.links = append(t.links, link{to: to, next: t.firstLink[from], gain: gain})
	t.firstLink[from] = int32(len(t.links) - 1)
}

// setAhead sets ahead for the part of the tree that contains a port, so that its smallest value is
// 0; the port outside stays at 0.
func (t *tree) setAhead(from int32) {
	if t.seen[from] {
		return
	}
	t.seen[from] = true
	t.stack = append(t.stack[:0], from)
	lowest := int64(0)
	for i := 0; i < len(t.stack); i++ {
		p := t.stack[i]
		lowest = min(lowest, t.ahead[p])
		for l := t.firstLink[p]; l >= 0; l = t.links[l].next {
			if q := t.links[l].to; !t.seen[q] {
				t.seen[q] = true
				t.ahead[q] = t.ahead[p] + t.links[l].gain
				t.stack = append(t.stack, q)
			}
		}
	}
	for _, p := range t.stack {
		if p != outside {
			t.ahead[p] -= lowest
		}
	}
}
