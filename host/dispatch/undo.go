package dispatch

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// Undoer stages the changes that undo earlier calls of a session. Package undo has one.
type Undoer interface {
	// Undo stages the undoing of the newest turn that has changed something and is not undone
	// yet; with the argument redo, it stages the changes of the last undone turn again. Its
	// results are as those of [Runner].Run; textForModel is for the model if they are made.
	Undo(ctx context.Context, grant policy.Grant, call tool.Call) (result tool.Result, staged policy.Staged, textForModel string, err error)
}

// undoEntry is the tool that undoes a turn. Only [Dispatcher.Undo] makes calls of it, and the
// host answers them itself.
var undoEntry = tool.NewEntry(tool.Spec{
	Definition: tool.Definition{
		Name: tool.UndoTool, Description: "Put the files back that the last turn has changed.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"redo":{"type":"boolean"},"from":{"type":"integer","minimum":1}},"additionalProperties":false}`),
	},
	Capabilities: tool.Capabilities{Files: tool.FilesWrite},
}, &tool.Module{
	Name: "stockade", Origin: tool.OriginBuiltin,
	Read: func() ([]byte, error) { return nil, errors.New("the host answers these calls itself") },
}, "")

// Undo takes back the changes of the newest turn that has some and is not undone yet. With the
// argument redo, it makes the changes of the last undone turn again. It is a call like any
// other, made by the person: rules and the list of special paths apply, and the changes are
// recorded before they are made. The request itself answers the usual question about changes.
// The model is told by a brief, which is recorded with the result. Undo uses only ID, Args and
// Cwd of the call. Its error is as in [Dispatcher.Call], or that the session has no [Undoer].
func (d *Dispatcher) Undo(ctx context.Context, call tool.Call) (tool.Result, error) {
	if d.opts.Undo == nil {
		return tool.Result{}, errors.New("undo: this session does not store what undoing needs")
	}
	call.Tool, call.Caller, call.Turn, call.Step = tool.UndoTool, tool.CallerPerson, 0, 0
	p := d.newPending(call)
	p.hostTool = undoEntry
	go p.drive(ctx)
	return p.wait()
}

// undoBrief returns the message that tells the model what a person undid; nil: nothing was
// changed. It is a brief, because strangers may have chosen the file names in it.
func (p *pending) undoBrief(result tool.Result) []session.Draft {
	if p.textForModel == "" || result.Err != nil {
		return nil
	}
	return []session.Draft{session.NewDraft(session.TypeMessage, 0, 0, "", llm.BriefMessage(tool.UndoTool, p.textForModel))}
}
