package dispatch

import (
	"sync"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// denials holds the calls of the current turn that a person has denied: an equal call is
// not asked about again. A call with other arguments is another call. Calls outside of
// turns, which a person makes, are not remembered.
type denials struct {
	mu     sync.Mutex
	turn   int                 // the newest turn with a question
	byCall map[callKey]*denial // questions asked and answered in this turn
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

// denial is the no to a call, or the place for it while the question stands.
type denial struct {
	answered chan struct{} // closed when a person has said no
	answer   policy.Answer
}

// get returns the entry of a call, and makes one if needed; nil for a call that is not
// remembered. d.mu is held.
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

// add records a no as the answer to all equal calls of the turn.
func (d *denials) add(call tool.Call, answer policy.Answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.get(call)
	if at == nil {
		return
	}
	select {
	case <-at.answered:
	default:
		at.answer = answer
		at.answer.Question = [32]byte{} // the next call puts no question
		at.answer.By += ", before in this turn"
		close(at.answered)
	}
}

// find returns the no that a person has given to an equal call in this turn, if any.
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

// watch returns a channel that is closed when a person says no to an equal call. It
// returns nil for a call that denials does not remember.
func (d *denials) watch(call tool.Call) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := d.get(call); at != nil {
		return at.answered
	}
	return nil
}
