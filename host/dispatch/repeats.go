package dispatch

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// repeats counts in the current turn how often the model makes the same call and gets the same
// result. A call that reads or runs something counts from 1 again after other calls have changed
// files: tests are run again after each edit. If the changes restore an earlier state of the
// files, the count of this state goes on.
type repeats struct {
	mu          sync.Mutex
	turn        int // number of the newest turn with a call
	byCall      map[callInState]*repeat
	lastChanges map[string]lastChange // newest change of each path in this turn, by path
}

// lastChange holds the newest call that changed a path, and a hash of the change. Stores of tools
// and processes that change files directly have a made-up path.
type lastChange struct {
	call callKey
	hash [sha256.Size]byte
}

// maxChangedPaths limits the paths in lastChanges. A call that would exceed it clears the map
// first: later counts begin at 1.
const maxChangedPaths = 10_000

// callInState is a call in a state of the files. othersChanges is a hash of the changes that
// other calls have made before in the turn; zero: none, or the call changes files itself and
// runs no process.
type callInState struct {
	callKey
	othersChanges [sha256.Size]byte
}

// repeat holds the newest result of a call, and how often the call has had this result.
type repeat struct {
	result [sha256.Size]byte // as of resultDigest
	step   int               // number of the newest step with this result
	times  int               // number of steps with this result, in a row
}

// sideEffects holds the changes that a call has made.
type sideEffects struct {
	hashes     map[string][sha256.Size]byte // hash of the change of each path; nil: nothing was changed
	ranProcess bool                         // set if the tool of the call runs processes, even without changes
}

// hashChanges returns a hash of the call's change of each file, by path. A change to a content
// that was too large to be hashed gets another hash in each call.
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

// othersChanges returns a hash of the newest changes in this turn, except those that calls equal
// to key have made; zero: there are none. r.mu is held.
func (r *repeats) othersChanges(key callKey) (sum [sha256.Size]byte) {
	for path, by := range r.lastChanges {
		if by.call != key {
			one := sha256.Sum256(append(by.hash[:], path...))
			for i := range sum {
				sum[i] ^= one[i] // the order does not matter
			}
		}
	}
	return sum
}

// count counts the result of a model's call, and returns it with the count and, from the
// second equal result on, a note for the model. Equal calls of one step count once: when the
// model wrote them, it had seen none of their results.
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
	for path, hash := range did.hashes {
		r.lastChanges[path] = lastChange{key.callKey, hash}
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

// resultDigest returns a hash of a result without its notes. All denials have the same hash.
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
