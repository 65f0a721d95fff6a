package dispatch

import (
	"encoding/json"
	"path/filepath"
	"sync"

	"github.com/stockade-dev/stockade/host/tool"
)

// seen is what the conversation knows of the content of files: the hash that
// each had when a tool last reported it. With it a model cannot change a part
// of a file that it has not read, or that has changed since.
type seen struct {
	mu     sync.Mutex
	hashes map[string]string // by absolute path
}

func (s *seen) hash(path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hashes[path]
}

// note remembers what the result of a call says about the content of its file.
func (s *seen) note(call tool.Call, entry *tool.Entry, r tool.Result) {
	path, ok := contentPath(call, entry)
	if !ok || r.Err != nil {
		return
	}
	var out struct {
		SHA256 string `json:"sha256"`
	}
	if json.Unmarshal(r.Output, &out) != nil || out.SHA256 == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hashes[path] = out.SHA256
}

// contentPath is the file that a call is about, if its tool says so.
func contentPath(call tool.Call, entry *tool.Entry) (string, bool) {
	if entry.Content == nil {
		return "", false
	}
	var args map[string]json.RawMessage
	var path string
	if json.Unmarshal(call.Args, &args) != nil || json.Unmarshal(args[entry.Content.Path], &path) != nil || path == "" {
		return "", false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(call.Cwd, path)
	}
	return filepath.Clean(path), true
}

// checkSeen fills in the hash of the content that the model has seen, and
// refuses a change of what it has not. A person may change what they like.
func (p *pending) checkSeen(entry *tool.Entry) error {
	if p.call.Caller != tool.CallerAgent || entry.Content == nil || entry.Content.Hash == "" {
		return nil
	}
	path, ok := contentPath(p.call, entry)
	var args map[string]json.RawMessage
	if !ok || json.Unmarshal(p.call.Args, &args) != nil || args[entry.Content.Hash] != nil {
		return nil // the tool has something to say about the path; a hash that is given is compared as it is
	}
	hash := p.d.seen.hash(path)
	if hash == "" {
		r := tool.Failed(tool.CodeUnseen, tool.ValidationFailed, "%s: this conversation has not seen the content of %s", entry.Name, path)
		r.Err.Hint = tool.Advise("read the file first, then call again")
		return &refusal{r}
	}
	args[entry.Content.Hash] = tool.Marshal(hash)
	p.call.Args = tool.Marshal(args)
	return nil
}
