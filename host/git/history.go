package git

import (
	"container/heap"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
)

// walk is one through a history, the newest commits first.
type walk struct {
	d     *dir
	stops func() map[string]bool // what is reachable from these is not wanted; asked when it matters
	seen  map[string]*step
	queue steps
	open  int // how many of the queue are wanted
}

// step is a commit on the way.
type step struct {
	*commit
	stop   bool // what it leads to is not wanted
	queued bool
}

type steps []*step

func (q steps) Len() int { return len(q) }
func (q steps) Less(i, j int) bool {
	if q[i].when == q[j].when && q[i].stop == q[j].stop {
		return q[i].id < q[j].id
	}
	return q[i].when > q[j].when || q[i].when == q[j].when && q[i].stop
}
func (q steps) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *steps) Push(x any)   { *q = append(*q, x.(*step)) }
func (q *steps) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// beyond lists the commits that can be reached from some and not from others, up to a
// number. all says that these are all. Where the dates of commits are wrong it may list
// some that can be reached from both; it leaves out none.
func (d *dir) beyond(ctx context.Context, from map[string]bool, stops func() map[string]bool, most int) (found []*commit, all bool) {
	w := &walk{d: d, stops: stops, seen: map[string]*step{}}
	all = true
	for _, id := range slices.Sorted(maps.Keys(from)) {
		all = w.add(id, false) && all
	}
	var passed []*step
	oldest := int64(math.MaxInt64)
	for len(w.queue) > 0 && (w.open > 0 || w.queue[0].when >= oldest) && ctx.Err() == nil {
		s := heap.Pop(&w.queue).(*step)
		s.queued = false
		if !s.stop && w.stops != nil && d.store.has(before, s.id) { // what is new no old one leads to
			heap.Push(&w.queue, s)
			s.queued = true
			before := w.stops()
			w.stops = nil
			for id := range before {
				all = w.add(id, true) && all
			}
			continue
		}
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
	s := w.seen[id]
	if s == nil {
		c, err := w.d.store.commit(id)
		if err != nil {
			return stop && !errors.Is(err, errTooLong) || errors.Is(err, errNoCommit) || w.d.shallow[id]
		}
		if s = w.seen[c.id]; s == nil {
			s = &step{commit: c}
		}
		w.seen[id], w.seen[c.id] = s, s
	} else if !stop || s.stop {
		return true
	}
	if stop && s.queued && !s.stop {
		w.open--
	}
	s.stop = s.stop || stop
	if !s.queued {
		s.queued = true
		heap.Push(&w.queue, s)
		if !s.stop {
			w.open++
		}
	}
	return true
}
