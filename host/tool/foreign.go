package tool

import (
	"slices"
	"strings"
	"sync"
)

// standIn is the replacement that our tools offer for a tool of another system.
type standIn struct {
	tools string // names of built-in tools, separated by blanks; empty: none
	how   string // a hint for the model
}

var (
	standRead    = standIn{"file_read", "use file_read with path, and with offset and limit for a part of a file"}
	standWrite   = standIn{"file_write", "use file_write with path and content, the whole of it"}
	standEdit    = standIn{"file_edit", "use file_edit with path, old_string (the text as it is in the file, once) and new_string; read the file first"}
	standEdits   = standIn{"file_edit file_write", "use file_edit for each change, with path, old_string (the text as it is in the file, once) and new_string, and file_write for a new file"}
	standPatch   = standIn{"apply_patch", "use apply_patch with patch, from *** Begin Patch to *** End Patch"}
	standEditor  = standIn{"file_read file_edit insert_lines file_write", "use file_read to view, file_edit with path, old_string and new_string to replace, insert_lines with path, line_start and new_content to insert, file_write to create"}
	standInsert  = standIn{"insert_lines", "use insert_lines with path, line_start and new_content; read the file first"}
	standList    = standIn{"ls", "use ls with path"}
	standFind    = standIn{"glob", "use glob with pattern, such as **/*.go"}
	standGrep    = standIn{"grep", "use grep with pattern (a regular expression), and with path and file_filter where to search"}
	standCommand = standIn{"bash", "use bash with command, and with timeout_seconds if it takes long"}
	standWaits   = standIn{"bash", "a command ends with its call: use bash with command, and with timeout_seconds if it takes long"}
	standAnswer  = standIn{"", "write it in your answer: the person reads that, and replies to it"}
	standTasks   = standIn{"add_task update_task list_tasks", "use add_task with content for each task, update_task with task_id and status (pending, in_progress or completed), and list_tasks"}
	standFetch   = standIn{"http_fetch", "use http_fetch with url"}
	standWeb     = standIn{"web_search", "use web_search with query, and http_fetch with the url of a result"}
	standFile    = standIn{"bash", "use bash with command, such as curl -O URL, and with network true"}
	standGit     = standIn{"git", "use git with operation (status, log, diff, show, blame or branches), and with path, revision or staged"}
	standCommit  = standIn{"bash", "use bash with command, such as git commit"}
	standTime    = standIn{"get_current_time", "use get_current_time"}
	standPlace   = standIn{"get_working_directory", "use get_working_directory"}
	standSystem  = standIn{"system_info", "use system_info"}
)

// foreignTools holds names under which models know the tools of other systems: of Claude Code
// and its API, codex, Gemini CLI, opencode, crush, aider, OpenHands, Cline, Cursor, Copilot,
// goose and SWE-agent. Unlike [Aliases] such a tool has other arguments, so a call is answered
// with a hint. The names are in lower case, with '_' for '-'.
var foreignTools = sync.OnceValue(func() map[string]standIn {
	return foreignNames(map[string]standIn{
		"read view open cat open_file view_file read_files read_many_files view_line_range get_file_contents": standRead,
		"write write_to_file create create_file save_file new_file":                                           standWrite,
		"edit replace str_replace string_replace search_replace replace_in_file replace_file_content replace_string_in_file " +
			"edit_file insert_edit_into_file update_file": standEdit,
		"insert": standInsert,
		"multiedit multi_edit edit_block whole_file":                                    standEdits,
		"applypatch apply_diff patch":                                                   standPatch,
		"str_replace_based_edit_tool str_replace_editor text_editor editor file_editor": standEditor,
		"list list_dir list_directory list_files dir tree":                              standList,
		"find find_files find_file find_by_name file_search search_files_by_name":       standFind,
		"search rg ripgrep search_files search_file_content search_dir search_code codebase_search semantic_search find_in_files grep_files": standGrep,
		"shell local_shell container_exec exec exec_command shell_command run run_command run_shell_command run_terminal_cmd run_in_terminal " +
			"execute execute_bash terminal sh powershell cmd delete_file remove_file move_file": standCommand,
		"bashoutput bash_output killshell kill_shell killbash job_output job_kill write_stdin": standWaits,
		"plan think thinking finish task_complete attempt_completion " +
			"ask_user ask_user_question askuserquestion ask_followup_question request_user_input": standAnswer,
		"todowrite todo_write todoread todo_read todos todo write_todos update_plan update_todo_list manage_todo_list complete_task taskcreate taskupdate tasklist": standTasks,
		"webfetch web_fetch fetch fetch_url fetch_webpage read_url url_fetch http_get http_request browser browser_action":                                          standFetch,
		"websearch google_web_search google_search internet_search search_web":                                                                                      standWeb,
		"download download_file": standFile,
		"git_status git_log git_diff git_diff_unstaged git_diff_staged git_show git_blame git_branch git_branches get_changed_files": standGit,
		"git_add git_commit git_checkout git_create_branch git_reset git_stash":                                                      standCommit,
		"time now current_time get_time current_date get_current_date date":                                                          standTime,
		"pwd cwd getcwd get_cwd":                         standPlace,
		"get_system_info uname os_info environment_info": standSystem,
	})
})

