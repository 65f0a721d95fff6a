package git

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
)

// walk visits the commits of a history, from the newest to the oldest.
type walk struct {
	d      *dir
	seen   map[string]*step
	queue  []*step // sorted by compareSteps; the step at its end is visited next
	wanted int     // number of steps in queue whose stop is not set
}

// step is a commit of a walk.
type step struct {
	*commit
	stop   bool // the commit and all that it reaches do not belong to the result
	queued bool
}

// compareSteps compares two steps by the order of walk.queue: the newest comes last.
func compareSteps(a, b *step) int {
	switch {
	case a.when != b.when:
		return cmp.Compare(a.when, b.when)
	case a.stop != b.stop && b.stop:
		return -1
	case a.stop != b.stop:
		return 1
	}
	return cmp.Compare(b.id, a.id)
}

// commitsExcept lists the commits that are reachable from the ids in from but not from those
// that stops returns, at most limit. all is false if the list may be incomplete. With wrong
// commit dates it may also list commits that are reachable from both, but leaves out none.
func (d *dir) commitsExcept(ctx context.Context, from map[string]bool, stops func() map[string]bool, limit int) (found []*commit, all bool) {
	if len(from) == 0 {
		return nil, true
	}
	w := &walk{d: d, seen: map[string]*step{}}
	all = true
	for _, id := range slices.Sorted(maps.Keys(from)) {
		all = w.add(id, false) && all
	}
	for id := range stops() {
		all = w.add(id, true) && all
	}
	var passed []*step
	oldest := int64(math.MaxInt64)
	for last := len(w.queue) - 1; last >= 0 && (w.wanted > 0 || w.queue[last].when >= oldest) && ctx.Err() == nil; last = len(w.queue) - 1 {
		s := w.queue[last]
		w.queue, s.queued = w.queue[:last], false
		if !s.stop {
			w.wanted--
			if len(passed) == limit {
				all = false
				break
			}
			passed, oldest = append(passed, s), min(oldest, s.when)
		}
		for _, id := range s.parents {
			all = w.add(id, s.stop) && all
		}
	}
	for _, s := range passed {
		if !s.stop {
			found = append(found, s.commit)
		}
	}
	return found, all && ctx.Err() == nil
}

// add queues a commit, unless it was queued before in the same role or as a stop. It returns
// false if the commit cannot be read and the result may depend on it.
func (w *walk) add(id string, stop bool) bool {
	s, known := w.seen[id]
	if !known {
		c, err := w.d.store.commit(id)
		if err != nil {
			return stop && !errors.Is(err, errTooLong) || errors.Is(err, errNoCommit) || w.d.shallow[id]
		}
		if s, known = w.seen[c.id]; !known {
			s = &step{commit: c}
		}
		w.seen[id], w.seen[c.id] = s, s
	}
	if known && (s.stop || !stop) {
		return true
	}
	if s.queued { // its place in the queue changes
		at, _ := slices.BinarySearchFunc(w.queue, s, compareSteps)
		w.queue = slices.Delete(w.queue, at, at+1)
		w.wanted--
	}
	if s.stop = stop; !stop {
		w.wanted++
	}
	at, _ := slices.BinarySearchFunc(w.queue, s, compareSteps)
	w.queue, s.queued = slices.Insert(w.queue, at, s), true
	return true
}

// between lists at most limit of the commits that are reachable from the commit id but not
// from the commit not. all is false if the list may be incomplete.
func (d *dir) between(ctx context.Context, not, id string, limit int) (found []*commit, all bool) {
	return d.commitsExcept(ctx, map[string]bool{id: true}, func() map[string]bool { return map[string]bool{not: true} }, limit)
}

// reach returns those commits of among that are reachable from an id through commits of
// among. seen holds all ids on the way, including the id and parents outside of among.
func reach(among []*commit, from string) (reached []*commit, seen map[string]bool) {
	known := map[string]*commit{}
	for _, c := range among {
		known[c.id] = c
	}
	seen = map[string]bool{from: true}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		c := known[queue[0]]
		if c == nil {
			continue
		}
		for _, p := range c.parents {
			if !seen[p] {
				seen[p] = true
				queue = append(queue, p)
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(among), func(c *commit) bool { return !seen[c.id] }), seen
}
