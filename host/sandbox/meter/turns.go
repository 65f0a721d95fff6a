package meter

import (
	"container/heap"
	"context"
	"runtime"
	"sync"
	"time"
)

// Turns lets no more guests run at a time than there are processors, so that other work waits
// only for a slice, not for all guests. Of the waiting guests, the guest that has used the
// least fuel in its call goes first. So long calls do not hold up short ones, and the long
// ones share the rest, slice by slice.
//
// A guest that arrives or returns counts as having used only a little less than the others,
// so that it does not run alone until it has caught up. From time to time the guest that has
// waited longest goes first, so that short calls cannot hold up a long one for ever. Turns is
// safe for concurrent use.
type Turns struct {
	mu      sync.Mutex             // guards the fields below
	free    int                    // turns that nobody has
	holders map[*Account]time.Time // accounts of guests with a turn, and the times of their last acquire
	waiting waiters                // guests that wait for a turn
	arrived uint64                 // number of times that a guest had to wait so far
	served  uint64                 // number of turns given to waiting guests so far
	watch   bool                   // a call of reclaim is scheduled
}

const (
	// bonus is the advantage of an arriving guest over the guest that has used the least, in
	// units of fuel: some tens of milliseconds, in which most calls end.
	bonus  = 256 * DefaultSlice
	eldest = 8 // one of this many turns goes to the guest that has waited longest
)

// lease is the time after which a guest loses its turn, if others wait, unless it calls
// acquire again. Guests do so after every slice, which is milliseconds at most. After a longer
// time a guest waits for the host, for example for a disk that does not answer.
const lease = 50 * time.Millisecond

// NewTurns returns turns for n guests at a time. 0 stands for the number of processors.
func NewTurns(n int) *Turns {
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	return &Turns{free: n, holders: map[*Account]time.Time{}}
}

type waiter struct {
	account *Account
	used    uint64        // units of fuel that count as used
	arrived uint64        // position in the order of arrival
	turn    chan struct{} // closed when the guest has its turn
	at      int           // index in waiters; -1: it has left them
}

// acquire is called between two slices of a guest that has used this many units of fuel. It
// returns when the guest has its turn; the error is that of ctx, if ctx ends first.
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

// leastUsed returns the least fuel that counts as used by a guest with a turn or a waiting
// guest. some is false if there are no guests.
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

// serve gives free turns to waiting guests. The caller holds t.mu.
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

// reclaim ends the turns of guests whose lease is over, if others wait.
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

// waiters is a heap, ordered by the fuel that was used, then by arrival.
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
