package undo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/stage"
	"github.com/stockade-dev/stockade/host/tool"
)

// Undoer stages the undoing of turns of one session. It is safe for concurrent use.
type Undoer struct {
	store    session.Store
	session  string
	stageDir func() string
	budget   *stage.Budget
	redact   *redact.Redactor
}

// New returns the undoer of a session. stageDir returns the directory of the stage area;
// empty: changes are staged in memory. budget limits them together with the staged changes of
// calls; nil: no limit. Diffs of files with a secret that redact knows are not shown; nil:
// none is known.
func New(store session.Store, session string, stageDir func() string, budget *stage.Budget, redact *redact.Redactor) *Undoer {
	return &Undoer{store: store, session: session, stageDir: stageDir, budget: budget, redact: redact}
}

// Output is the output of a call that undoes a turn, or makes its changes again.
type Output struct {
	Turn     int      `json:"turn"`            // number of the turn
	Redo     bool     `json:"redo,omitempty"`  // set if the changes were made again
	Prompt   string   `json:"prompt"`          // prompt of the turn
	Files    []string `json:"files"`           // paths that were put back; empty: all were as before already
	KeptDirs []string `json:"stays,omitempty"` // directories of the turn that stay, as they hold other files
}

// Args holds the arguments of a call that undoes a turn.
type Args struct {
	Redo bool `json:"redo,omitempty"` // makes the changes of the last undone turn again
	// From is the first turn that may be undone; calls that have changed files directly are
	// left out. 0: every turn may, and with such a call none of its changes is undone.
	From int `json:"from,omitempty"`
}

// Undo stages the undoing of the newest turn that has changed something and is not undone yet;
// with Redo, it stages the changes of the last undone turn again. If this is not possible, it
// returns a failed result. An error is the host's fault. textForModel is for the model if the
// changes are made.
func (u *Undoer) Undo(ctx context.Context, grant policy.Grant, call tool.Call) (_ tool.Result, _ policy.Staged, textForModel string, err error) {
	if err := grant.Check(call, ""); err != nil {
		return tool.Result{}, nil, "", fmt.Errorf("undo: %w", err)
	}
	// A command may have made all of the changes, so its time limit holds.
	timeout := max(grant.Limits().Timeout, grant.Limits().ExecTimeoutMax)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	log, err := read(u.store.Events(ctx, u.session, 0))
	if broken, ok := errors.AsType[*session.ChainError](err); ok {
		return failed(tool.CodeFailed, tool.ValidationFailed, "the log is not as it was written: "+broken.Error(), "`stockade audit verify` says more"), nil, "", nil
	} else if err != nil {
		return tool.Result{}, nil, "", fmt.Errorf("undo: %w", err)
	}
	var args Args
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return tool.Result{}, nil, "", fmt.Errorf("undo: %w", err)
	}
	log.from = args.From
	find := log.planUndo
	if args.Redo {
		find = log.planRedo
	}
	p, err := find()
	if no, ok := errors.AsType[*refusal](err); ok {
		return failed(tool.CodeFailed, tool.NotFound, no.Error(), byHand), nil, "", nil
	}
	switch {
	case p == nil && args.Redo:
		return failed(tool.CodeFailed, tool.NotFound, "nothing was undone that could be made again", ""), nil, "", nil
	case p == nil:
		return failed(tool.CodeFailed, tool.NotFound, "no turn of this session has changed files that could be put back", ""), nil, "", nil
	}
	s, err := u.stage(ctx, grant, call.Cwd, p)
	if err != nil {
		return p.errorResult(err), nil, "", nil
	}
	if len(s.conflicts) > 0 && p.hasInterrupted { // try again as if the interrupted calls had changed nothing
		if p, err := log.planTurn(p.turn, false); p != nil && err == nil {
			if other, err := u.stage(ctx, grant, call.Cwd, p); err == nil && len(other.conflicts) == 0 {
				s.drop()
				s = other
			} else {
				other.drop()
			}
		}
	}
	if len(s.conflicts) > 0 {
		defer s.drop()
		return s.conflictResult(), nil, "", nil
	}
	slices.Sort(s.keptDirs)
	out := Output{Turn: s.plan.turn, Redo: s.plan.redo, Prompt: s.plan.prompt, Files: []string{}, KeptDirs: s.keptDirs}
	if !s.alreadyUndone {
		for _, f := range s.plan.files {
			if !slices.Contains(s.keptDirs, f.path) {
				out.Files = append(out.Files, f.path)
			}
		}
	}
	return tool.Result{Output: tool.Marshal(out)}, &stage.Staged{Set: s.set, Call: call, Timeout: timeout, CommitTimeout: timeout}, s.plan.textForModel(), nil
}

// byHand is the hint for a turn that cannot be undone.
const byHand = "`stockade session show` lists what the turn has changed; `git diff` may show it, and put it back"

// failed returns a failed result. hint empty: none.
func failed(code tool.Code, typ tool.ErrorType, why, hint string) tool.Result {
	r := tool.Failed(code, typ, "nothing is changed: %s", why)
	if hint != "" {
		r.Err.Hint = tool.Advise("%s", hint)
	}
	return r
}

// errorResult returns the result for an error of staging the plan.
func (p *plan) errorResult(err error) tool.Result {
	if no, ok := errors.AsType[*refusal](err); ok {
		return failed(tool.CodeFailed, tool.ValidationFailed, no.Error(), byHand)
	}
	return failed(tool.CodeNotKept, tool.IOError, fmt.Sprintf("turn %d: %v", p.turn, err), byHand)
}

// textForModel tells the model which files have changed: its knowledge of them is outdated.
func (p *plan) textForModel() string {
	var names []string
	bytes := 0
	for _, f := range p.files {
		name := strconv.Quote(f.path)
		if bytes += len(name); len(names) == maxTold || bytes > maxToldBytes {
			break
		}
		names = append(names, name)
	}
	if more := len(p.files) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	prompt, _, _ := strings.Cut(p.prompt, "\n")
	what := "undone all file changes of the turn that began with %.80q. These are as they were before that turn"
	if p.redo {
		what = "made the file changes of the turn that began with %.80q again, which were undone. These are as that turn has left them"
	}
	return fmt.Sprintf("The user has "+what+": %s. What this conversation says about them otherwise is out of date; "+
		"read them again before you rely on them or change them.", prompt, strings.Join(names, ", "))
}

// Limits for the file names in the text for the model.
const (
	maxTold      = 30      // names; further files are counted
	maxToldBytes = 8 << 10 // bytes of all names; further files are counted
)

// content returns the content of a version from the store. It returns session.ErrNoPreimage if
// the content is not stored, and another error if it does not have the recorded hash.
func (u *Undoer) content(ctx context.Context, v *session.Version) ([]byte, error) {
	sum, err := hex.DecodeString(v.SHA256)
	if err != nil || len(sum) != sha256.Size {
		return nil, session.ErrNoPreimage
	}
	content, err := u.store.Preimage(ctx, u.session, [sha256.Size]byte(sum))
	if err == nil && sha256.Sum256(content) != [sha256.Size]byte(sum) {
		err = fmt.Errorf("the image %.12s is not what was written", v.SHA256)
	}
	return content, err
}
