package dispatch

import (
	"sync"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// denials are the calls of the current turn to which a person has said no: the
// same call asks no second time. Other arguments are another call. A call
// outside of turns, which a person makes, is not remembered.
type denials struct {
	mu     sync.Mutex
	turn   int // the newest
	byCall map[callKey]*denial
}

// callKey tells calls apart: two that share it are the same call.
type callKey struct {
	tool, cwd string
	caller    tool.Caller
	args      [32]byte
}

func callKeyOf(call tool.Call) callKey {
	return callKey{call.Tool, call.Cwd, call.Caller, call.ArgsDigest()}
}

type denial struct {
	answered chan struct{} // closed when there is an answer
	answer   policy.Answer
}

// get returns the place of a call, nil if it has none. d.mu is held.
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

// add makes the answer no that to every call like this.
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
		at.answer.Question = [32]byte{} // the next call puts none
		at.answer.By += ", before in this turn"
		close(at.answered)
	}
}

// find returns the answer no that was given to such a call before.
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

// watch is closed when a person says no to such a call; nil if nobody can.
func (d *denials) watch(call tool.Call) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := d.get(call); at != nil {
		return at.answered
	}
	return nil
}
