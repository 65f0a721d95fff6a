package textdiff

// group is a run of changed lines, from start to before end. There is an empty one between any
// two unchanged lines.
type group struct{ start, end int }

func (s *side) first() (g group) {
	for s.isChanged(g.end) {
		g.end++
	}
	return g
}

// next replaces g by the next group. It returns false if there is none.
func (s *side) next(g *group) bool {
	if g.end == s.Len() {
		return false
	}
	g.start = g.end + 1
	for g.end = g.start; s.isChanged(g.end); g.end++ {
	}
	return true
}

func (s *side) previous(g *group) {
	g.end = g.start - 1
	for g.start = g.end; s.isChanged(g.start - 1); g.start-- {
	}
}

// slideDown moves a group down by a line if this gives the same text, and joins it with a
// group that it then touches. It returns false if the group cannot move.
func (s *side) slideDown(g *group) bool {
	if g.end >= s.Len() || !s.sameLine(g.start, g.end) {
		return false
	}
	s.unmarkChanged(g.start)
	s.markChanged(g.end)
	g.start++
	g.end++
	for s.isChanged(g.end) {
		g.end++
	}
	return true
}

// slideUp is slideDown in the other direction.
func (s *side) slideUp(g *group) bool {
	if g.start == 0 || !s.sameLine(g.start-1, g.end-1) {
		return false
	}
	g.start--
	g.end--
	s.markChanged(g.start)
	s.unmarkChanged(g.end)
	for s.isChanged(g.start - 1) {
		g.start--
	}
	return true
}

// compact moves the groups of changed lines to the places that people expect: beside a group
// of the other text, or else to the place with the best cutScore.
func (s *side) compact(other *side) {
	g, o := s.first(), other.first()
	for {
		if g.end > g.start {
			s.placeGroup(other, &g, &o)
		}
		// Skip the lines where neither text has a group.
		n, x, y := 0, s.changed[g.end+2:], other.changed[o.end+2:]
		for n < len(x) && n < len(y) && !x[n] && !y[n] {
			n++
		}
		if n > 0 {
			g.end, o.end = g.end+n, o.end+n
			g.start, o.start = g.end, o.end
		}
		if !s.next(&g) {
			return
		}
		other.next(&o)
	}
}

// placeGroup moves one group to its best place. o is the group of the other text at the same
// place.
func (s *side) placeGroup(other *side, g, o *group) {
	size, highest, beside := 0, 0, -1
	for size != g.end-g.start {
		size = g.end - g.start
		beside = -1
		for s.slideUp(g) {
			other.previous(o)
		}
		highest = g.end
		if o.end > o.start {
			beside = g.end
		}
		for s.slideDown(g) {
			other.next(o)
			if o.end > o.start {
				beside = g.end
			}
		}
	}
	switch {
	case g.end == highest:
	case beside >= 0:
		for o.end == o.start {
			s.slideUp(g)
			other.previous(o)
		}
	default:
		const farthest = 100
		best, score := -1, cutScore{}
		for end := max(highest, g.end-size-1, g.end-farthest); end <= g.end; end++ {
			var here cutScore
			here.add(s.cutAt(end))
			here.add(s.cutAt(end - size))
			if best < 0 || !score.better(here) {
				best, score = end, here
			}
		}
		for g.end > best {
			s.slideUp(g)
			other.previous(o)
		}
	}
}

// cut describes the surroundings of a place between two lines. An indent is -1 if there is no
// such line, or if the line behind the place is blank.
type cut struct {
	end                               bool // set if the place is the end of the text
	indent, indentBefore, indentAfter int  // columns: the line behind the place, the nearest nonblank lines before and after it
	blanks, blanksAfter               int  // number of blank lines before the place, and behind its line
}

const (
	maxIndent = 200 // columns of an indent; a larger one counts as this
	maxBlanks = 20  // blank lines that are counted
)

// indentOf returns the indent of a line in columns, at most maxIndent; -1: the line is blank.
func indentOf(line []byte) int {
	n := 0
	for _, c := range line {
		switch c {
		case ' ':
			n++
		case '\t':
			n += 8 - n%8
		case '\n', '\v', '\f', '\r':
		default:
			return n
		}
		if n >= maxIndent {
			return maxIndent
		}
	}
	return -1
}

// cutAt returns the surroundings of the place before line at.
func (s *side) cutAt(at int) (c cut) {
	c.indent, c.indentBefore, c.indentAfter = -1, -1, -1
	if at >= s.Len() {
		c.end = true
	} else {
		c.indent = indentOf(s.Line(at))
	}
	for i := at - 1; i >= 0; i-- {
		if c.indentBefore = indentOf(s.Line(i)); c.indentBefore >= 0 {
			break
		}
		if c.blanks++; c.blanks == maxBlanks {
			c.indentBefore = 0
			break
		}
	}
	for i := at + 1; i < s.Len(); i++ {
		if c.indentAfter = indentOf(s.Line(i)); c.indentAfter >= 0 {
			break
		}
		if c.blanksAfter++; c.blanksAfter == maxBlanks {
			c.indentAfter = 0
			break
		}
	}
	return c
}

// cutScore is the cost of cutting a text at some places. Less is better.
type cutScore struct{ indent, penalty int }

func (s cutScore) better(than cutScore) bool {
	const indentWeight = 60
	by := 0
	if s.indent < than.indent {
		by = -1
	} else if s.indent > than.indent {
		by = 1
	}
	return indentWeight*by+s.penalty-than.penalty < 0
}

// add adds the cost of a cut. The weights are git's, whose authors let people judge diffs.
func (s *cutScore) add(c cut) {
	if c.indentBefore < 0 && c.blanks == 0 {
		s.penalty++ // the start of the text
	}
	if c.end {
		s.penalty += 21
	}
	after := 0
	if c.indent < 0 {
		after = 1 + c.blanksAfter
	}
	blanks := c.blanks + after
	s.penalty += -30*blanks + 6*after
	indent := c.indent
	if indent < 0 {
		indent = c.indentAfter
	}
	s.indent += indent
	pick := func(alone, withBlanks int) {
		if blanks > 0 {
			alone = withBlanks
		}
		s.penalty += alone
	}
	switch {
	case indent < 0, c.indentBefore < 0, indent == c.indentBefore:
	case indent > c.indentBefore:
		pick(-4, 10)
	case c.indentAfter >= 0 && c.indentAfter > indent:
		pick(24, 17)
	default:
		pick(23, 17)
	}
}