// foreignNames splits the keys, each of which is several names separated by blanks.
func foreignNames(groups map[string]standIn) map[string]standIn {
	out := map[string]standIn{}
	for names, s := range groups {
		for name := range strings.FieldsSeq(names) {
			out[name] = s
		}
	}
	return out
}

// EquivalentOf returns advice on the use of our tools for a tool of another system, or for a
// built-in tool behind a namespace, such as functions.bash. tools are the tools that the advice
// names; maybe not all are offered to the model. The advice is empty if the name is not known,
// or if a built-in tool that it would name is not in the catalog.
func (c *Catalog) EquivalentOf(name string) (how string, tools []*Entry) {
	if len(name) > 64 {
		return "", nil
	}
	// The name of a server or a namespace may come first: functions.bash, developer__shell.
	name = name[strings.LastIndexAny(name, ".:/")+1:]
	if i := strings.LastIndex(name, "__"); i >= 0 {
		name = name[i+2:]
	}
	name = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	s, ok := foreignTools()[name]
	if !ok {
		if e, ok := c.Find(name); ok && e.Module.Origin == OriginBuiltin {
			return "use " + e.Name, []*Entry{e}
		}
		return "", nil
	}
	for ours := range strings.FieldsSeq(s.tools) {
		e, ok := c.entries[ours]
		if !ok || e.Module.Origin != OriginBuiltin { // an added tool may have the name
			return "", nil
		}
		tools = append(tools, e)
	}
	return s.how, tools
}

// foreignArgs maps the names of arguments in other systems to our names, separated by blanks.
// Each of our tools has at most one of the names of an entry.
var foreignArgs = map[string]string{
	"file_path": "path", "filepath": "path", "filename": "path", "file": "path", "target_file": "path", "absolute_path": "path", "relative_workspace_path": "path",
	"notebook_path": "path", "dir_path": "path", "directory": "path", "dir": "path", "target_directory": "path", "search_path": "path",
	"cmd": "command operation", "command": "operation", "script": "command", "input": "command patch", "diff": "patch", "timeout": "timeout_seconds", "timeout_ms": "timeout_seconds",
	"old_str": "old_string", "oldstring": "old_string", "old_text": "old_string", "oldtext": "old_string", "search": "old_string", "old": "old_string",
	"new_str": "new_string", "new_string": "new_content", "newstring": "new_string", "new_text": "new_string new_content", "newtext": "new_string", "replacement": "new_string", "new": "new_string",
	"replaceall": "replace_all", "allow_multiple": "replace_all",
	"content": "new_content", "insert_text": "new_content", "text": "content new_content", "contents": "content new_content", "file_text": "content", "code_edit": "content",
	"q": "query pattern", "search_query": "query", "uri": "url", "link": "url", "website": "url", "max_results": "num_results", "count": "num_results",
	"id": "task_id", "taskid": "task_id", "subcommand": "operation", "rev": "revision", "ref": "revision", "commit": "revision", "cached": "staged",
	"query": "pattern", "regex": "pattern", "regexp": "pattern", "search_term": "pattern", "glob_pattern": "pattern",
	"include": "file_filter", "glob": "file_filter", "include_pattern": "file_filter", "file_pattern": "file_filter",
	"start_line": "offset line_start", "line_start": "offset", "line": "offset line_start", "insert_line": "line_start", "line_number": "line_start", "end_line": "line_end", "case_insensitive": "ignore_case", "literal_text": "fixed_strings", "include_hidden_files": "include_hidden",
}

// translateArg returns the name in has that a foreign one means; empty if there is none.
func translateArg(name string, has []string) string {
	if len(name) > 64 {
		return ""
	}
	for ours := range strings.FieldsSeq(foreignArgs[strings.ToLower(strings.ReplaceAll(name, "-", "_"))]) {
		if slices.Contains(has, ours) {
			return ours
		}
	}
	return ""
}

// foreignWords maps values that other systems use for the status of a task to ours.
var foreignWords = map[string]string{
	"complete": "completed", "done": "completed", "finished": "completed", "closed": "completed", "ok": "completed",
	"active": "in_progress", "doing": "in_progress", "started": "in_progress", "working": "in_progress",
	"new": "pending", "open": "pending", "todo": "pending", "to_do": "pending", "not_started": "pending", "waiting": "pending",
}

// translateWord returns the value in has that a foreign one means; empty if there is none.
func translateWord(word string, has []string) string {
	if len(word) > 64 {
		return ""
	}
	if ours := foreignWords[strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(word))]; slices.Contains(has, ours) {
		return ours
	}
	return ""
}
