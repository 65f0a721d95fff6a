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
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/stage"
	"github.com/stockade-dev/stockade/host/tool"
)

// Undoer stages the way back from the turns of one session.
type Undoer struct {
	store    session.Store
	session  string
	stageDir func() string
	budget   *stage.Budget
	redact   *redact.Redactor
}

// New returns the undoer of a session. stages is the directory for what is staged;
// empty: in memory. budget bounds that, with what calls have staged; nil: nothing does.
// Differences in files that hold a secret that is known are not shown; nil: none are
// known. It is safe for concurrent use.
func New(store session.Store, session string, stages func() string, budget *stage.Budget, known *redact.Redactor) *Undoer {
	return &Undoer{store: store, session: session, stageDir: stages, budget: budget, redact: known}
}

// Output is the output of a call that undoes a turn.
type Output struct {
	Turn   int    `json:"turn"`
	Redo   bool   `json:"redo,omitempty"` // its changes are made again
	Prompt string `json:"prompt"`
	// Files are put back; none if all of them were already.
	Files []string `json:"files"`
	// KeptDirs are directories that the turn has made and that hold other files by now.
	KeptDirs []string `json:"stays,omitempty"`
}

// Args are the arguments of a call that undoes.
type Args struct {
	Redo bool `json:"redo,omitempty"` // what was undone last is made again
}

// Undo stages the way back from the last turn that has changed something and is not
// undone yet, or from the last undoing. told is what the model has to know if that is
// made.
func (u *Undoer) Undo(ctx context.Context, grant policy.Grant, call tool.Call) (_ tool.Result, _ policy.Staged, told string, err error) {
	if err := grant.Check(call, ""); err != nil {
		return tool.Result{}, nil, "", fmt.Errorf("undo: %w", err)
	}
	// As long as a command may take: one may have made all of it.
	timeout := max(grant.Limits().Timeout, grant.Limits().ExecTimeoutMax)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	past, err := read(u.store.Events(ctx, u.session, 0))
	if broken, ok := errors.AsType[*session.ChainError](err); ok {
		return failed(tool.CodeFailed, tool.ValidationFailed, "the log is not as it was written: "+broken.Error(), "`stockade audit verify` says more"), nil, "", nil
	} else if err != nil {
		return tool.Result{}, nil, "", fmt.Errorf("undo: %w", err)
	}
	var args Args
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return tool.Result{}, nil, "", fmt.Errorf("undo: %w", err)
	}
	find := past.planUndo
	if args.Redo {
		find = past.planRedo
	}
	w, err := find()
	if no, ok := errors.AsType[*refusal](err); ok {
		return failed(tool.CodeFailed, tool.NotFound, no.Error(), byHand), nil, "", nil
	}
	switch {
	case w == nil && args.Redo:
		return failed(tool.CodeFailed, tool.NotFound, "nothing was undone that could be made again", ""), nil, "", nil
	case w == nil:
		return failed(tool.CodeFailed, tool.NotFound, "no turn of this session has changed files that could be put back", ""), nil, "", nil
	}
	s, err := u.stage(ctx, grant, call.Cwd, w)
	if err != nil {
		return w.errorResult(err), nil, "", nil
	}
	if len(s.conflicts) > 0 && w.hasInterrupted { // the changes of a call that was interrupted are all made or all not
		if w, err := past.planTurn(w.turn, false); w != nil && err == nil {
			if other, err := u.stage(ctx, grant, call.Cwd, w); err == nil && len(other.conflicts) == 0 {
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
	return tool.Result{Output: tool.Marshal(out)}, &stagedUndo{s.set, call, timeout}, s.plan.textForModel(), nil
}

// byHand is what to do where nothing can be undone.
const byHand = "`stockade session show` lists what the turn has changed; `git diff` may show it, and put it back"

func failed(code tool.Code, typ tool.ErrorType, why, hint string) tool.Result {
	r := tool.Failed(code, typ, "nothing is changed: %s", why)
	if hint != "" {
		r.Err.Hint = tool.Advise("%s", hint)
	}
	return r
}

// errorResult is the result where the way back cannot be staged.
func (w *plan) errorResult(err error) tool.Result {
	if no, ok := errors.AsType[*refusal](err); ok {
		return failed(tool.CodeFailed, tool.ValidationFailed, no.Error(), byHand)
	}
	return failed(tool.CodeNotKept, tool.IOError, fmt.Sprintf("turn %d: %v", w.turn, err), byHand)
}

// textForModel is what the model is told: what it knows of these files is not so any more.
func (w *plan) textForModel() string {
	var names []string
	bytes := 0
	for _, f := range w.files {
		name := strconv.Quote(f.path)
		if bytes += len(name); len(names) == maxTold || bytes > maxToldBytes {
			break
		}
		names = append(names, name)
	}
	if more := len(w.files) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	prompt, _, _ := strings.Cut(w.prompt, "\n")
	what := "undone all file changes of the turn that began with %.80q. These are as they were before that turn"
	if w.redo {
		what = "made the file changes of the turn that began with %.80q again, which were undone. These are as that turn has left them"
	}
	return fmt.Sprintf("The user has "+what+": %s. What this conversation says about them otherwise is out of date; "+
		"read them again before you rely on them or change them.", prompt, strings.Join(names, ", "))
}

// How many files are named to the model, and in how many bytes.
const (
	maxTold      = 30
	maxToldBytes = 8 << 10
)

// content is the content of a version, which is what was there when it was recorded,
// whatever is in the store.
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

// stagedUndo is the way back, on its stage.
type stagedUndo struct {
	set     *stage.Set
	call    tool.Call
	timeout time.Duration
}

// Changes implements policy.Staged.
func (s *stagedUndo) Changes(ctx context.Context) ([]tool.Change, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.set.Changes(ctx)
}

// Commit implements policy.Staged.
func (s *stagedUndo) Commit(ctx context.Context, grant policy.Grant) error {
	if err := grant.Check(s.call, ""); err != nil {
		return fmt.Errorf("commit %s: %w", s.call.Tool, err)
	}
	if grant.Rehearsal() {
		return fmt.Errorf("commit %s: %w", s.call.Tool, policy.ErrNoGrant)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err := s.set.Commit(ctx)
	if left, ok := errors.AsType[*stage.CommitError](err); ok && left.Done {
		return fmt.Errorf("%w: %w", policy.ErrUntidy, err)
	}
	return err
}

// Drop implements policy.Staged.
func (s *stagedUndo) Drop() error { return s.set.Drop() }
