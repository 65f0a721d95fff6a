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

// Undoer stages the way back from what calls of a session have changed; package undo
// has one.
type Undoer interface {
	// Undo stages it for the last turn that has changed something and is not undone
	// yet or, where the arguments say so, for the last call that undid one. To a call
	// that undoes it is what a [Runner]'s Run is to others. told is what the model has
	// to know if the changes are made.
	Undo(ctx context.Context, grant policy.Grant, call tool.Call) (result tool.Result, staged policy.Staged, told string, err error)
}

// undoEntry is the tool that undoes. The host answers its calls itself, and only
// [Dispatcher.Undo] makes any.
var undoEntry = tool.NewEntry(tool.Spec{
	Definition: tool.Definition{
		Name: tool.UndoTool, Description: "Put the files back that the last turn has changed.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"redo":{"type":"boolean"}},"additionalProperties":false}`),
	},
	Capabilities: tool.Capabilities{Files: tool.FilesWrite},
}, &tool.Module{
	Name: "stockade", Origin: tool.OriginBuiltin,
	Read: func() ([]byte, error) { return nil, errors.New("the host answers these calls itself") },
}, "")

// Undo puts back what the last turn has changed that is not undone yet, or nothing; with
// the argument redo, it makes again what was undone last. It is a call like any other, of
// the person who asks for it: rules and the list of paths that need care decide about it,
// and its changes are recorded before they are made. That it was asked for is the answer
// to the usual question. The model is told by a brief, which is recorded with the result.
// Of the call, ID, Args and Cwd count.
func (d *Dispatcher) Undo(ctx context.Context, call tool.Call) (tool.Result, error) {
	if d.opts.Undo == nil {
		return tool.Result{}, errors.New("undo: this session keeps nothing by which changes could be undone")
	}
	call.Tool, call.Caller, call.Turn, call.Step = tool.UndoTool, tool.CallerPerson, 0, 0
	return d.startEntry(ctx, call, "", undoEntry).wait()
}

// requesterApproval is the answer of a person who has asked for the call itself.
func requesterApproval() policy.Answer {
	return policy.Answer{Allow: true, Scope: policy.ScopeOnce, By: "who asked for it"}
}

// undoBrief are what the model is told of a call of a person. It is a brief, as it has names of
// files in it, which whoever made the files has chosen.
func (p *pending) undoBrief(result tool.Result) []session.Draft {
	if p.textForModel == "" || result.Err != nil {
		return nil
	}
	return []session.Draft{session.NewDraft(session.TypeMessage, 0, 0, "", llm.BriefMessage(tool.UndoTool, p.textForModel))}
}
