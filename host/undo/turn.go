package undo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/sdk/go/filename"
)

// callLog holds the calls of a session, as its log has them.
type callLog struct {
	turns   int              // number of the newest turn; 0: none
	prompts map[int]string   // prompts, by turn
	calls   []*call          // calls that have run, in their order
	byID    map[string]*call // all calls, by ID
	undone  map[int]bool     // set for turns that are undone now
	rewound map[int]bool     // set for turns that are no part of the conversation any more

	// from is the first turn that planUndo may undo; planTurn then leaves out calls that have
	// written directly. 0: every turn may be undone, and such a call is a reason to refuse.
	from int
}

// call is one call of the log.
type call struct {
	turn          int    // number of its turn; 0: a person's call
	after         int    // number of the newest turn that had begun
	summary       string // one line, for texts
	undo          bool   // set for a call that undoes a turn or makes it again
	undoneTurn    int    // turn that the call has undone; 0: none, or the turn was made again since
	wroteDirectly bool   // set if its command wrote to files directly, which leaves no record
	reachesHosts  bool   // set if it, or its command, could reach hosts
	changes       []session.Changes
	bodyDeleted   bool // set if the body of its intent or of its changes was deleted from the log
	outcome       outcome
}

// outcome is the end of a call.
type outcome int

const (
	outcomeUnknown   outcome = iota // it has no result, was interrupted, or the host was at fault
	outcomeCommitted                // its changes are made
	outcomeFailed                   // it has failed, and its changes are not made
)

// read reads the log, and returns a *session.ChainError if the chain of its hashes is broken.
func read(events iter.Seq2[session.Event, error]) (*callLog, error) {
	l := &callLog{prompts: map[int]string{}, byID: map[string]*call{}, undone: map[int]bool{}, rewound: map[int]bool{}}
	for e, err := range session.VerifyEach(events) {
		if err != nil {
			return nil, err
		}
		l.add(e)
	}
	return l, nil
}

func (l *callLog) add(e session.Event) {
	l.turns = max(l.turns, e.Turn)
	c := l.byID[e.Call]
	switch e.Type {
	case session.TypeTurnStarted:
		var t session.TurnStarted
		if json.Unmarshal(e.Body, &t) == nil {
			l.prompts[e.Turn] = t.Prompt
		}
	case session.TypeToolCall:
		m, _ := e.Message()
		l.byID[e.Call] = &call{turn: e.Turn, after: l.turns, summary: m.Content}
	case session.TypeRewound:
		var r session.Rewound
		if json.Unmarshal(e.Body, &r) == nil {
			for n := max(r.Turn, 1); n <= l.turns; n++ {
				l.rewound[n] = true
			}
		}
	case session.TypeCallIntended:
		var i session.Intent
		if c == nil {
			return
		}
		if !slices.Contains(l.calls, c) { // a call that was asked about begins twice
			l.calls = append(l.calls, c)
		}
		if json.Unmarshal(e.Body, &i) != nil {
			c.bodyDeleted = true
			return
		}
		c.reachesHosts = c.reachesHosts || len(i.Network) > 0
		c.undo = i.Tool == tool.UndoTool && i.Digest == ""
		c.wroteDirectly = c.wroteDirectly || i.Exec && !i.Rehearsal && i.Changes != policy.ChangesStaged && i.Changes != policy.ChangesNone
	case session.TypeCallChanges:
		var changes session.Changes
		switch {
		case c == nil:
		case json.Unmarshal(e.Body, &changes) != nil:
			c.bodyDeleted = true
		default:
			for i := range changes.Files {
				changes.Files[i].Diff = "" // of no use here, and 256 KiB for each call
			}
			c.changes = append(c.changes, changes)
			c.wroteDirectly = false // it was staged: older versions did not record that
		}
	case session.TypeToolResult:
		if c != nil {
			l.noteResult(c, e)
		}
	}
}

