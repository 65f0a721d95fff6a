package dispatch

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"sync"

	"github.com/stockade-dev/stockade/host/tool"
)

// seen is what the conversation knows of the content of files: the hash that
// each had when a tool last reported it. With it a model cannot change a part
// of a file that it has not read, or that has changed since.
type seen struct {
	mu    sync.Mutex
	files map[string]known // by absolute path
}

// known is what is known of one file.
type known struct {
	hash string // empty: nothing, or it is gone
	// before is the hash that was known when the step began in which hash was
	// reported. What a model wrote in that step it wrote by the content of then.
	before string
	in     reply
}

// reply says in which reply of the model a call stands. Outside of a turn every call
// is one of its own.
type reply struct{ turn, step int }

func replyOf(call tool.Call) reply { return reply{call.Turn, call.Step} }

func (s *seen) file(path string) known {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[path]
}

// note remembers what the result of a call says about the content of its files.
func (s *seen) note(call tool.Call, entry *tool.Entry, r tool.Result) {
	c := entry.Content
	if c == nil || r.Err != nil {
		return
	}
	var out struct {
		SHA256 json.RawMessage `json:"sha256"`
	}
	there, made, err := c.Files(call.Args)
	if err != nil || json.Unmarshal(r.Output, &out) != nil {
		return
	}
	hashes := map[string]string{}
	if c.Patch != "" {
		err = json.Unmarshal(out.SHA256, &hashes)
	} else {
		var hash string
		err = json.Unmarshal(out.SHA256, &hash)
		hashes[there[0]] = hash
	}
	if err != nil || c.Patch == "" && hashes[there[0]] == "" {
		return // it says nothing about it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Concat(there, made) {
		path := absolute(name, call.Cwd)
		k := s.files[path]
		if at := replyOf(call); k.in != at || at.turn == 0 {
			k.before, k.in = k.hash, at
		}
		k.hash = hashes[name]
		s.files[path] = k
	}
}

func absolute(path, cwd string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(cwd, path)
	}
	return filepath.Clean(path)
}

// checkSeen fills in the hash of the content that the model has seen, and
// refuses a change of what it has not. A person may change what they like.
func (p *pending) checkSeen(entry *tool.Entry) error {
	c := entry.Content
	if p.call.Caller != tool.CallerAgent || c == nil || c.Hash == "" {
		return nil
	}
	var args map[string]json.RawMessage
	there, _, err := c.Files(p.call.Args)
	if err != nil || json.Unmarshal(p.call.Args, &args) != nil {
		return nil // the tool has something to say about the arguments
	}
	// A hash that is given is compared as it is.
	hashes := map[string]string{}
	if c.Patch != "" && json.Unmarshal(args[c.Hash], &hashes) != nil || hashes == nil {
		hashes = map[string]string{}
	}
	if given := ""; c.Patch == "" && json.Unmarshal(args[c.Hash], &given) == nil {
		hashes[there[0]] = given
	}
	for _, name := range there {
		if hashes[name] == "" {
			if hashes[name], err = p.seenHash(c, entry.Name, absolute(name, p.call.Cwd)); err != nil {
				return err
			}
		}
	}
	switch {
	case c.Patch == "":
		args[c.Hash] = tool.Marshal(hashes[there[0]])
	case len(there) > 0:
		args[c.Hash] = tool.Marshal(hashes)
	}
	p.call.Args = tool.Marshal(args)
	return nil
}

// seenHash is the hash of the content of a file that the call is about. Where the
// call counts lines, that is what the model had been shown when it made it: what
// other calls of its step have come to it could not know.
func (p *pending) seenHash(c *tool.Content, name, path string) (string, error) {
	k := p.d.seen.file(path)
	hash := k.hash
	inStep := c.Lines && p.call.Turn > 0 && k.in == replyOf(p.call)
	if inStep {
		hash = k.before
	}
	switch {
	case hash == "":
		r := tool.Failed(tool.CodeUnseen, tool.ValidationFailed, "%s: this conversation has not seen the content of %s", name, path)
		r.Err.Hint = tool.Advise("read the file first, then call again; a file of which no sha256 is told is too large to be changed in part")
		if inStep && k.hash != "" {
			r.Err.Message += " before this step"
			r.Err.Hint = tool.Advise("look at its lines in the results of this step, then call again")
		}
		return "", &refusal{r}
	case hash != k.hash:
		r := tool.Failed(tool.CodeMoved, tool.ValidationFailed,
			"%s: an earlier call of this step has changed %s, or found it changed, so that its line numbers are not those that this call goes by", name, path)
		r.Err.Hint = tool.Advise("take the line numbers from the results of this step, or read the file again, then call again")
		return "", &refusal{r}
	}
	return hash, nil
}
