package main

import (
	"container/heap"
	"strings"

	"github.com/stockade-dev/stockade/guests/git/repo"
)

// byDate is a heap of commits, the latest first; among commits of one second, the first added
// one.
type byDate struct {
	list []dated
	n    int // number of commits that were added so far
}

// dated is a commit in a byDate.
type dated struct {
	commit *repo.CommitNode
	when   int64 // time of the commit, in seconds since 1970
	n      int   // number of the commit in the order of adding
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

func (h *byDate) add(c *repo.CommitNode) {
	h.n++
	heap.Push(h, dated{c, c.When, h.n})
}

func (h *byDate) next() *repo.CommitNode { return heap.Pop(h).(dated).commit }

// Limits for the commits that one call reads, because it holds something of each in memory.
var (
	maxWalk   = 250_000 // commits that one walk reads; it then ends early
	maxMarked = 150_000 // commits that are read to compare two histories; beyond, see mergeBase and exclude
)

// maxCounted limits the commits that are read to count by how many commits a branch and its
// upstream differ; beyond it, the numbers are not known.
const maxCounted = 5000

// walk goes through a history, the latest commit first.
type walk struct {
	*call
	queue        byDate
	seen         map[repo.ID]bool       // commits that were put into the queue
	marks        map[repo.ID]uint8      // marks of a range: commits marked right are left out; nil: no range
	partlyMarked bool                   // set if marking took too much work, so that some marks are missing
	excluded     []string               // words of the revision that the range leaves out, such as ^A
	entries      map[repo.ID]repo.Entry // entries at the path of the call, by tree
	looked       int                    // number of commits that were read
	truncated    bool                   // set if the walk has ended early, and there may be more commits
	oldest       int64                  // time of the commit that was read last, in seconds since 1970
}

func (c *call) newWalk(from ...*repo.CommitNode) *walk {
	w := &walk{call: c, seen: map[repo.ID]bool{}, entries: map[repo.ID]repo.Entry{}}
	for _, l := range from {
		w.add(l)
	}
	return w
}

func (w *walk) add(l *repo.CommitNode) {
	if !w.seen[l.ID] {
		w.seen[l.ID] = true
		w.queue.add(l)
	}
}

// next returns the next commit, or nil at the end. Commits that do not change the call's path
// are left out. If the walk takes too much work, it ends early and sets truncated; the queue
// then holds the rest.
func (w *walk) next() (*repo.CommitNode, error) {
	for w.queue.Len() > 0 {
		c := w.queue.next()
		mark := w.marks[c.ID]
		if mark&right != 0 {
			continue
		}
		if w.looked == maxWalk || w.partlyMarked && mark&parentsMarked == 0 {
			w.queue.add(c)
			w.truncated = true
			return nil, nil
		}
		parents, shown, err := w.parentsOf(c)
		if repo.IsSpent(err) {
			w.queue.add(c)
			w.truncated = true
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		w.looked++
		w.oldest = c.When
		for _, p := range parents {
			w.add(p)
		}
		if shown {
			return c, nil
		}
	}
	return nil, nil
}

// parentsOf returns the parents that the walk follows, and whether the commit is shown.
func (w *walk) parentsOf(c *repo.CommitNode) ([]*repo.CommitNode, bool, error) {
	if w.KnownUnchanged(c, w.pathFilter) {
		p, err := w.Parent(c, 0)
		return []*repo.CommitNode{p}, false, err
	}
	parents := make([]*repo.CommitNode, 0, len(c.Parents))
	for i := range c.Parents {
		p, err := w.Parent(c, i)
		if err != nil {
			return nil, false, err
		}
		parents = append(parents, p)
	}
	return w.simplify(c, parents)
}

// restRevision returns a revision with which another call of log goes on after a truncated
// walk; "" if it would be too long. It may empty the queue.
func (w *walk) restRevision() string {
	const maxNames = 10
	if w.queue.Len() > maxNames {
		return ""
	}
	names := w.excluded
	for w.queue.Len() > 0 {
		if c := w.queue.next(); w.marks[c.ID]&right == 0 {
			names = append(names, w.Short(c.ID))
		}
	}
	return strings.Join(names, " ")
}

// simplify is parentsOf by the files of the commits: if a parent has the same entry at the
// path of the call as the commit, only this parent is followed, and the commit is not shown.
// Without a path all parents are followed, and it is shown.
func (w *walk) simplify(c *repo.CommitNode, parents []*repo.CommitNode) ([]*repo.CommitNode, bool, error) {
	if w.pathFilter == "" {
		return parents, true, nil
	}
	own, err := w.entryAt(c)
	if err != nil {
		return nil, false, err
	}
	for _, p := range parents {
		if p.Tree == c.Tree {
			return []*repo.CommitNode{p}, false, nil
		}
		theirs, err := w.entryAt(p)
		if err != nil {
			return nil, false, err
		}
		if theirs == own {
			return []*repo.CommitNode{p}, false, nil
		}
	}
	return parents, len(parents) > 0 || own.Mode != 0, nil
}

// entryAt returns the entry of a commit at the path of the call; zero: there is none.
func (w *walk) entryAt(c *repo.CommitNode) (repo.Entry, error) {
	if e, ok := w.entries[c.Tree]; ok {
		return e, nil
	}
	e, _, err := w.Lookup(c.Tree, w.pathFilter)
	if err == nil {
		const maxEntries = 1000
		if len(w.entries) == maxEntries {
			clear(w.entries)
		}
		w.entries[c.Tree] = e
	}
	return e, err
}

// Marks of commits.
const (
	left          = 1 << iota // the left side has the commit in its history
	right                     // the right side has the commit in its history
	inQueue                   // the commit is in the queue
	parentsMarked             // the commit was in the queue, and its parents have its marks
)

// marker goes through the histories of two sides, the latest commit first, and marks each
// commit with the sides that lead to it.
type marker struct {
	*call
	queue    byDate
	marks    map[repo.ID]uint8
	oneSided int // number of commits in the queue to which only one side leads so far
}

// newMarker returns a marker whose left side begins with commits a, and its right with b.
func (c *call) newMarker(a, b []*repo.CommitNode) *marker {
	m := &marker{call: c, marks: map[repo.ID]uint8{}}
	for _, l := range a {
		m.mark(l, left)
	}
	for _, l := range b {
		m.mark(l, right)
	}
	return m
}

// isCommon reports whether both sides lead to a commit with this mark.
func isCommon(mark uint8) bool { return mark&(left|right) == left|right }

// mark adds a mark to a commit, and puts the commit into the queue if the mark is new.
func (m *marker) mark(c *repo.CommitNode, mark uint8) {
	was := m.marks[c.ID]
	now := was&^parentsMarked | mark
	if was&inQueue == 0 {
		if now == was&^parentsMarked {
			return
		}
		m.queue.add(c)
		now |= inQueue
		was = left | right // oneSided did not count it
	}
	if m.marks[c.ID] = now; !isCommon(was) {
		m.oneSided--
	}
	if !isCommon(now) {
		m.oneSided++
	}
}

// next returns the next commit with its marks, or nil once both sides lead to all commits in
// the queue. If dates are wrong, a returned commit can get further marks later.
func (m *marker) next() (*repo.CommitNode, uint8, error) {
	if m.oneSided == 0 || m.queue.Len() == 0 {
		return nil, 0, nil
	}
	c := m.queue.next()
	parents := make([]*repo.CommitNode, len(c.Parents))
	for i := range parents {
		p, err := m.Parent(c, i)
		if err != nil {
			return nil, 0, err
		}
		parents[i] = p
	}
	mark := m.marks[c.ID] &^ inQueue
	m.marks[c.ID] = mark | parentsMarked
	if !isCommon(mark) {
		m.oneSided--
	}
	for _, p := range parents {
		m.mark(p, mark&(left|right))
	}
	return c, mark, nil
}

// aheadBehind counts the commits to which only a leads, and those to which only b leads. known
// is false if there are too many, or if one cannot be read.
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
	x, err := c.CommitNode(a)
	if err != nil {
		return nil, err
	}
	y, err := c.CommitNode(b)
	if err != nil {
		return nil, err
	}
	return c.newMarker([]*repo.CommitNode{x}, []*repo.CommitNode{y}), nil
}

// mergeBase returns the latest commit to which both a and b lead; nil: there is none. Beyond
// maxMarked it returns an error.
func (c *call) mergeBase(a, b repo.ID) (*repo.CommitNode, error) {
	if a == b {
		return c.CommitNode(a)
	}
	m, err := c.markerOf(a, b)
	for n := 0; err == nil; n++ {
		if n == maxMarked {
			return nil, tooFar(n)
		}
		var commit *repo.CommitNode
		var mark uint8
		if commit, mark, err = m.next(); repo.IsSpent(err) {
			return nil, tooFar(n)
		} else if err == nil && commit == nil {
			break
		}
		if err == nil && isCommon(mark) {
			return commit, nil
		}
	}
	if err != nil {
		return nil, err
	}
	for m.queue.Len() > 0 {
		if commit := m.queue.next(); isCommon(m.marks[commit.ID]) {
			return commit, nil
		}
	}
	return nil, nil
}

func tooFar(n int) error {
	return repo.TooLarge("%d commits were looked at, and what the two have in common was not found; A..B compares them, and git merge-base, run by bash, finds it", n)
}

// exclude makes w leave out all commits to which the commits from lead; w begins with the
// commits to. If marking takes too much work, or more than maxMarked commits, it sets
// w.partlyMarked.
func (w *walk) exclude(from, to []*repo.CommitNode) error {
	m := w.newMarker(to, from)
	w.marks = m.marks
	for n := 0; ; n++ {
		commit, _, err := m.next()
		if w.partlyMarked = repo.IsSpent(err) || n == maxMarked && commit != nil; w.partlyMarked {
			w.looked = 0
			return nil
		}
		if err != nil || commit == nil {
			return err
		}
	}
}
