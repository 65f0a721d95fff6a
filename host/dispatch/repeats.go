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
	mu          sync.Mutex
	turn        int // the newest
	byCall      map[callInState]*repeat
	lastChanges map[string]lastChange // what calls have made of it in this turn, by path
}

// lastChange is what the newest call that changed a file, or something that is kept, has
// made of it.
type lastChange struct {
	call callKey
	hash [sha256.Size]byte
}

// maxChangedPaths is of how many paths that is known; of one more it begins anew.
const maxChangedPaths = 10_000

// callInState is a call amid what other calls had made of files before it; zero of a call
// that is there to change them.
type callInState struct {
	callKey
	othersChanges [sha256.Size]byte
}

type repeat struct {
	result [sha256.Size]byte
	step   int // the newest
	times  int
}

// sideEffects is what a call has changed.
type sideEffects struct {
	hashes     map[string][sha256.Size]byte // by path
	ranProcess bool                         // it started a process, which may be there for something else
}

// hashChanges is what a call has made of files. Of a content that is too large to be
// hashed it is something new each time.
func hashChanges(call tool.Call, files []session.Change) map[string][sha256.Size]byte {
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

// othersChanges identifies what calls other than one have made of files in this turn.
func (r *repeats) othersChanges(key callKey) (sum [sha256.Size]byte) {
	for path, by := range r.lastChanges {
		if by.call != key {
			one := sha256.Sum256(append(by.hash[:], path...))
			for i := range sum {
				sum[i] ^= one[i] // in any order
			}
		}
	}
	return sum
}

// count notes the result of a call, and tells the model from the second time on.
// Calls of one step count once: the model had seen none of their results.
func (r *repeats) count(call tool.Call, did sideEffects, result tool.Result) tool.Result {
	if call.Turn == 0 || call.Caller != tool.CallerAgent {
		return result
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if call.Turn != r.turn {
		r.turn, r.byCall, r.lastChanges = call.Turn, map[callInState]*repeat{}, map[string]lastChange{}
	}
	key, digest := callInState{callKey: callKeyOf(call)}, resultDigest(result)
	if did.ranProcess || len(did.hashes) == 0 {
		key.othersChanges = r.othersChanges(key.callKey)
	}
	if len(r.lastChanges)+len(did.hashes) > maxChangedPaths {
		clear(r.lastChanges)
	}
	for path, what := range did.hashes {
		r.lastChanges[path] = lastChange{key.callKey, what}
	}
	at := r.byCall[key]
	switch {
	case at == nil || at.result != digest:
		at = &repeat{result: digest, step: call.Step, times: 1}
		r.byCall[key] = at
	case at.step != call.Step:
		at.step = call.Step
		at.times++
	}
	if result.Repeats = at.times; at.times > 1 {
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
