package dispatch

import (
	"fmt"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/tool"
)

// Limits for the processes of one turn that run before anybody was asked, since they keep the
// person's machine busy. From a limit on, a command asks before it runs.
const (
	maxRehearsedRuns = 100              // processes
	maxRehearsedTime = 10 * time.Minute // running time of all of them together
)

// rehearsedRuns counts the processes of the current turn that ran before anybody was
// asked. Calls outside of turns, which a person makes, are not counted.
type rehearsedRuns struct {
	mu    sync.Mutex
	turn  int           // number of the newest turn with such a process
	runs  int           // number of these processes in the turn
	spent time.Duration // total running time of these processes in the turn
}

// whyFull returns the limit that makes the call ask before its process runs, in words; empty: no
// limit is reached.
func (r *rehearsedRuns) whyFull(call tool.Call) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case call.Turn == 0 || call.Turn != r.turn:
	case r.runs >= maxRehearsedRuns:
		return fmt.Sprintf("%d commands of this turn have run before they were asked about", r.runs)
	case r.spent >= maxRehearsedTime:
		return fmt.Sprintf("commands of this turn have run for %s before they were asked about", r.spent.Round(time.Second))
	}
	return ""
}

func (r *rehearsedRuns) add(call tool.Call, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if call.Turn > r.turn {
		r.turn, r.runs, r.spent = call.Turn, 0, 0
	}
	if call.Turn == r.turn {
		r.runs++
		r.spent += d
	}
}
