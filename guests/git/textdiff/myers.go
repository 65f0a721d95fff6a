package textdiff

import (
	"math"
	"math/bits"
)

// side is one of the two texts, with its changed lines.
type side struct {
	*Text
	changed []bool // set for changed lines, which count from 1; false at both ends
	// class holds the compared lines, each as the number of its class, which is the same for
	// equal lines of both texts. Lines that only one text has are not compared.
	class []int32
	line  []int32 // numbers of the compared lines in the text, from 0
}

func (s *side) init(t *Text) {
	s.Text = t
	s.changed = make([]bool, t.Len()+2)
}

func (s *side) isChanged(i int) bool   { return s.changed[i+1] }
func (s *side) markChanged(i int)      { s.changed[i+1] = true }
func (s *side) unmarkChanged(i int)    { s.changed[i+1] = false }
func (s *side) sameLine(i, j int) bool { return sameLine(s.Text, i, s.Text, j) }

// differ is the state of a comparison.
type differ struct {
	a, b     side
	check    func() error
	forward  []int32 // by diagonal: the farthest line of a that a path from the start reaches
	backward []int32 // by diagonal: the nearest line of a that a path from the end reaches
	zero     int     // index of diagonal 0
	maxCost  int     // number of edits after which the search accepts a script that is not a shortest
	steps    int     // steps of the search since the last check
}

func (d *differ) compare() error {
	n, m := d.a.Len(), d.b.Len()
	bytes := common(d.a.data, d.b.data)
	head := 0
	for head < n && head < m && d.a.starts[head+1] == d.b.starts[head+1] && int(d.a.starts[head+1]) <= bytes {
		head++
	}
	tail := 0
	for tail < n-head && tail < m-head && sameLine(d.a.Text, n-1-tail, d.b.Text, m-1-tail) {
		tail++
	}
	d.classify(head, n-tail, m-tail)
	diagonals := len(d.a.class) + len(d.b.class) + 3
	room := make([]int32, 2*diagonals)
	d.forward, d.backward = room[:diagonals], room[diagonals:]
	d.zero = len(d.b.class) + 1
	const least = 256
	d.maxCost = max(least, root(diagonals))
	return d.split(0, len(d.a.class), 0, len(d.b.class), false)
}

// root returns a power of two near the square root of n.
func root(n int) int { return 1 << ((bits.Len(uint(n)) + 1) / 2) }

// classes numbers the different lines of both texts.
type classes struct {
	a, b  *Text
	list  []class
	table []int32 // hash table: position in list plus 1, by hash; 0: free
}

// class is a set of equal lines.
type class struct {
	first  int      // number of its first line; lines of b are numbered behind all lines of a
	sum    uint32   // hash of the line
	counts [2]int32 // number of its lines in each text
}

// find returns the position in list of the class of a line; -1: it has none yet. at is the
// place of the class in the table.
func (c *classes) find(t *Text, line int) (class, at int) {
	sum, mask := t.sums[line], len(c.table)-1
	for at = int(sum) & mask; c.table[at] != 0; at = (at + 1) & mask {
		class = int(c.table[at]) - 1
		k := &c.list[class]
		if k.sum != sum {
			continue
		}
		other, i := c.a, k.first
		if n := other.Len(); i >= n {
			other, i = c.b, i-n
		}
		if sameLine(other, i, t, line) {
			return class, at
		}
	}
	return -1, at
}

// add returns the classes of the lines of a text, from from to before to, and adds new ones.
// first is the number of the text's first line among the lines of both. in: 0 for a, 1 for b.
func (c *classes) add(t *Text, from, to, first, in int) []int32 {
	out := make([]int32, to-from)
	for i := range out {
		n, at := c.find(t, from+i)
		if n < 0 {
			n = len(c.list)
			c.list = append(c.list, class{first: first + from + i, sum: t.sums[from+i]})
			c.table[at] = int32(n) + 1
			if 2*n > len(c.table) {
				c.grow()
			}
		}
		c.list[n].counts[in]++
		out[i] = int32(n)
	}
	return out
}

func (c *classes) grow() {
	mask := 2*len(c.table) - 1
	c.table = make([]int32, mask+1)
	for n := range c.list {
		at := int(c.list[n].sum) & mask
		for c.table[at] != 0 {
			at = (at + 1) & mask
		}
		c.table[at] = int32(n) + 1
	}
}

