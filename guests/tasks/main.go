// Command tasks is the guest module with the tools of a session: its list of tasks, the
// time, the working directory, and facts of the machine.
package main

import "github.com/stockade-dev/stockade/sdk/go/tool"

func init() {
	tool.Module("tasks", "0.1.0")
	tool.Register("add_task", "Add a task to the list of this session, which the user sees too. "+
		"For work of three steps or more: add one task for each step before you begin.",
		addTask, tool.KeepsData(),
		tool.Errors("INVALID_ARGUMENTS: content is empty or longer than 2 KiB", storeFull),
		tool.Limits(sessionNote, "200 tasks; of more, the oldest that is completed goes", "2 KiB of text in a task, and together what tool_store permits"),
		tool.Example(`{"content":"Write the tests for the parser"}`, "adds task_1, or what comes next"))
	tool.Register("list_tasks", "List the tasks of this session with their status: [ ] pending, [~] in progress, [x] completed.",
		listTasks, tool.KeepsData(),
		tool.Limits(sessionNote),
		tool.Example(`{}`, "lists all tasks"))
	tool.Register("update_task", "Set the status of a task: in_progress when you begin with it, completed as soon as it is done.",
		updateTask, tool.KeepsData(),
		tool.Errors("NOT_FOUND: there is no task with that id; the error names those there are",
			"INVALID_ARGUMENTS: status is none of the three, or content is longer than 2 KiB", storeFull),
		tool.Example(`{"task_id":"task_1","status":"completed"}`, "task_1 is done"),
		tool.Example(`{"task_id":"task_2","status":"pending","content":"Write fewer tests"}`, "task_2 waits again, and has another text"))
	tool.Register("get_current_time", "Tell the date and the time, in the time zone of the user.",
		currentTime,
		tool.Limits("the name of the time zone is left out if the user keeps it private (tools.system_info); what it is ahead of UTC never is"),
		tool.Example(`{}`, "tells the time, in ISO 8601"))
	tool.Register("get_working_directory", "Tell the directory in which relative paths start.",
		workingDirectory,
		tool.Example(`{}`, "tells the directory"))
	tool.Register("system_info", "Tell what machine this is: system, architecture, processors, memory, time zone. "+
		"What the user keeps private is left out.",
		systemInfo,
		tool.Errors("UNAVAILABLE: the user shares no facts of the machine (tools.system_info)"),
		tool.Limits("only what tools.system_info lists; never the name of the machine or of its user"),
		tool.Example(`{}`, "tells what machine this is"))
	for _, f := range facts {
		tool.Config(f.name, "")
	}
	tool.Config(offsetName, "")
}

// sessionNote is for a person who calls the tools by hand.
const sessionNote = "tasks are kept with the session, that is with a chat or a run and what resumes it; each stockade call is a session of its own"

const storeFull = "STORE_FULL: the list holds as much as it may, and no task is completed; complete some"

func main() {}
