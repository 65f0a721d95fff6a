package dispatch

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/stockade-dev/stockade/host/tool"
)

// repeats counts how often the model makes the same call and comes to the same
// result in the current turn.
type repeats struct {
	mu   sync.Mutex
	turn int // the newest
	of   map[sameCall]*repeat
}

type repeat struct {
	result [32]byte
	step   int // the newest
	times  int
}

// count notes the result of a call, and tells the model from the second time on.
// Calls of one step count once: the model had seen none of their results.
func (r *repeats) count(call tool.Call, result tool.Result) tool.Result {
	if call.Turn == 0 || call.Caller != tool.CallerAgent {
		return result
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if call.Turn != r.turn {
		r.turn, r.of = call.Turn, map[sameCall]*repeat{}
	}
	key, digest := sameAs(call), resultDigest(result)
	at := r.of[key]
	switch {
	case at == nil || at.result != digest:
		at = &repeat{result: digest, step: call.Step, times: 1}
		r.of[key] = at
	case at.step != call.Step:
		at.step = call.Step
		at.times++
	}
	if result.Times = at.times; at.times > 1 {
		if result.Note != "" {
			result.Note += "\n"
		}
		result.Note += fmt.Sprintf("this is time %d in this turn that this call has come to this result: do something else, or answer; repeating it ends the turn", at.times)
	}
	return result
}

// resultDigest identifies what a call has come to. Who denied a call, and when,
// makes no other result of it.
func resultDigest(r tool.Result) [32]byte {
	text := string(r.Output)
	if r.Err != nil {
		text = string(r.Err.Code)
		if r.Err.Code != tool.CodeDenied {
			text += "\x00" + r.Err.Message + "\x00" + r.Err.Stdout + "\x00" + r.Err.Stderr
		}
	}
	for _, i := range r.Images {
		text += "\x00" + i.Info().SHA256
	}
	return sha256.Sum256([]byte(text))
}