// classify selects the lines to compare. The texts are equal before head, and from aEnd and
// bEnd on.
func (d *differ) classify(head, aEnd, bEnd int) {
	if head == aEnd || head == bEnd {
		for i := head; i < aEnd; i++ {
			d.a.markChanged(i)
		}
		for i := head; i < bEnd; i++ {
			d.b.markChanged(i)
		}
		return
	}
	room := min(aEnd-head, 1<<14) // grows if needed
	c := classes{a: d.a.Text, b: d.b.Text, list: make([]class, 0, room), table: make([]int32, 2<<bits.Len(uint(room)))}
	ofA := c.add(d.a.Text, head, aEnd, 0, 0)
	ofB := c.add(d.b.Text, head, bEnd, d.a.Len(), 1)
	// The counts include the equal lines at both ends of the texts. A few bits of the hash
	// rule out most lines that have no class.
	var known [1 << 10]bool
	for i := range c.list {
		known[c.list[i].sum&(1<<10-1)] = true
	}
	for i, sum := range d.a.sums {
		if !known[sum&(1<<10-1)] || head <= i && i < aEnd {
			continue
		}
		if n, _ := c.find(d.a.Text, i); n >= 0 {
			c.list[n].counts[0]++
			c.list[n].counts[1]++
		}
	}
	d.a.choose(ofA, c.list, 1, head)
	d.b.choose(ofB, c.list, 0, head)
}

// choose sets class and line to the lines to compare. of holds the classes of the lines from
// head on. other is 0 if the other text is a, and 1 if it is b.
func (s *side) choose(of []int32, classes []class, other, head int) {
	limit := min(root(s.Len()), 1024)
	kind := make([]byte, len(of))
	for i, c := range of {
		switch n := int(classes[c].counts[other]); {
		case n == 0:
			kind[i] = never
		case n >= limit:
			kind[i] = often
		default:
			kind[i] = some
		}
	}
	class, line, n := make([]int32, len(of)), make([]int32, len(of)), 0
	for i, k := range kind {
		if k == never || k == often && isNoise(kind, i) {
			s.markChanged(head + i)
			continue
		}
		class[n], line[n] = of[i], int32(head+i)
		n++
	}
	s.class, s.line = class[:n], line[:n]
}

// Numbers of times that the other text has a line.
const (
	never = iota
	some
	often
)

// isNoise reports whether line i, which the other text has often, such as a blank one, is
// among lines that the other text does not have. Comparing it would only scatter the
// difference. kind holds the kind of each line.
func isNoise(kind []byte, i int) bool {
	const window, share = 100, 4
	look := func(step int) (nevers, oftens int) {
		oftens = 1 // the line itself counts on each side
		for j := i + step; j >= 0 && j < len(kind) && max(i-j, j-i) <= window; j += step {
			switch kind[j] {
			case never:
				nevers++
			case often:
				oftens++
			default:
				return nevers, oftens
			}
		}
		return nevers, oftens
	}
	n1, o1 := look(-1)
	if n1 == 0 {
		return false
	}
	n2, o2 := look(1)
	return n2 > 0 && (o1+o2)*share < n1+n2+o1+o2
}

// split compares a part of both texts, and marks the changed lines. It divides the part at a
// point of an edit script. least is set if the script must be a shortest one.
func (d *differ) split(a, aEnd, b, bEnd int, least bool) error {
	x, y := d.a.class, d.b.class
	for {
		for a < aEnd && b < bEnd && x[a] == y[b] {
			a++
			b++
		}
		for a < aEnd && b < bEnd && x[aEnd-1] == y[bEnd-1] {
			aEnd--
			bEnd--
		}
		if a == aEnd || b == bEnd {
			for ; a < aEnd; a++ {
				d.a.markChanged(int(d.a.line[a]))
			}
			for ; b < bEnd; b++ {
				d.b.markChanged(int(d.b.line[b]))
			}
			return nil
		}
		at, bt, leastBefore, leastAfter, err := d.middle(a, aEnd, b, bEnd, least)
		if err != nil {
			return err
		}
		if err := d.split(a, at, b, bt, leastBefore); err != nil {
			return err
		}
		a, b, least = at, bt, leastAfter
	}
}

