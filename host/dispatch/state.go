package dispatch

import (
	"fmt"
	"slices"

	"github.com/stockade-dev/stockade/host/session"
)

// State is where a call is on its way.
type State string

// The states. Completed is the last one, and every call gets there.
const (
	StateIdle               State = "idle" // nothing of it has been looked at
	StateEvaluatingPolicy   State = "evaluating_policy"
	StateAwaitingPermission State = "awaiting_permission"
	StateExecuting          State = "executing"
	StateCompleted          State = "completed"
)

// transitions are those that there are. A call that changes files executes on a
// stage first, waits for permission with what it has changed in hand, and goes
// on executing to make its changes. Nothing executes that policy has not looked
// at.
var transitions = map[State][]State{
	StateIdle:               {StateEvaluatingPolicy, StateCompleted},
	StateEvaluatingPolicy:   {StateAwaitingPermission, StateExecuting, StateCompleted},
	StateAwaitingPermission: {StateExecuting, StateCompleted},
	StateExecuting:          {StateAwaitingPermission, StateCompleted},
	StateCompleted:          {},
}

// enter goes to another state and shows it. That there is no such transition is
// a fault of ours: it panics, which ends the call before it does what belongs
// to that state.
func (p *Pending) enter(next State) {
	p.mu.Lock()
	from := p.state
	known := slices.Contains(transitions[from], next)
	if known {
		p.state = next
	}
	p.mu.Unlock()
	if !known {
		panic(fmt.Sprintf("dispatch: a call cannot go from %s to %s", from, next))
	}
	p.show(session.TypeCallState, session.CallState{State: string(next), Tool: p.call.Tool, Fault: next == StateCompleted && p.err != nil})
}
