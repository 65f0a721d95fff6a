package main

import (
	"container/heap"

	"github.com/stockade-dev/stockade/guests/git/repo"
)

// byDate is a heap of commits, the latest first; of the same second the first that
// was added.
type byDate struct {
	list []dated
	n    int
}

type dated struct {
	commit *repo.Link
	when   int64
	n      int
}

func (h *byDate) Len() int { return len(h.list) }
func (h *byDate) Less(i, j int) bool {
	a, b := &h.list[i], &h.list[j]
	return a.when > b.when || a.when == b.when && a.n < b.n
}
func (h *byDate) Swap(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *byDate) Push(x any)    { h.list = append(h.list, x.(dated)) }
func (h *byDate) Pop() any {
	last := h.list[len(h.list)-1]
	h.list[len(h.list)-1] = dated{}
	h.list = h.list[:len(h.list)-1]
	return last
}

func (h *byDate) add(c *repo.Link) {
	h.n++
	heap.Push(h, dated{c, c.When, h.n})
}

func (h *byDate) next() *repo.Link { return heap.Pop(h).(dated).commit }

const (
	// maxWalk is how many commits are looked at in a history of which few are shown.
	maxWalk = 100_000
	// maxMarked is how many are looked at to compare two histories.
	maxMarked = 50_000
	// maxCounted is how many are counted for a branch and the one at origin.
	maxCounted = 5000
)

// walk goes through history, the latest commit first.
type walk struct {
	*call
	queue   byDate
	seen    map[repo.ID]bool
	without map[repo.ID]bool       // commits that are not wanted, nor is what comes before them
	entries map[repo.ID]repo.Entry // of trees: what they have at the path of the call
	looked  int
	cut     bool // there may be more
}

func (c *call) walk(from *repo.Link) *walk {
	w := &walk{call: c, seen: map[repo.ID]bool{from.ID: true}, entries: map[repo.ID]repo.Entry{}}
	w.queue.add(from)
	return w
}

// next returns the next commit that changes what the call is about, or nil.
func (w *walk) next() (*repo.Link, error) {
	for w.queue.Len() > 0 {
		c := w.queue.next()
		if w.looked++; w.looked > maxWalk {
			w.cut = true
			return nil, nil
		}
		if w.without[c.ID] {
			continue
		}
		parents := make([]*repo.Link, 0, len(c.Parents))
		for _, id := range c.Parents {
			p, err := w.Link(id)
			if err != nil {
				return nil, err
			}
			parents = append(parents, p)
		}
		parents, shown, err := w.simplify(c, parents)
		if err != nil {
			return nil, err
		}
		for _, p := range parents {
			if !w.seen[p.ID] {
				w.seen[p.ID] = true
				w.queue.add(p)
			}
		}
		if shown {
			return c, nil
		}
	}
	return nil, nil
}

// simplify follows only a parent that has the path as it is in the commit, if there is
// one; the commit is then not shown.
func (w *walk) simplify(c *repo.Link, parents []*repo.Link) ([]*repo.Link, bool, error) {
	if w.only == "" {
		return parents, true, nil
	}
	own, err := w.at(c)
	if err != nil {
		return nil, false, err
	}
	for _, p := range parents {
		if p.Tree == c.Tree {
			return []*repo.Link{p}, false, nil
		}
		theirs, err := w.at(p)
		if err != nil {
			return nil, false, err
		}
		if theirs == own {
			return []*repo.Link{p}, false, nil
		}
	}
	return parents, len(parents) > 0 || own.Mode != 0, nil
}

// at is what a commit has at the path of the call.
func (w *walk) at(c *repo.Link) (repo.Entry, error) {
	if e, ok := w.entries[c.Tree]; ok {
		return e, nil
	}
	e, _, err := w.Lookup(c.Tree, w.only)
	if err == nil {
		const most = 1000
		if len(w.entries) == most {
			clear(w.entries)
		}
		w.entries[c.Tree] = e
	}
	return e, err
}

