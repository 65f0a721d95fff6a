package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
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
	tasks     map[string]string           // values of the list of tasks, by key
	taskCalls map[string]bool             // calls that have changed the list of tasks
	changes   map[string][]session.Change // changes of calls that have not ended yet, by call
	files     factList                    // changed files
	commands  factList
}

// factList is a list of facts, the newest last.
type factList []fact

// fact is a fact about a file or a command.
type fact struct{ subject, line string }

// add adds the facts in an event.
func (f *facts) add(e session.Event) {
	if f.tasks == nil {
		f.tasks, f.taskCalls, f.changes = map[string]string{}, map[string]bool{}, map[string][]session.Change{}
	}
	switch e.Type {
	case session.TypeToolStoreChanges:
		if body := bodyOf[session.ToolStoreChanges](e); body.Owner == "builtin:tasks" {
			f.taskCalls[e.Call] = true
			for _, entry := range body.Set {
				f.tasks[entry.Key] = entry.Text
			}
			for _, key := range body.Deleted {
				delete(f.tasks, key)
			}
		}
	case session.TypeCallChanges:
		if e.Turn == 0 {
			return // of a person's own call
		}
		files := bodyOf[session.Changes](e).Files
		f.changes[e.Call] = append(f.changes[e.Call], files[:min(len(files), maxFactFiles)]...)
	}
}

// addCall adds the facts about a call of the model that has ended, with the message of its result.
func (f *facts) addCall(call llm.CallData, result llm.Message) {
	var data llm.ResultData
	var args struct{ Command string }
	var envelope struct {
		ExitCode *int `json:"exit_code"`
		Result   struct {
			ExitCode *int `json:"exit_code"`
		} `json:"result"`
	}
	changes := f.changes[call.ID]
	delete(f.changes, call.ID)
	if isCommand := call.Function.Name == "bash"; !isCommand && changes == nil || json.Unmarshal(result.Data, &data) != nil {
		return
	} else if isCommand && json.Unmarshal([]byte(call.Function.Arguments), &args) == nil && json.Unmarshal([]byte(data.Output), &envelope) == nil {
		code := "did not end"
		if n := cmp.Or(envelope.Result.ExitCode, envelope.ExitCode); n != nil {
			code = fmt.Sprintf("exit code %d", *n)
		}
		command := strings.ReplaceAll(clip(args.Command, maxFactBytes), "\n", " ")
		f.commands = f.commands.with(command, fmt.Sprintf("%s: %s (call %s)", command, code, call.ID), maxFactCommands)
	}
	for _, c := range changes {
		if path := clip(c.Path, maxFactBytes); data.Success {
			f.files = f.files.with(path, fmt.Sprintf("%s %s (call %s)", c.Kind, path, call.ID), maxFactFiles)
		}
	}
}

// with returns the list with a fact in place of an earlier one about the same subject, and with at
// most limit facts.
func (l factList) with(subject, line string, limit int) factList {
	l = slices.DeleteFunc(slices.Clone(l), func(f fact) bool { return f.subject == subject })
	l = append(l, fact{subject, line})
	return l[max(len(l)-limit, 0):]
}

func (l factList) lines() (lines []string) {
	for _, f := range l {
		lines = append(lines, f.line)
	}
	return lines
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
