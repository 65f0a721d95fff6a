package meter

import (
	"container/heap"
	"context"
	"runtime"
	"sync"
	"time"
)

// Turns lets no more guests run at the same time than there are processors, so
// that whoever else wants one waits for a slice and not for all guests. Of the
// guests that wait the one that has used the least in its call goes first: a
// short call is not held up by any number of long ones, and these share what
// is left, slice by slice.
//
// Who comes, or comes back, counts as having used little less than those that
// are there, so that it does not run until it has caught up. And from time to
// time who waits the longest goes first, so that no number of short calls holds
// up a long one. It is safe for concurrent use.
type Turns struct {
	mu      sync.Mutex
	free    int
	holders map[*Account]time.Time // who has a turn, and since when it has not been seen
	waiting waiters
	arrived uint64
	served  uint64 // how many have got their turn in line
	watch   bool   // reclaim is going to be called
}

const (
	// bonus is how much less a guest that comes counts as having used than
	// the one that has used the least: some tens of milliseconds, in which most
	// calls have ended.
	bonus = 256 * DefaultSlice
	// eldest is how often who waits the longest goes first.
	eldest = 8
)

// lease is how long a guest keeps a turn without being seen. It is seen after
// every slice, which is milliseconds at most: who is not seen for longer waits
// for the host, for a file on a disk that does not answer.
const lease = 50 * time.Millisecond

// NewTurns returns turns for n guests at a time; 0 is as many as there are
// processors.
func NewTurns(n int) *Turns {
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	return &Turns{free: n, holders: map[*Account]time.Time{}}
}

// waiter is a guest that waits for a turn.
type waiter struct {
	account *Account
	used    uint64
	arrived uint64
	turn    chan struct{} // closed when it has come
	at      int           // in waiters; -1 is no longer there
}

// acquire is called between two slices of a guest that has used so much: it
// returns when the next one is its turn, or ctx has ended.
func (t *Turns) acquire(ctx context.Context, a *Account, used uint64) error {
	t.mu.Lock()
	_, has := t.holders[a]
	used += a.base
	if floor, others := t.leastUsed(); !has && others && used+bonus < floor {
		a.base += floor - bonus - used
		used = floor - bonus
	}
	a.usedAtTurn = used
	if len(t.waiting) == 0 || has && t.waiting[0].used > used {
		if has || t.free > 0 {
			if !has {
				t.free--
			}
			t.holders[a] = time.Now()
			t.mu.Unlock()
			return nil
		}
	}
	w := &waiter{account: a, used: used, arrived: t.arrived, turn: make(chan struct{})}
	t.arrived++
	heap.Push(&t.waiting, w)
	if has {
		delete(t.holders, a)
		t.free++
	}
	t.serve()
	t.mu.Unlock()
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.at >= 0 {
		heap.Remove(&t.waiting, w.at)
	} else {
		t.releaseLocked(a)
	}
	return ctx.Err()
}

// leastUsed is the least that one who runs or waits has used, if there is any.
func (t *Turns) leastUsed() (least uint64, some bool) {
	if len(t.waiting) > 0 {
		least, some = t.waiting[0].used, true
	}
	for a := range t.holders {
		if !some || a.usedAtTurn < least {
			least, some = a.usedAtTurn, true
		}
	}
	return least, some
}

// release ends the turn of a guest, if it has one.
func (t *Turns) release(a *Account) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.releaseLocked(a)
}

func (t *Turns) releaseLocked(a *Account) {
	if _, has := t.holders[a]; has {
		delete(t.holders, a)
		t.free++
		t.serve()
	}
}

// serve hands out what is free.
func (t *Turns) serve() {
	for t.free > 0 && len(t.waiting) > 0 {
		at := 0
		if t.served++; t.served%eldest == 0 {
			for i, w := range t.waiting {
				if w.arrived < t.waiting[at].arrived {
					at = i
				}
			}
		}
		w := heap.Remove(&t.waiting, at).(*waiter)
		t.free--
		t.holders[w.account] = time.Now()
		close(w.turn)
	}
	if len(t.waiting) > 0 && !t.watch {
		t.watch = true
		time.AfterFunc(lease, t.reclaim)
	}
}

// reclaim takes the turns of guests that have not been seen for long.
func (t *Turns) reclaim() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watch = false
	for a, seen := range t.holders {
		if time.Since(seen) >= lease && len(t.waiting) > 0 {
			delete(t.holders, a)
			t.free++
		}
	}
	t.serve()
}

// waiters is a heap: who has used the least, and of these who came first.
type waiters []*waiter

func (w waiters) Len() int { return len(w) }
func (w waiters) Less(i, j int) bool {
	if w[i].used != w[j].used {
		return w[i].used < w[j].used
	}
	return w[i].arrived < w[j].arrived
}
func (w waiters) Swap(i, j int) { w[i], w[j] = w[j], w[i]; w[i].at, w[j].at = i, j }
func (w *waiters) Push(x any)   { n := x.(*waiter); n.at = len(*w); *w = append(*w, n) }
func (w *waiters) Pop() any {
	old := *w
	n := old[len(old)-1]
	old[len(old)-1] = nil
	*w, n.at = old[:len(old)-1], -1
	return n
}
