package dispatch

import (
	"fmt"
	"slices"

	"github.com/stockade-dev/stockade/host/session"
)

// state is a stage in the life of a call. Its text appears in events of the session.
type state string

// The states of a call. Every call ends in stateCompleted.
const (
	stateIdle               state = "idle" // before the policy evaluates the call
	stateEvaluatingPolicy   state = "evaluating_policy"
	stateAwaitingPermission state = "awaiting_permission"
	stateExecuting          state = "executing"
	stateCompleted          state = "completed"
)

// transitions lists the allowed next states of each state. A call that asks about its changes
// executes on a stage first, then waits for permission with its changes at hand, then
// executes again to make them. No call executes before policy has evaluated it.
var transitions = map[state][]state{
	stateIdle:               {stateEvaluatingPolicy, stateCompleted},
	stateEvaluatingPolicy:   {stateAwaitingPermission, stateExecuting, stateCompleted},
	stateAwaitingPermission: {stateExecuting, stateCompleted},
	stateExecuting:          {stateAwaitingPermission, stateCompleted},
	stateCompleted:          {},
}

// enter changes the state of the call, and shows the new state. It panics if the
// transition is not allowed, which is a fault of ours: the panic ends the call before it
// does anything in the new state.
func (p *pending) enter(next state) {
	if !slices.Contains(transitions[p.state], next) {
		panic(fmt.Sprintf("dispatch: a call cannot go from %s to %s", p.state, next))
	}
	p.state = next
	p.show(session.TypeCallState, session.CallState{State: string(next), Tool: p.call.Tool, Fault: next == stateCompleted && p.err != nil})
}