// middle searches from both ends of a part at once until the paths meet, and returns this
// point, line at of a and line bt of b. Unless least is set, it gives up after too many edits,
// and returns a point that one path has reached. leastBefore and leastAfter are the least of
// the parts before and after the point: set on the side of a path that has got there.
func (d *differ) middle(a, aEnd, b, bEnd int, least bool) (at, bt int, leastBefore, leastAfter bool, err error) {
	x, y := d.a.class, d.b.class
	lowest, highest := a-bEnd, aEnd-b
	fmid, bmid := a-b, aEnd-bEnd
	odd := (fmid-bmid)&1 != 0
	flow, fhigh, blow, bhigh := fmid, fmid, bmid, bmid
	fwd, bwd := d.forward, d.backward
	z := d.zero
	fwd[z+fmid], bwd[z+bmid] = int32(a), int32(aEnd)
	const longSnake, tried, worth = 20, 256, 4
	for cost := 1; ; cost++ {
		if d.steps += fhigh - flow + bhigh - blow + 2; d.steps > 1<<16 && d.check != nil {
			d.steps = 0
			if err := d.check(); err != nil {
				return 0, 0, false, false, err
			}
		}
		snake := false
		if flow > lowest {
			flow--
			fwd[z+flow-1] = -1
		} else {
			flow++
		}
		if fhigh < highest {
			fhigh++
			fwd[z+fhigh+1] = -1
		} else {
			fhigh--
		}
		for k := fhigh; k >= flow; k -= 2 {
			i := int(fwd[z+k+1])
			if below := int(fwd[z+k-1]); below >= i {
				i = below + 1
			}
			from := i
			j := i - k
			for i < aEnd && j < bEnd && x[i] == y[j] {
				i++
				j++
			}
			snake = snake || i-from > longSnake
			fwd[z+k] = int32(i)
			if odd && blow <= k && k <= bhigh && int(bwd[z+k]) <= i {
				return i, j, true, true, nil
			}
		}
		if blow > lowest {
			blow--
			bwd[z+blow-1] = math.MaxInt32
		} else {
			blow++
		}
		if bhigh < highest {
			bhigh++
			bwd[z+bhigh+1] = math.MaxInt32
		} else {
			bhigh--
		}
		for k := bhigh; k >= blow; k -= 2 {
			i := int(bwd[z+k-1])
			if above := int(bwd[z+k+1]) - 1; i > above {
				i = above
			}
			from := i
			j := i - k
			for i > a && j > b && x[i-1] == y[j-1] {
				i--
				j--
			}
			snake = snake || from-i > longSnake
			bwd[z+k] = int32(i)
			if !odd && flow <= k && k <= fhigh && i <= int(fwd[z+k]) {
				return i, j, true, true, nil
			}
		}
		if least {
			continue
		}
		// A path that has got far, and ends in a long run of equal lines, is good enough.
		if snake && cost > tried {
			best := 0
			for k := fhigh; k >= flow; k -= 2 {
				i := int(fwd[z+k])
				j := i - k
				v := i - a + j - b - max(k-fmid, fmid-k)
				if v > worth*cost && v > best && a+longSnake <= i && i < aEnd && b+longSnake <= j && j < bEnd && isSnake(x, y, i, j, -1, longSnake) {
					best, at, bt = v, i, j
				}
			}
			if best > 0 {
				return at, bt, true, false, nil
			}
			for k := bhigh; k >= blow; k -= 2 {
				i := int(bwd[z+k])
				j := i - k
				v := aEnd - i + bEnd - j - max(k-bmid, bmid-k)
				if v > worth*cost && v > best && a < i && i <= aEnd-longSnake && b < j && j <= bEnd-longSnake && isSnake(x, y, i, j, 1, longSnake) {
					best, at, bt = v, i, j
				}
			}
			if best > 0 {
				return at, bt, false, true, nil
			}
		}
		if cost >= d.maxCost {
			fi, fsum := 0, -1
			for k := fhigh; k >= flow; k -= 2 {
				i := min(int(fwd[z+k]), aEnd)
				j := i - k
				if j > bEnd {
					i, j = bEnd+k, bEnd
				}
				if i+j > fsum {
					fi, fsum = i, i+j
				}
			}
			bi, bsum := 0, math.MaxInt
			for k := bhigh; k >= blow; k -= 2 {
				i := max(int(bwd[z+k]), a)
				j := i - k
				if j < b {
					i, j = b+k, b
				}
				if i+j < bsum {
					bi, bsum = i, i+j
				}
			}
			if aEnd+bEnd-bsum < fsum-a-b {
				return fi, fsum - fi, true, false, nil
			}
			return bi, bsum - bi, false, true, nil
		}
	}
}

// isSnake reports whether n lines before (step -1) or behind (step 1) a point are the same.
func isSnake(x, y []int32, i, j, step, n int) bool {
	if step < 0 {
		i--
		j--
	}
	for ; n > 0; n-- {
		if x[i] != y[j] {
			return false
		}
		i += step
		j += step
	}
	return true
}
