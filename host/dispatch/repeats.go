package dispatch

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// repeats counts how often the model makes the same call and comes to the same
// result in the current turn. A call that looks at something, or runs it, is another
// one after other calls have changed what there is: tests are run again after each
// edit. Where these changes bring back what was there before, it goes on counting.
type repeats struct {
	mu   sync.Mutex
	turn int // the newest
	of   map[callAmid]*repeat
	made map[string]madeBy // what calls have made of it in this turn, by path
}

// madeBy is what the newest call that changed a file, or something that is kept, has
// made of it.
type madeBy struct {
	call sameCall
	what [sha256.Size]byte
}

// maxMade is of how many paths that is known; of one more it begins anew.
const maxMade = 10_000

// callAmid is a call amid what other calls had made of files before it; zero of a call
// that is there to change them.
type callAmid struct {
	sameCall
	amid [sha256.Size]byte
}

type repeat struct {
	result [sha256.Size]byte
	step   int // the newest
	times  int
}

// effect is what a call has changed.
type effect struct {
	made map[string][sha256.Size]byte // by path
	runs bool                         // it started a process, which may be there for something else
}

// effectOn is what a call has made of files. Of a content that is too large to be
// hashed it is something new each time.
func effectOn(call tool.Call, files []session.Change) map[string][sha256.Size]byte {
	made := map[string][sha256.Size]byte{}
	for _, f := range files {
		text := string(f.Kind) + "\x00" + f.From
		if f.After != nil {
			text += fmt.Sprintf("\x00%+v", *f.After)
			if f.After.SHA256 == "" && f.After.Target == "" {
				text += fmt.Sprintf("\x00%d %s", call.Step, call.ID)
			}
		}
		made[f.Path] = sha256.Sum256([]byte(text))
	}
	return made
}

// amid identifies what calls other than one have made of files in this turn.
func (r *repeats) amid(key sameCall) (sum [sha256.Size]byte) {
	for path, by := range r.made {
		if by.call != key {
			one := sha256.Sum256(append(by.what[:], path...))
			for i := range sum {
				sum[i] ^= one[i] // in any order
			}
		}
	}
	return sum
}

// count notes the result of a call, and tells the model from the second time on.
// Calls of one step count once: the model had seen none of their results.
func (r *repeats) count(call tool.Call, did effect, result tool.Result) tool.Result {
	if call.Turn == 0 || call.Caller != tool.CallerAgent {
		return result
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if call.Turn != r.turn {
		r.turn, r.of, r.made = call.Turn, map[callAmid]*repeat{}, map[string]madeBy{}
	}
	key, digest := callAmid{sameCall: sameAs(call)}, resultDigest(result)
	if did.runs || len(did.made) == 0 {
		key.amid = r.amid(key.sameCall)
	}
	if len(r.made)+len(did.made) > maxMade {
		clear(r.made)
	}
	for path, what := range did.made {
		r.made[path] = madeBy{key.sameCall, what}
	}
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
		result.AddNote(fmt.Sprintf("this is time %d in this turn that this call has come to this result: do something else, or answer; repeating it ends the turn", at.times))
	}
	return result
}

// resultDigest identifies what a call has come to. Who denied a call, and when,
// makes no other result of it.
func resultDigest(r tool.Result) [sha256.Size]byte {
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
