package dispatch

import (
	"fmt"
	"slices"

	"github.com/stockade-dev/stockade/host/session"
)

// state is where a call is on its way.
type state string

// The states. Completed is the last one, and every call gets there.
const (
	stateIdle               state = "idle" // nothing of it has been looked at
	stateEvaluatingPolicy   state = "evaluating_policy"
	stateAwaitingPermission state = "awaiting_permission"
	stateExecuting          state = "executing"
	stateCompleted          state = "completed"
)

// transitions are those that there are. A call that changes files executes on a
// stage first, waits for permission with what it has changed in hand, and goes
// on executing to make its changes. Nothing executes that policy has not looked
// at.
var transitions = map[state][]state{
	stateIdle:               {stateEvaluatingPolicy, stateCompleted},
	stateEvaluatingPolicy:   {stateAwaitingPermission, stateExecuting, stateCompleted},
	stateAwaitingPermission: {stateExecuting, stateCompleted},
	stateExecuting:          {stateAwaitingPermission, stateCompleted},
	stateCompleted:          {},
}

// enter goes to another state and shows it. That there is no such transition is
// a fault of ours: it panics, which ends the call before it does what belongs
// to that state.
func (p *pending) enter(next state) {
	if !slices.Contains(transitions[p.state], next) {
		panic(fmt.Sprintf("dispatch: a call cannot go from %s to %s", p.state, next))
	}
	p.state = next
	p.show(session.TypeCallState, session.CallState{State: string(next), Tool: p.call.Tool, Fault: next == stateCompleted && p.err != nil})
}
