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

// facts holds what the program itself knows about the work in a session, from the log. The zero
// value is a new session.
type facts struct {
	tasks     map[string]string // values of the list of tasks, by key
	taskCalls map[string]bool   // calls that have changed the list of tasks
	changes   map[string][]fact // files that calls without a result are about to change, by call
	files     []fact            // changed files, the newest last
	commands  []fact            // commands that the model has run, the newest last
}

// fact is a line about a file, a command or a task.
type fact struct{ subject, line string }

// add adds the facts in an event.
func (f *facts) add(e session.Event) {
	switch e.Type {
	case session.TypeToolStoreChanges:
		if f.tasks == nil {
			f.tasks, f.taskCalls = map[string]string{}, map[string]bool{}
		}
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
		if f.changes == nil {
			f.changes = map[string][]fact{}
		}
		files := bodyOf[session.Changes](e).Files
		for _, c := range files[:min(len(files), maxFactFiles)] {
			path := clip(c.Path, maxFactBytes)
			f.changes[e.Call] = append(f.changes[e.Call], fact{path, fmt.Sprintf("%s %s (call %s)", c.Kind, path, e.Call)})
		}
	case session.TypeToolResult:
		var data llm.ResultData
		m, _ := e.Message()
		for _, c := range f.changes[e.Call] {
			if json.Unmarshal(m.Data, &data) == nil && data.Success { // otherwise nothing was changed
				f.files = newest(f.files, c, maxFactFiles)
			}
		}
		delete(f.changes, e.Call)
	}
}

// addCommand adds a command of the model that has ended.
func (f *facts) addCommand(call llm.CallData, result llm.Message) {
	type ended struct {
		Code *int `json:"exit_code"`
	}
	var data llm.ResultData
	var args struct{ Command string }
	var envelope struct { // a failure has its exit code beside its error
		ended
		Result ended
	}
	if call.Function.Name != "bash" || json.Unmarshal([]byte(call.Function.Arguments), &args) != nil ||
		json.Unmarshal(result.Data, &data) != nil || json.Unmarshal([]byte(data.Output), &envelope) != nil {
		return
	}
	code := "did not end"
	if n := cmp.Or(envelope.Result.Code, envelope.Code); n != nil {
		code = fmt.Sprintf("exit code %d", *n)
	}
	command := clip(args.Command, maxFactBytes)
	f.commands = newest(f.commands, fact{command, fmt.Sprintf("%s: %s (call %s)", strings.ReplaceAll(command, "\n", " "), code, call.ID)}, maxFactCommands)
}

// newest returns a list with a fact in place of an earlier one about the same subject, and with at
// most limit facts.
func newest(list []fact, f fact, limit int) []fact {
	list = append(slices.DeleteFunc(slices.Clone(list), func(o fact) bool { return o.subject == f.subject }), f)
	return list[max(len(list)-limit, 0):]
}

// openTasks returns the tasks of the list that are not completed, in their order.
func (f *facts) openTasks() (open []fact) {
	number := func(key string) int {
		n, _ := strconv.Atoi(strings.TrimPrefix(key, "task_"))
		return n
	}
	for _, key := range slices.SortedFunc(maps.Keys(f.tasks), func(a, b string) int { return number(a) - number(b) }) {
		var task struct{ Content, Status string }
		if json.Unmarshal([]byte(f.tasks[key]), &task) == nil && task.Status != "completed" && strings.HasPrefix(key, "task_") {
			open = append(open, fact{key, key + " (" + task.Status + "): " + task.Content})
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
