// Command files is the guest module with the tools that look at and change
// files: ls, glob, grep, file_read, filesystem, file_write, file_edit, replace_lines,
// insert_lines and apply_patch.
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
	tool.Register("filesystem", "Look at a path: read a whole text file of up to 1 MB without line numbers, list a directory, "+
		"find out whether something exists, or its type, size and time.",
		filesystem, tool.ReadsFiles(), tool.ReportsContent("path"))
	tool.Register("file_write", "Write a whole file, creating it and its directories or replacing its content. "+
		"To change a part of a file use file_edit.",
		fileWrite, tool.WritesFiles(), tool.ReportsContent("path"))
	tool.Register("file_edit", "Replace an exact piece of text in a file. old_string must occur exactly once, with its "+
		"indentation and without line numbers, unless replace_all is set. Line endings are kept. Read the file first.",
		fileEdit, tool.WritesFiles(), tool.NeedsContent("path", "expected_sha256"))
	tool.Register("replace_lines", "Replace lines of a file by their numbers, as file_read shows them, with other lines. "+
		"The result shows the new numbers: every change moves the lines below it. Read the file first.",
		replaceLines, tool.WritesFiles(), tool.NeedsLines("path", "expected_sha256"))
	tool.Register("insert_lines", "Insert lines into a file before the line of a number, as file_read shows it. "+
		"The result shows the new numbers. Read the file first.",
		insertLines, tool.WritesFiles(), tool.NeedsLines("path", "expected_sha256"))
	tool.Register("apply_patch", "Change several files at once, all or none: *** Begin Patch, then for each file "+
		"*** Add File: PATH with lines of +, *** Delete File: PATH, or *** Update File: PATH (below it *** Move to: PATH, if it moves) with hunks: "+
		"@@ and a line that stands above, if context is not enough, then lines that begin with a blank (context, exactly as in the file), - or +; "+
		"last *** End Patch. Read the files first.",
		applyPatch, tool.WritesFiles(), tool.NeedsPatched("patch", "expected_sha256"))
}
