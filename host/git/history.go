package git

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
)

// walk is one through a history, the newest commits first.
type walk struct {
	d     *dir
	seen  map[string]*step
	queue []*step // the next one last
	open  int     // how many of the queue are wanted
}

// step is a commit on the way.
type step struct {
	*commit
	stop   bool // what it leads to is not wanted
	queued bool
}

// later says which of two steps comes later.
func later(a, b *step) int {
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

// beyond lists the commits that can be reached from some and not from others, up to a
// number. all says that these are all. Where the dates of commits are wrong it may list
// some that can be reached from both; it leaves out none.
func (d *dir) beyond(ctx context.Context, from map[string]bool, stops func() map[string]bool, most int) (found []*commit, all bool) {
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
	for last := len(w.queue) - 1; last >= 0 && (w.open > 0 || w.queue[last].when >= oldest) && ctx.Err() == nil; last = len(w.queue) - 1 {
		s := w.queue[last]
		w.queue, s.queued = w.queue[:last], false
		if !s.stop {
			w.open--
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

// add puts a commit on the way. It reports whether that was possible, where it matters.
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
	if s.queued { // it stands elsewhere now
		at, _ := slices.BinarySearchFunc(w.queue, s, later)
		w.queue = slices.Delete(w.queue, at, at+1)
		w.open--
	}
	if s.stop = stop; !stop {
		w.open++
	}
	at, _ := slices.BinarySearchFunc(w.queue, s, later)
	w.queue, s.queued = slices.Insert(w.queue, at, s), true
	return true
}

// between lists the commits that one leads to, and another does not.
func (d *dir) between(ctx context.Context, not, id string, most int) (found []*commit, all bool) {
	return d.beyond(ctx, map[string]bool{id: true}, func() map[string]bool { return map[string]bool{not: true} }, most)
}

// reach lists those of some commits that one leads to by way of these. seen are all that
// it leads to so.
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
