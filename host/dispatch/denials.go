package dispatch

import (
	"sync"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// denials holds the calls of the current turn that a person has denied: nobody is asked again
// about an equal call, see [callKey]. Calls outside of turns, which a person makes, are not
// held.
type denials struct {
	mu     sync.Mutex
	turn   int                 // number of the newest turn with a question
	byCall map[callKey]*denial // questions of this turn, answered or not
}

// callKey identifies equal calls: same tool, directory, caller and arguments. With a step alone
// it identifies all calls of that step.
type callKey struct {
	tool, cwd string
	caller    tool.Caller
	args      [32]byte // digest
	step      int
}

func callKeyOf(call tool.Call) callKey {
	return callKey{tool: call.Tool, cwd: call.Cwd, caller: call.Caller, args: call.ArgsDigest()}
}

func restOfStep(call tool.Call) callKey { return callKey{step: call.Step} }

// denial is a person's no to a call. It is made before the question is answered.
type denial struct {
	answered chan struct{} // closed when a person has said no
	answer   policy.Answer // the no, once answered is closed
}

// get returns the denial of key in a turn, and makes one if there is none. It returns nil
// outside of turns and for an earlier turn. d.mu is held.
func (d *denials) get(turn int, key callKey) *denial {
	if turn == 0 || turn < d.turn {
		return nil
	}
	if turn > d.turn || d.byCall == nil {
		d.turn, d.byCall = turn, map[callKey]*denial{}
	}
	if d.byCall[key] == nil {
		d.byCall[key] = &denial{answered: make(chan struct{})}
	}
	return d.byCall[key]
}

// add records a no as the answer to all equal calls of the turn, and with [policy.Answer.RestOfStep]
// also to the later calls of the step.
func (d *denials) add(call tool.Call, answer policy.Answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	by := answer.By
	if !answer.OutputOnly {
		d.answer(call.Turn, callKeyOf(call), by+", before in this turn")
	}
	if answer.RestOfStep {
		d.answer(call.Turn, restOfStep(call), by)
	}
}

// answer records a no of somebody. d.mu is held.
func (d *denials) answer(turn int, key callKey, by string) {
	if at := d.get(turn, key); at != nil && !at.isAnswered() {
		at.answer = policy.Answer{By: by}
		close(at.answered)
	}
}

// find returns the no that a person has given to an equal call in this turn, or to the rest of
// the call's step, then rest is set; denied is false if there is none.
func (d *denials) find(call tool.Call) (no policy.Answer, rest, denied bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, key := range []callKey{restOfStep(call), callKeyOf(call)} {
		if at := d.byCall[key]; at != nil && call.Turn == d.turn && at.isAnswered() {
			return at.answer, key == restOfStep(call), true
		}
	}
	return policy.Answer{}, false, false
}

// watch returns two channels: the first is closed when a person says no to an equal call, the
// second when a person says no to the rest of the call's step. They are nil, on which one waits
// forever, for a call outside of a turn or of an earlier turn.
func (d *denials) watch(call tool.Call) (denied, quit <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := d.get(call.Turn, callKeyOf(call)); at != nil {
		return at.answered, d.get(call.Turn, restOfStep(call)).answered
	}
	return nil, nil
}

func (d *denial) isAnswered() bool {
	select {
	case <-d.answered:
		return true
	default:
		return false
	}
}
