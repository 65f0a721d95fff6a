package dispatch

import (
	"fmt"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/tool"
)

// What the processes of one turn may take that run before anybody is asked. It is
// the person's machine that they keep busy.
const (
	maxRehearsedRuns = 100
	maxRehearsedTime = 10 * time.Minute
)

// rehearsedRuns counts the processes of the current turn that ran before anybody was asked.
// A call outside of turns, which a person makes, is not counted.
type rehearsedRuns struct {
	mu    sync.Mutex
	turn  int // the newest
	runs  int
	spent time.Duration
}

// whyFull says why no more may run ahead in the turn of a call; empty if one may.
func (a *rehearsedRuns) whyFull(call tool.Call) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case call.Turn == 0 || call.Turn != a.turn:
	case a.runs >= maxRehearsedRuns:
		return fmt.Sprintf("%d commands of this turn have run before they were asked about", a.runs)
	case a.spent >= maxRehearsedTime:
		return fmt.Sprintf("commands of this turn have run for %s before they were asked about", a.spent.Round(time.Second))
	}
	return ""
}

// add counts one that has run for so long.
func (a *rehearsedRuns) add(call tool.Call, d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if call.Turn > a.turn {
		a.turn, a.runs, a.spent = call.Turn, 0, 0
	}
	if call.Turn == a.turn {
		a.runs++
		a.spent += d
	}
}