// Marks of commits.
const (
	left = 1 << iota
	right
	inQueue
)

// marker marks what two commits lead to, the latest first.
type marker struct {
	*call
	queue byDate
	marks map[repo.ID]uint8
	alone int // commits in the queue that only one leads to
}

func (c *call) marker(a, b *repo.Link) *marker {
	m := &marker{call: c, marks: map[repo.ID]uint8{}}
	m.mark(a, left)
	m.mark(b, right)
	return m
}

func both(mark uint8) bool { return mark&(left|right) == left|right }

func (m *marker) mark(c *repo.Link, mark uint8) {
	was := m.marks[c.ID]
	now := was | mark
	if was&inQueue == 0 {
		if now == was {
			return
		}
		m.queue.add(c)
		now |= inQueue
		was = left | right // it was not counted
	}
	if m.marks[c.ID] = now; !both(was) {
		m.alone--
	}
	if !both(now) {
		m.alone++
	}
}

// next returns the next commit with its marks, until all that is left is what both
// lead to. What was returned can be marked again, if dates are wrong.
func (m *marker) next() (*repo.Link, uint8, error) {
	if m.alone == 0 || m.queue.Len() == 0 {
		return nil, 0, nil
	}
	c := m.queue.next()
	mark := m.marks[c.ID] &^ inQueue
	m.marks[c.ID] = mark
	if !both(mark) {
		m.alone--
	}
	for _, id := range c.Parents {
		p, err := m.Link(id)
		if err != nil {
			return nil, 0, err
		}
		m.mark(p, mark)
	}
	return c, mark, nil
}

// aheadBehind counts the commits that only one of two leads to.
func (c *call) aheadBehind(a, b repo.ID) (ahead, behind int, known bool) {
	if a == b {
		return 0, 0, true
	}
	m, err := c.markerOf(a, b)
	if err != nil {
		return 0, 0, false
	}
	for range maxCounted {
		commit, _, err := m.next()
		if err != nil {
			return 0, 0, false
		}
		if commit == nil {
			for _, mark := range m.marks {
				switch mark & (left | right) {
				case left:
					ahead++
				case right:
					behind++
				}
			}
			return ahead, behind, true
		}
	}
	return 0, 0, false
}

func (c *call) markerOf(a, b repo.ID) (*marker, error) {
	x, err := c.Link(a)
	if err != nil {
		return nil, err
	}
	y, err := c.Link(b)
	if err != nil {
		return nil, err
	}
	return c.marker(x, y), nil
}

// mergeBase is a commit that both lead to, the latest; nil if there is none.
func (c *call) mergeBase(a, b repo.ID) (*repo.Link, error) {
	if a == b {
		return c.Link(a)
	}
	m, err := c.markerOf(a, b)
	if err != nil {
		return nil, err
	}
	for range maxMarked {
		commit, mark, err := m.next()
		if err != nil {
			return nil, err
		}
		if commit == nil {
			break
		}
		if both(mark) {
			return commit, nil
		}
	}
	for m.queue.Len() > 0 {
		if commit := m.queue.next(); both(m.marks[commit.ID]) {
			return commit, nil
		}
	}
	if m.alone > 0 {
		return nil, repo.TooLarge("the two differ by more than %d commits, and what both come from was not found; A..B compares them", maxMarked)
	}
	return nil, nil
}

// exclude has a walk leave out what a commit leads to.
func (w *walk) exclude(from, to *repo.Link) error {
	m := w.marker(to, from)
	w.without = map[repo.ID]bool{}
	for n := 0; ; n++ {
		commit, _, err := m.next()
		if err != nil {
			return err
		}
		if commit == nil {
			break
		}
		if n == maxMarked {
			w.note("the histories differ by more than %d commits; older ones may be listed although both have them", maxMarked)
			break
		}
	}
	for id, mark := range m.marks {
		if mark&right != 0 {
			w.without[id] = true
		}
	}
	return nil
}
