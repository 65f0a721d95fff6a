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

// callKey identifies equal calls: same tool, directory, caller and arguments.
type callKey struct {
	tool, cwd string
	caller    tool.Caller
	args      [32]byte // digest
}

func callKeyOf(call tool.Call) callKey {
	return callKey{call.Tool, call.Cwd, call.Caller, call.ArgsDigest()}
}

// denial is a person's no to a call. It is made before the question is answered.
type denial struct {
	answered chan struct{} // closed when a person has said no
	answer   policy.Answer // the no, once answered is closed
}

// get returns the denial of a call, and makes one if there is none. It returns nil for a call
// outside of a turn or of an earlier turn. d.mu is held.
func (d *denials) get(call tool.Call) *denial {
	if call.Turn == 0 || call.Turn < d.turn {
		return nil
	}
	if call.Turn > d.turn || d.byCall == nil {
		d.turn, d.byCall = call.Turn, map[callKey]*denial{}
	}
	key := callKeyOf(call)
	if d.byCall[key] == nil {
		d.byCall[key] = &denial{answered: make(chan struct{})}
	}
	return d.byCall[key]
}

// add records a no as the answer to all equal calls of the turn, but not that of
// [policy.Answer.OutputOnly].
func (d *denials) add(call tool.Call, answer policy.Answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.get(call)
	if at == nil || answer.OutputOnly {
		return
	}
	select {
	case <-at.answered:
	default:
		at.answer = policy.Answer{By: answer.By + ", before in this turn"}
		close(at.answered)
	}
}

// find returns the no that a person has given to an equal call in this turn; false: none.
func (d *denials) find(call tool.Call) (policy.Answer, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.byCall[callKeyOf(call)]
	if at == nil || call.Turn != d.turn {
		return policy.Answer{}, false
	}
	select {
	case <-at.answered:
		return at.answer, true
	default:
		return policy.Answer{}, false
	}
}

// watch returns a channel that is closed when a person says no to an equal call. It returns
// nil, on which one waits forever, for a call outside of a turn or of an earlier turn.
func (d *denials) watch(call tool.Call) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := d.get(call); at != nil {
		return at.answered
	}
	return nil
}