// noteResult sets the outcome of a call, and the turn that it has undone.
func (l *callLog) noteResult(c *call, e session.Event) {
	var data llm.ResultData
	var envelope struct {
		Success bool      `json:"tool_success"`
		Code    tool.Code `json:"error_code"`
		Result  struct {
			Turn int  `json:"turn"`
			Redo bool `json:"redo"`
		} `json:"result"`
	}
	m, _ := e.Message()
	if json.Unmarshal(m.Data, &data) != nil || json.Unmarshal([]byte(data.Output), &envelope) != nil {
		return
	}
	switch {
	case envelope.Success && c.undo && envelope.Result.Redo:
		l.undone[envelope.Result.Turn] = false
		if again := l.lastUndo(); again != nil {
			again.undoneTurn = 0
		}
	case envelope.Success:
		if c.outcome = outcomeCommitted; c.undo {
			c.undoneTurn = envelope.Result.Turn
			l.undone[c.undoneTurn] = true
		}
	case envelope.Code != tool.CodeInterrupted && envelope.Code != tool.CodeHost:
		c.outcome = outcomeFailed
	}
}

// lastUndo returns the last call that has undone a turn which is still undone; nil: none.
func (l *callLog) lastUndo() *call {
	for _, c := range slices.Backward(l.calls) {
		if c.undoneTurn > 0 {
			return c
		}
	}
	return nil
}

// plan holds the changes that undo a turn, or make its changes again.
type plan struct {
	turn           int
	redo           bool   // set if the plan makes the turn's changes again
	prompt         string // prompt of the turn
	files          []file // sorted by path
	hasInterrupted bool   // set if a call of the turn has no known outcome: its changes may be made or not
}

// file is the planned change of one file, directory or link. A nil version means that there is
// no file. For a redo, both versions are those around the undoing call.
type file struct {
	path    string
	before  *session.Version   // version to put back
	after   *session.Version   // version that must exist now
	noImage session.NoPreimage // reason why the content of before is not stored; empty: it is stored
}

// refusal is the error of a turn that cannot be undone, or not made again.
type refusal struct {
	turn int
	redo bool
	why  string
}

func (r *refusal) Error() string {
	if r.redo {
		return fmt.Sprintf("the changes of turn %d cannot be made again: %s", r.turn, r.why)
	}
	return fmt.Sprintf("turn %d cannot be undone: %s", r.turn, r.why)
}

func (p *plan) refuse(format string, args ...any) *refusal {
	return &refusal{p.turn, p.redo, fmt.Sprintf(format, args...)}
}

// planUndo returns the plan to undo the newest turn that has changed something and is not
// undone; nil if there is none. Changes of interrupted calls count as made. Its error is a
// *[refusal].
func (l *callLog) planUndo() (*plan, error) {
	for turn := l.turns; turn >= max(l.from, 1); turn-- {
		if l.undone[turn] {
			continue
		}
		if p, err := l.planTurn(turn, true); p != nil || err != nil {
			return p, err
		}
	}
	return nil, nil
}

// planTurn returns the plan to undo one turn; nil if the turn has changed nothing. interrupted
// is set if the changes of interrupted calls count as made. Its error is a *[refusal].
func (l *callLog) planTurn(turn int, interrupted bool) (*plan, error) {
	var calls []*call
	for _, c := range l.calls {
		if c.turn == turn && !c.undo && !(c.wroteDirectly && l.from > 0) {
			calls = append(calls, c)
		}
	}
	p := &plan{turn: turn, prompt: l.prompts[turn]}
	return p.collectFiles(calls, interrupted)
}

// planRedo returns the plan to make the last undone turn again; nil: there is none.
func (l *callLog) planRedo() (*plan, error) {
	c := l.lastUndo()
	if c == nil {
		return nil, nil
	}
	p := &plan{turn: c.undoneTurn, redo: true, prompt: l.prompts[c.undoneTurn]}
	return p.collectFiles([]*call{c}, true)
}

