// Command files is the guest module with the tools that look at and change
// files: ls, glob, grep, file_read, file_write and file_edit.
//
// Words: a path is what an argument or a result holds, with forward slashes,
// relative to the call's working directory or absolute. An entry is what a
// directory lists. A walk visits the entries below a directory, without
// following links and without what .gitignore files exclude.
//
// The module may run in 64 MiB of memory: it streams what can be large and
// refuses to edit what does not fit.
package main

import "github.com/stockade-dev/stockade/sdk/go/tool"

func init() {
	tool.Module("files", "0.1.0")
	tool.Register("ls", "List one directory as a table of type, size, modification time (UTC) and name; "+
		"directories end in /. Sorted by name, smallest first or oldest first; reverse turns that round.",
		ls, tool.ReadsFiles())
	tool.Register("glob", "Find files by a name pattern such as **/*.go or src/{a,b}/*.ts: * and ? stay within a "+
		"directory, ** crosses directories. Returns the paths in order. Skips what .gitignore excludes.",
		glob, tool.ReadsFiles())
	tool.Register("grep", "Search the lines of files for an RE2 regular expression and return file:line: text. "+
		"Skips binary files, hidden files and what .gitignore excludes.",
		grep, tool.ReadsFiles())
	tool.Register("file_read", "Read a text file as numbered lines, at most 2000 lines or 50 KB at a time; the last line "+
		"tells the offset to go on with. Also returns the file's SHA-256, lists a directory, and shows you an image.",
		fileRead, tool.ReadsFiles(), tool.ReportsContent("path"),
		tool.Errors(imageErrors...), tool.Limits(imageLimits...))
	tool.Register("file_write", "Write a whole file, creating it and its directories or replacing its content. "+
		"To change a part of a file use file_edit.",
		fileWrite, tool.WritesFiles(), tool.ReportsContent("path"))
	tool.Register("file_edit", "Replace an exact piece of text in a file. old_string must occur exactly once, with its "+
		"indentation and without line numbers, unless replace_all is set. Line endings are kept. Read the file first.",
		fileEdit, tool.WritesFiles(), tool.NeedsContent("path", "expected_sha256"))
}
