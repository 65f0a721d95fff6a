package agent

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
)

// Limits of the facts about a session: number of files and of commands, the newest of which
// stay, and bytes of one path or command.
const (
	maxFactFiles    = 100
	maxFactCommands = 30
	maxFactBytes    = 200
)

// taskPrefix begins the keys of tasks in the store of the built-in tools for tasks.
const taskPrefix = "task_"

// facts holds what the program itself knows about the work in a session, from the log. The zero
// value is a new session.
type facts struct {
	tasks     map[string]string // values of the list of tasks, by key
	taskCalls map[string]bool   // calls that have changed the list of tasks
	files     []session.ContextFile
	commands  []session.ContextCommand
	running   map[string]session.ContextCommand // commands that have no result yet, by call
	changes   map[string][]session.ContextFile  // changes of calls that have no result yet, by call
}

// add adds the facts in an event.
func (f *facts) add(e session.Event) {
	if f.tasks == nil {
		f.tasks, f.taskCalls = map[string]string{}, map[string]bool{}
		f.running, f.changes = map[string]session.ContextCommand{}, map[string][]session.ContextFile{}
	}
	m, _ := e.Message()
	switch e.Type {
	case session.TypeToolStoreChanges:
		var body session.ToolStoreChanges
		if json.Unmarshal(e.Body, &body) == nil && body.Owner == "builtin:tasks" {
			f.taskCalls[e.Call] = true
			for _, entry := range body.Set {
				f.tasks[entry.Key] = entry.Text
			}
			for _, key := range body.Deleted {
				delete(f.tasks, key)
			}
		}
	case session.TypeToolCall:
		var call llm.CallData
		var args struct{ Command string }
		if json.Unmarshal(m.Data, &call) == nil && call.Function.Name == "bash" && json.Unmarshal([]byte(call.Function.Arguments), &args) == nil {
			f.running[e.Call] = session.ContextCommand{Command: clip(args.Command, maxFactBytes), Call: e.Call}
		}
	case session.TypeCallChanges:
		var body session.Changes
		if json.Unmarshal(e.Body, &body) == nil {
			for _, c := range body.Files[:min(len(body.Files), maxFactFiles)] {
				f.changes[e.Call] = append(f.changes[e.Call], session.ContextFile{Path: clip(c.Path, maxFactBytes), Kind: c.Kind, Call: e.Call})
			}
		}
	case session.TypeToolResult:
		var data llm.ResultData
		var envelope struct {
			ExitCode *int `json:"exit_code"`
			Result   struct {
				ExitCode *int `json:"exit_code"`
			} `json:"result"`
		}
		_ = json.Unmarshal(m.Data, &data)
		for _, c := range f.changes[e.Call] {
			if data.Success {
				f.files = newest(f.files, c, maxFactFiles, func(o session.ContextFile) bool { return o.Path == c.Path })
			}
		}
		if c, ok := f.running[e.Call]; ok && json.Unmarshal([]byte(data.Output), &envelope) == nil {
			if c.ExitCode = envelope.Result.ExitCode; c.ExitCode == nil {
				c.ExitCode = envelope.ExitCode
			}
			f.commands = newest(f.commands, c, maxFactCommands, func(o session.ContextCommand) bool { return o.Command == c.Command })
		}
		delete(f.running, e.Call)
		delete(f.changes, e.Call)
	}
}

// newest returns a list with a value at its end, without those that are the same, and with at
// most limit values.
func newest[T any](list []T, value T, limit int, same func(T) bool) []T {
	list = append(slices.DeleteFunc(slices.Clone(list), same), value)
	return list[max(len(list)-limit, 0):]
}

// openTasks returns the tasks of the list that are not completed, in their order.
func (f *facts) openTasks() (open []string) {
	number := func(key string) int {
		n, _ := strconv.Atoi(strings.TrimPrefix(key, taskPrefix))
		return n
	}
	for _, key := range slices.SortedFunc(maps.Keys(f.tasks), func(a, b string) int { return number(a) - number(b) }) {
		var task struct{ Content, Status string }
		if json.Unmarshal([]byte(f.tasks[key]), &task) == nil && task.Status != "completed" && strings.HasPrefix(key, taskPrefix) {
			open = append(open, key+" ("+task.Status+"): "+task.Content)
		}
	}
	return open
}

// clip returns a text without what is behind its first limit bytes.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + " ..."
}