// collectFiles adds the files that the calls have changed, and returns the plan; nil: there
// are none. interrupted is as in planTurn.
func (p *plan) collectFiles(calls []*call, interrupted bool) (*plan, error) {
	no := func(format string, args ...any) (*plan, error) { return nil, p.refuse(format, args...) }
	files := map[string]*file{}
	for _, c := range calls {
		switch {
		case c.wroteDirectly:
			return no("%s changed files directly, and what it changed is not known", c.summary)
		case c.bodyDeleted:
			return no("what it changed was deleted from the log")
		case len(c.changes) == 0 || c.outcome == outcomeFailed:
			continue
		case c.outcome == outcomeUnknown:
			if p.hasInterrupted = true; !interrupted {
				continue
			}
		}
		for _, changes := range c.changes {
			if changes.More > 0 {
				return no("a call has changed %d files, and the log names only the first %d", len(changes.Files)+changes.More, len(changes.Files))
			}
			steps, err := filesOf(changes)
			if err != nil {
				return no("%v", err)
			}
			for path, s := range steps {
				f := files[path]
				switch {
				case f == nil:
					files[path] = s
				case !same(f.after, s.before):
					return no("%q was changed by somebody else between two of its calls", path)
				default:
					f.after = s.after
				}
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if f := files[path]; !same(f.before, f.after) {
			p.files = append(p.files, *f)
		}
	}
	if len(p.files) == 0 {
		return nil, nil
	}
	return p, p.checkContents()
}

// filesOf returns the versions before and after one call of each file that it has changed, by
// path. The error is that the call has moved a directory.
func filesOf(changes session.Changes) (map[string]*file, error) {
	steps := map[string]*file{}
	at := func(path string) *file {
		if path = filename.Parse(path); steps[path] == nil {
			steps[path] = &file{path: path}
		}
		return steps[path]
	}
	for _, c := range changes.Files {
		switch {
		case c.Kind == tool.TimesChanged:
			continue
		case c.Kind == tool.Renamed && c.Before != nil && strings.HasPrefix(c.Before.Mode, "d"):
			return nil, fmt.Errorf("it has moved the directory %q to %q, with what is in it; move it back by hand", c.From, c.Path)
		}
		if c.Before != nil {
			from := at(cmp.Or(c.From, c.Path))
			from.before, from.noImage = c.Before, c.NoPreimage
		}
		if c.After != nil {
			at(c.Path).after = c.After
		}
	}
	return steps, nil
}

// checkContents refuses the plan if a content that it needs is not stored.
func (p *plan) checkContents() error {
	var all []string
	for _, f := range p.files {
		if f.noImage != "" && !sameContent(f.before, f.after) {
			all = append(all, fmt.Sprintf("%q (%s)", f.path, cmp.Or(noImageWords[f.noImage], string(f.noImage))))
		}
	}
	if len(all) == 0 {
		return nil
	}
	if more := len(all) - maxNamed; more > 0 {
		all = append(all[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return p.refuse("the earlier content is not stored for %s", strings.Join(all, ", "))
}

// maxNamed limits the files that a text names; the others are counted.
const maxNamed = 10

var noImageWords = map[session.NoPreimage]string{
	session.NoPreimageSecret:     "it looks like a secret, or holds one",
	session.NoPreimageLarge:      "it has more than 16 MiB",
	session.NoPreimageMany:       "the call changes more than 64 MiB",
	session.NoPreimageUnreadable: "its mode forbids reading it",
}

// same reports whether two versions are equal. A regular file without a hash equals no other.
func same(a, b *session.Version) bool {
	switch {
	case a == nil || b == nil:
		return a == b
	case typeOf(a) != typeOf(b) || permOf(a) != permOf(b) || a.Target != b.Target:
		return false
	}
	return typeOf(a) != 0 || sameContent(a, b)
}

// sameContent reports whether both versions are regular files with the same known hash.
func sameContent(a, b *session.Version) bool {
	return regular(a) && regular(b) && a.SHA256 != "" && a.SHA256 == b.SHA256
}

func regular(v *session.Version) bool { return v != nil && typeOf(v) == 0 }

// typeOf returns the file type of a version; fs.ModeIrregular if its mode cannot be parsed.
func typeOf(v *session.Version) fs.FileMode { return parseMode(v.Mode).Type() }

// permOf returns the permission bits of a version; 0 for a link or an invalid mode.
func permOf(v *session.Version) fs.FileMode {
	if mode := parseMode(v.Mode); mode.Type() != fs.ModeSymlink {
		return mode.Perm()
	}
	return 0
}

// parseMode parses the output of [fs.FileMode.String]. For another text it returns
// fs.ModeIrregular.
func parseMode(text string) (mode fs.FileMode) {
	const letters, rwx = "dalTLDpSugct?", "rwxrwxrwx"
	n := len(text) - len(rwx)
	if n < 1 {
		return fs.ModeIrregular
	}
	for _, c := range text[:n] {
		if i := strings.IndexRune(letters, c); i >= 0 {
			mode |= 1 << (31 - i)
		} else if c != '-' {
			return fs.ModeIrregular
		}
	}
	for i, c := range []byte(text[n:]) {
		if c == rwx[i] {
			mode |= 1 << (8 - i)
		} else if c != '-' {
			return fs.ModeIrregular
		}
	}
	return mode
}
