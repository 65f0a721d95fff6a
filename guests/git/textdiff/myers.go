package textdiff

import (
	"math"
	"math/bits"
)

// side is one of the texts, with what of it differs.
type side struct {
	*Text
	changed []bool // of each line; one more at both ends, which is false
	// What is compared: the lines that are in both texts, each as a number that the
	// same line has in the other text too.
	class []int32
	line  []int32 // which one it is
}

func (s *side) init(t *Text) {
	s.Text = t
	s.changed = make([]bool, t.Len()+2)
}

func (s *side) is(i int) bool      { return s.changed[i+1] }
func (s *side) set(i int)          { s.changed[i+1] = true }
func (s *side) clear(i int)        { s.changed[i+1] = false }
func (s *side) same(i, j int) bool { return same(s.Text, i, s.Text, j) }

type differ struct {
	a, b     side
	check    func() error
	forward  []int32 // by diagonal: how far in a one gets from the start
	backward []int32 // and from the end
	zero     int     // where diagonal 0 is
	most     int     // edits that are tried before the search is content with less
	steps    int
}

func (d *differ) compare() error {
	n, m := d.a.Len(), d.b.Len()
	bytes := common(d.a.data, d.b.data)
	head := 0
	for head < n && head < m && d.a.starts[head+1] == d.b.starts[head+1] && int(d.a.starts[head+1]) <= bytes {
		head++
	}
	tail := 0
	for tail < n-head && tail < m-head && same(d.a.Text, n-1-tail, d.b.Text, m-1-tail) {
		tail++
	}
	d.classify(head, n-tail, m-tail)
	diagonals := len(d.a.class) + len(d.b.class) + 3
	room := make([]int32, 2*diagonals)
	d.forward, d.backward = room[:diagonals], room[diagonals:]
	d.zero = len(d.b.class) + 1
	const least = 256
	d.most = max(least, root(diagonals))
	return d.split(0, len(d.a.class), 0, len(d.b.class), false)
}

// root is a power of two near the square root.
func root(n int) int { return 1 << ((bits.Len(uint(n)) + 1) / 2) }

// classes gives lines numbers.
type classes struct {
	a, b  *Text
	table []int32 // by sum: a class and 1, or 0
	first []int32 // of each class the first line; those of b come behind those of a
	sums  []uint32
	inA   []int32 // how many lines of each text are of it
	inB   []int32
}

func (c *classes) line(i int32) (*Text, int) {
	if n := c.a.Len(); int(i) >= n {
		return c.b, int(i) - n
	}
	return c.a, int(i)
}

// find returns the class of a line, or else -1 and where it belongs in the table.
func (c *classes) find(line int32) (class int32, at int) {
	t, i := c.line(line)
	sum, mask := t.sums[i], len(c.table)-1
	for at = int(sum) & mask; c.table[at] != 0; at = (at + 1) & mask {
		class = c.table[at] - 1
		if c.sums[class] != sum {
			continue
		}
		if other, j := c.line(c.first[class]); same(other, j, t, i) {
			return class, at
		}
	}
	return -1, at
}

// of returns the class of a line, which it makes if there is none.
func (c *classes) of(line int32) int32 {
	class, at := c.find(line)
	if class >= 0 {
		return class
	}
	t, i := c.line(line)
	c.first, c.sums = append(c.first, line), append(c.sums, t.sums[i])
	c.inA, c.inB = append(c.inA, 0), append(c.inB, 0)
	c.table[at] = int32(len(c.first))
	if 2*len(c.first) > len(c.table) {
		c.table = make([]int32, 2*len(c.table))
		for class, line := range c.first {
			_, at := c.find(line)
			c.table[at] = int32(class) + 1
		}
	}
	return int32(len(c.first)) - 1
}

// classify leaves out what cannot be the same: lines that only one text has.
func (d *differ) classify(head, aEnd, bEnd int) {
	if head == aEnd || head == bEnd {
		for i := head; i < aEnd; i++ {
			d.a.set(i)
		}
		for i := head; i < bEnd; i++ {
			d.b.set(i)
		}
		return
	}
	const most = 1 << 14 // at first
	c := classes{a: d.a.Text, b: d.b.Text, table: make([]int32, 2<<bits.Len(uint(min(aEnd-head, most))))}
	ofA, ofB := make([]int32, aEnd-head), make([]int32, bEnd-head)
	for i := range ofA {
		ofA[i] = c.of(int32(head + i))
		c.inA[ofA[i]]++
	}
	for i := range ofB {
		ofB[i] = c.of(int32(d.a.Len() + head + i))
		c.inB[ofB[i]]++
	}
	// Of a line, those count too that stand where both texts are the same.
	for i := range d.a.Len() {
		if head <= i && i < aEnd {
			continue
		}
		if class, _ := c.find(int32(i)); class >= 0 {
			c.inA[class]++
			c.inB[class]++
		}
	}
	d.a.choose(ofA, c.inB, head)
	d.b.choose(ofB, c.inA, head)
}

// choose takes the lines that are compared; of are their classes, and other is how
// often the other text has each class.
func (s *side) choose(of, other []int32, head int) {
	limit := min(root(s.Len()), 1024)
	kind := make([]byte, len(of))
	for i, c := range of {
		switch n := int(other[c]); {
		case n == 0:
			kind[i] = never
		case n >= limit:
			kind[i] = often
		default:
			kind[i] = some
		}
	}
	s.class, s.line = make([]int32, 0, len(of)), make([]int32, 0, len(of))
	for i, k := range kind {
		if k == never || k == often && noise(kind, i) {
			s.set(head + i)
			continue
		}
		s.class = append(s.class, of[i])
		s.line = append(s.line, int32(head+i))
	}
}

// How often the other text has a line.
const (
	never = iota
	some
	often
)

// noise reports whether a line that the other text has many times, such as a blank
// one, stands among lines that it does not have: to compare it would only scatter
// the difference.
func noise(kind []byte, i int) bool {
	const window, share = 100, 4
	look := func(step int) (nevers, oftens int) {
		oftens = 1 // the line itself, on both sides
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

// split compares a part of both texts, which it cuts at a place that a shortest
// script of edits goes through.
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
				d.a.set(int(d.a.line[a]))
			}
			for ; b < bEnd; b++ {
				d.b.set(int(d.b.line[b]))
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

// middle goes from both ends at once until the ways meet. If that takes too many
// edits it takes a place that is far along; the part before it, or behind it, is
// then compared without this shortcut.
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
		// A way that has got far, and ends in a long run of the same lines, will do.
		if snake && cost > tried {
			best := 0
			for k := fhigh; k >= flow; k -= 2 {
				i := int(fwd[z+k])
				j := i - k
				v := i - a + j - b - max(k-fmid, fmid-k)
				if v > worth*cost && v > best && a+longSnake <= i && i < aEnd && b+longSnake <= j && j < bEnd && run(x, y, i, j, -1, longSnake) {
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
				if v > worth*cost && v > best && a < i && i <= aEnd-longSnake && b < j && j <= bEnd-longSnake && run(x, y, i, j, 1, longSnake) {
					best, at, bt = v, i, j
				}
			}
			if best > 0 {
				return at, bt, false, true, nil
			}
		}
		if cost >= d.most {
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

// run reports whether so many lines on one side of a place are the same.
func run(x, y []int32, i, j, step, n int) bool {
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
