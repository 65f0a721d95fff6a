package dispatch

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/tool"
)

// seenFiles is what the conversation knows of the content of files: the hash that
// each had when a tool last reported it. With it a model cannot change a part
// of a file that it has not read, or that has changed since.
type seenFiles struct {
	mu    sync.Mutex
	files map[string]knownFile // by absolute path
}

// knownFile is what is known of one file.
type knownFile struct {
	hash string // empty: nothing, or it is gone
	// before is the hash that was known when the step began in which hash was
	// reported. What a model wrote in that step it wrote by the content of then.
	before     string
	reportedIn stepID
	// moves are what edits by number of that step have made of its lines, one after the
	// other; other says that something else has changed them, too.
	moves       []tool.LineEdit
	otherChange bool
}

// stepID says in which reply of the model a call stands. Outside of a turn every call
// is one of its own.
type stepID struct{ turn, step int }

func stepIDOf(call tool.Call) stepID { return stepID{call.Turn, call.Step} }

func (s *seenFiles) file(path string) knownFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[path]
}

// note remembers what the result of a call says about the content of its files.
func (s *seenFiles) note(call tool.Call, entry *tool.Entry, r tool.Result) {
	c := entry.Content
	if c == nil || r.Err != nil {
		return
	}
	var out struct {
		SHA256   json.RawMessage `json:"sha256"`
		Replaced *tool.LineEdit  `json:"replaced"`
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
		if at := stepIDOf(call); k.reportedIn != at || at.turn == 0 {
			k = knownFile{hash: k.hash, before: k.hash, reportedIn: at}
		}
		switch hash := hashes[name]; {
		case c.Lines && out.Replaced.Valid():
			k.moves = append(k.moves, *out.Replaced)
		case hash != k.hash:
			k.otherChange = true
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
		k := p.d.seenFiles.file(absolute(name, p.call.Cwd))
		inStep := c.Lines && p.call.Turn > 0 && k.reportedIn == stepIDOf(p.call)
		if given := hashes[name]; given != "" && !(inStep && given == k.before) {
			continue
		}
		if hashes[name], err = p.seenHash(entry, k, inStep, name); err != nil {
			return err
		}
		if inStep && hashes[name] != k.before {
			if err := p.moveLines(args, k, name); err != nil {
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

// maxEdited is up to which size, in bytes, tools tell the hash of a file, and change a part
// of it. Of a larger one they say so better than the host could.
const maxEdited = 8 << 20

// tooLarge reports whether a file that a mount shows is larger than that. Of any other
// it says no, or a model would learn of files that it is not shown.
func (p *pending) tooLarge(entry *tool.Entry, path string) bool {
	m, ok := p.d.opts.Policy.Sees(entry, path)
	if !ok {
		return false
	}
	_, st := followLinks(m.Host, path)
	return st != nil && st.Mode().IsRegular() && st.Size() > maxEdited
}

// noContent is the hash that a tool is told of a file that is too large: no content has
// it, should the file be smaller by the time that the tool looks.
var noContent = strings.Repeat("0", 64)

// displayPath is a path as its caller would write it.
func (p *pending) displayPath(path string) string {
	if rel, err := filepath.Rel(p.call.Cwd, absolute(path, p.call.Cwd)); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// seenHash is the hash of the content of a file that the call is about. Where the
// call counts lines, that is what the model had been shown when it made it, or what
// edits by number of its step have made of that: what other calls of its step have come
// to it could not know.
func (p *pending) seenHash(entry *tool.Entry, k knownFile, inStep bool, name string) (string, error) {
	switch {
	case k.hash == "" && p.tooLarge(entry, absolute(name, p.call.Cwd)):
		return noContent, nil
	case k.hash == "", inStep && k.before == "":
		r := tool.Failed(tool.CodeUnseen, tool.ValidationFailed, "%s: this conversation has not seen the content of %s", entry.Name, p.displayPath(name))
		r.Err.Hint = tool.Advise("read the file first, then call again")
		if entry.Content.Patch != "" {
			r.Err.Hint = tool.Advise(`read the file first, then call again; if there is none, "*** Add File: " makes one`)
		}
		if k.hash != "" {
			r.Err.Message += " before this step"
			r.Err.Hint = tool.Advise("look at its lines in the results of this step, then call again")
		}
		return "", &refusal{r}
	case inStep && k.otherChange && k.hash != k.before:
		r := tool.Failed(tool.CodeLinesMoved, tool.ValidationFailed,
			"%s: another call of this step has changed %s, or found it changed, so its lines may have other numbers now", entry.Name, p.displayPath(name))
		r.Err.Hint = tool.Advise("take the line numbers from the results of this step, or read the file again, then call again")
		return "", &refusal{r}
	}
	return k.hash, nil
}

// moveLines makes the numbers of lines in the arguments, which are those from before the
// step, what the edits of the step have made of them.
func (p *pending) moveLines(args map[string]json.RawMessage, k knownFile, name string) error {
	var from int
	var to *int
	known := json.Unmarshal(args[tool.LineStart], &from) == nil && args[tool.LineStart] != nil
	if args[tool.LineEnd] != nil {
		known = known && json.Unmarshal(args[tool.LineEnd], &to) == nil
	}
	was, moved := from, known
	for _, m := range k.moves {
		moved = moved && m.ShiftLines(&from, to)
	}
	if !moved {
		r := tool.Failed(tool.CodeLinesMoved, tool.ValidationFailed, "%s: an earlier call of this step has changed these lines of %s, or lines among them", p.call.Tool, p.displayPath(name))
		r.Err.Hint = tool.Advise("look at the lines in the results of this step, then call again with their numbers of now")
		return &refusal{r}
	}
	if from == was {
		return nil
	}
	args[tool.LineStart] = tool.Marshal(from)
	p.movedLines, p.lineShiftNote = []int{from}, fmt.Sprintf("line %d is what was line %d before the edits of this step", from, was)
	if to != nil {
		args[tool.LineEnd] = tool.Marshal(*to)
		if p.movedLines = append(p.movedLines, *to); *to > from {
			p.lineShiftNote = fmt.Sprintf("lines %d to %d are what was lines %d to %d before the edits of this step", from, *to, was, *to-from+was)
		}
	}
	return nil
}
