package git

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
)

// walk is a walk through a history, from the newest commits to the oldest.
type walk struct {
	d      *dir
	seen   map[string]*step
	queue  []*step // sorted by later: the next one is the last
	wanted int     // how many in the queue are wanted
}

// step is a commit that a walk has come to.
type step struct {
	*commit
	stop   bool // neither it nor its history is wanted
	queued bool
}

// compareSteps compares two steps by the order of the walk: the newest is the last.
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

// commitsExcept lists up to most commits that can be reached from the ids in from and not from those of
// stops. all reports whether the list is complete. Where commit dates are wrong, it may list some
// that can be reached from both; it leaves out none.
func (d *dir) commitsExcept(ctx context.Context, from map[string]bool, stops func() map[string]bool, most int) (found []*commit, all bool) {
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
			if len(passed) == most {
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

// add queues a commit. It returns false if the commit cannot be read and the result needs it.
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

// between lists up to most commits that can be reached from id, but not from the id not.
func (d *dir) between(ctx context.Context, not, id string, most int) (found []*commit, all bool) {
	return d.commitsExcept(ctx, map[string]bool{id: true}, func() map[string]bool { return map[string]bool{not: true} }, most)
}

// reach returns those of some commits that can be reached from an id by way of these commits.
// seen has all ids on the way, also those of other parents.
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
