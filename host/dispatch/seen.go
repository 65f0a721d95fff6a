package dispatch

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/tool"
)

// seenFiles holds for each file the newest hash of its content that a tool has reported in
// this conversation. With it the host refuses a model's change to a part of a file that the
// model has not read; and the tool refuses it if the file has changed since.
type seenFiles struct {
	mu    sync.Mutex
	files map[string]knownFile // by absolute path
}

// knownFile holds what the results of tools have told the conversation about one file.
type knownFile struct {
	hash string // newest reported hash; empty: no content was reported, or the file is gone
	// before is the hash that was known when the step reportedIn began, and the model wrote
	// the calls of that step. Empty: none was known.
	before      string
	reportedIn  stepID          // step in which hash was reported
	moves       []tool.LineEdit // edits by line number in the step reportedIn, in their order
	otherChange bool            // set if the step reportedIn reported a new hash without an entry in moves
}

// stepID identifies a reply of the model. Calls outside of a turn (turn 0) belong to no step.
type stepID struct{ turn, step int }

func stepIDOf(call tool.Call) stepID { return stepID{call.Turn, call.Step} }

func (s *seenFiles) file(path string) knownFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[path]
}

// ForgetFiles makes all files unseen. It is for a rewind, after which the model does not know the
// contents any more.
func (d *Dispatcher) ForgetFiles() {
	d.seenFiles.mu.Lock()
	defer d.seenFiles.mu.Unlock()
	clear(d.seenFiles.files)
}

// note stores the hashes of file contents that the result of a call reports.
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
		return // it reports no content
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Concat(there, made) {
		path := paths.Absolute(name, call.Cwd)
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

// checkSeen puts the hash of the content that the model has seen into the arguments of a
// change, unless they have one, and refuses a change of a file that the model has not seen. Only
// calls of the model are checked.
func (p *pending) checkSeen(entry *tool.Entry) error {
	c := entry.Content
	if p.call.Caller != tool.CallerAgent || c == nil || c.Hash == "" {
		return nil
	}
	var args map[string]json.RawMessage
	there, _, err := c.Files(p.call.Args)
	if err != nil || json.Unmarshal(p.call.Args, &args) != nil {
		return nil // the tool itself refuses such arguments
	}
	// A hash among the arguments stays, and the tool compares it. tool.Unseen is none.
	hashes := map[string]string{}
	if c.Patch != "" && json.Unmarshal(args[c.Hash], &hashes) != nil || hashes == nil {
		hashes = map[string]string{}
	}
	if given := ""; c.Patch == "" && json.Unmarshal(args[c.Hash], &given) == nil {
		hashes[there[0]] = given
	}
	for _, name := range there {
		k := p.seen.file(paths.Absolute(name, p.call.Cwd))
		inStep := c.Lines && p.call.Turn > 0 && k.reportedIn == stepIDOf(p.call)
		if given := hashes[name]; given != "" && given != tool.Unseen && !(inStep && given == k.before) {
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

// maxEdited limits the size of a file that tools hash, and change in part, in bytes. Tools
// refuse a larger file, with a better error than the host could.
const maxEdited = 8 << 20

// tooLarge reports whether a mount shows the file, and the file is larger than maxEdited.
// For a file that no mount shows it returns false: the model must not learn about it.
func (p *pending) tooLarge(entry *tool.Entry, path string) bool {
	m, ok := p.d.opts.Policy.Sees(entry, path)
	if !ok {
		return false
	}
	_, st := followLinks(m.Host, path)
	return st != nil && st.Mode().IsRegular() && st.Size() > maxEdited
}

// noContent is the hash that a tool gets for a file that is too large. No content has this
// hash, so that the tool also fails if the file has shrunk before the tool reads it.
var noContent = strings.Repeat("0", 64)

// displayPath returns a path for the texts of errors: relative to the call's working
// directory, or unchanged if the directory does not contain the file.
func (p *pending) displayPath(path string) string {
	if rel, err := filepath.Rel(p.call.Cwd, paths.Absolute(path, p.call.Cwd)); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// warnOfBlindWrite returns a warning if a call of the model may replace the whole content of a
// file that this conversation has not seen; empty: it does not, or the file is empty.
func (p *pending) warnOfBlindWrite(entry *tool.Entry, files []policy.NamedFile) string {
	c := entry.Content
	if p.call.Caller != tool.CallerAgent || c == nil || c.Path == "" || c.Hash != "" || entry.Capabilities.Files != tool.FilesWrite {
		return ""
	}
	for _, f := range files {
		if st, err := os.Lstat(f.Path); f.Arg == c.Path && f.Regular && err == nil && st.Size() > 0 && p.seen.file(f.Name).hash == "" {
			return "it replaces all of " + strconv.Quote(p.displayPath(f.Name)) + ", which no file tool has read in this conversation"
		}
	}
	return ""
}

// mayRead reports whether the built-in file_read could read a file without a question.
func (p *pending) mayRead(name string) bool {
	e, ok := p.d.catalog.Load().Find("file_read")
	if !ok || e.Module.Origin != tool.OriginBuiltin {
		return false
	}
	call := p.call
	call.Tool, call.Args = e.Name, tool.Marshal(map[string]string{"path": name})
	return p.d.opts.Policy.Decide(call, e, policy.Facts{Files: NamedFiles(p.d.opts.Policy, call, e)}).Effect() == policy.Allow
}

// seenHash returns the hash of the content that the model has seen of the file k, noContent for
// an unseen file that is too large, [tool.Unseen] for one that the tool may edit by its text, or
// a refusal. inStep is set for a call with line numbers, if a call of its step has reported the
// file before. Then only edits by line number may have changed it: the model knows no others.
func (p *pending) seenHash(entry *tool.Entry, k knownFile, inStep bool, name string) (string, error) {
	switch {
	case k.hash == "" && p.tooLarge(entry, paths.Absolute(name, p.call.Cwd)):
		return noContent, nil
	case k.hash == "" && entry.Content.Exact && p.mayRead(name):
		return tool.Unseen, nil
	case k.hash == "", inStep && k.before == "":
		r := tool.Failed(tool.CodeUnseen, tool.ValidationFailed, "%s: this conversation has not seen the content of %s", entry.Name, p.displayPath(name))
		r.Err.Hint = tool.Advise("read the file first, then call again")
		if entry.Content.Patch != "" {
			r.Err.Hint = tool.Advise(`read the file first, then call again; if the file does not exist yet, "*** Add File: " makes it`)
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

// moveLines corrects the line numbers in the arguments. The model counted them before the
// step; edits of the step have moved the lines. It refuses the call if the lines were changed,
// too.
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
		r.Err.Hint = tool.Advise("look at the lines in the results of this step, then call again with their current numbers")
		return &refusal{r}
	}
	if from == was {
		return nil
	}
	args[tool.LineStart] = tool.Marshal(from)
	p.movedLines, p.lineShiftNote = []int{from}, fmt.Sprintf("line %d was line %d before the edits of this step", from, was)
	if to != nil {
		args[tool.LineEnd] = tool.Marshal(*to)
		if p.movedLines = append(p.movedLines, *to); *to > from {
			p.lineShiftNote = fmt.Sprintf("lines %d to %d were lines %d to %d before the edits of this step", from, *to, was, *to-from+was)
		}
	}
	return nil
}
