// Command files is the guest module with the tools that look at and change
// files: ls, glob, grep, file_read, filesystem, file_write, file_edit, replace_lines,
// insert_lines and apply_patch.
//
// Words: a path in an argument or a result has forward slashes, and is absolute or
// relative to the call's working directory. An entry is a file or a directory in the list
// of a directory. A walk visits the entries below a directory, but follows no links and never
// enters .git. By default it leaves out entries that .gitignore files exclude.
//
// The module may run in 64 MiB of memory: it streams large files and refuses to edit
// files that do not fit.
package main

import "github.com/stockade-dev/stockade/sdk/go/tool"

func init() {
	tool.Module("files", "0.1.0")
	tool.Register("ls", "List one directory as a table of type, size, modification time (UTC) and name; "+
		"directories end in /. Sorted by name, smallest first or oldest first; reverse turns that round.",
		ls, tool.ReadsFiles(),
		tool.Errors("NOT_A_DIRECTORY: path, or a part of it, is a file; file_read shows it", notFound),
		tool.Limits("1000 entries of a directory; the totals are those of all"),
		tool.Example(`{"path":"src","sort_by":"modified","reverse":true}`, "shows what was changed last"))
	tool.Register("glob", "Find files by a name pattern such as **/*.go or src/{a,b}/*.ts: * and ? stay within a "+
		"directory, ** crosses directories. Returns the paths in order. Skips what .gitignore excludes.",
		glob, tool.ReadsFiles(),
		tool.Errors("BAD_PATTERN: pattern is malformed; quote special characters with a backslash", "NOT_A_DIRECTORY: path, or a part of it, is a file; file_read shows it", notFound),
		tool.Limits("1000 paths"),
		tool.Example(`{"pattern":"**/*_test.go"}`, "finds all tests of a Go module"))
	tool.Register("grep", "Search the lines of files for an RE2 regular expression and return file:line: text. "+
		"Skips binary files, hidden files and what .gitignore excludes.",
		grep, tool.ReadsFiles(),
		tool.Errors("BAD_PATTERN: file_filter is malformed, or pattern is too large", notAFile, notADirectory, notFound),
		tool.Limits("1000 lines that match, 256 KiB of output, 2000 characters of a line", "files in UTF-16 are not searched, and the hint says so; file_read shows them"),
		tool.Example(`{"pattern":"func \\w+Handler\\(","file_filter":"*.go","context":2}`, "finds functions, with two lines around each"))
	tool.Register("file_read", "Read a text file as numbered lines, at most 2000 lines or 50 KiB at a time; the last line "+
		"tells the offset to go on with. Also returns the file's SHA-256, lists a directory, and shows you an image.",
		fileRead, tool.ReadsFiles(), tool.ReportsContent("path"),
		tool.Errors("OUT_OF_RANGE: offset is beyond the last line; the text says how many there are",
			"LINE_TOO_LONG: with raw a line has more than 50 KiB; without it its beginning is shown", binaryFile,
			"UNKNOWN_ENCODING: it is text in UTF-32; convert it first", notAFile, notADirectory, notFound), tool.Errors(imageErrors...), tool.Limits(imageLimits...),
		tool.Limits("2000 lines, 50 KiB and 2000 characters of a line at a time; with raw lines are whole",
			"files of any size, in bounded memory; beyond 64 MiB the number of lines is not counted, beyond 8 MiB there is no sha256",
			"UTF-8, UTF-16, Windows-1252 (Latin-1), and what encoding names, which are shown as UTF-8"),
		tool.Example(`{"path":"main.go","offset":201,"limit":100}`, "reads lines 201 to 300"),
		tool.Example(`{"path":"server.log","offset":-50}`, "reads the last 50 lines"))
	tool.Register("filesystem", "Look at a path: read a whole text file without line numbers, list a directory, "+
		"find out whether something exists, or its type, size and time.",
		filesystem, tool.ReadsFiles(), tool.ReportsContent("path"),
		tool.Errors("TOO_LARGE: the file to read has more than 1 MiB; file_read reads it in pages",
			"UNKNOWN_ENCODING: the file to read is no UTF-8; file_read shows other encodings, too", binaryFile,
			"NOT_A_FILE: what is to be read is a directory, a pipe or a device", "NOT_A_DIRECTORY: what is to be listed, or a part of the path, is a file", notFound),
		tool.Limits("files of up to 1 MiB in UTF-8", "1000 entries of a directory", "it changes nothing"),
		tool.Example(`{"operation":"exists","path":"go.mod"}`, "answers true or false"))
	tool.Register("file_write", "Write a whole file, creating it and its directories or replacing its content. "+
		"To change a part of a file use file_edit.",
		fileWrite, tool.WritesFiles(), tool.ReportsContent("path"),
		tool.Errors(contentChanged, "TOO_LARGE: expected_sha256 is set and the file has more than 8 MiB; leave it out", notAFile, notADirectory,
			"NOT_FOUND: the path is a link to nothing, or expected_sha256 is set and there is no file", "NOT_ENCODABLE: encoding lacks a character of content", noSpace),
		tool.Limits("it writes UTF-8, or encoding, and the line endings of content, whatever the file had; its mode stays"),
		tool.Example(`{"path":"notes.md","content":"# Notes\n"}`, "makes a file of one line"))
	tool.Register("file_edit", "Replace an exact piece of text in a file. old_string must occur exactly once, with its "+
		"indentation and without line numbers, unless replace_all is set. Line endings are kept. Read the file first, or know the text.",
		fileEdit, tool.WritesFiles(), tool.NeedsContent("path", "expected_sha256"), tool.FindsText(), tool.Errors(notRead),
		tool.Errors("NO_MATCH: old_string does not occur; the text shows the nearest line and where it differs",
			"NOT_UNIQUE: old_string occurs more than once; add context or set replace_all",
			"TOO_MANY: old_string occurs more than 100,000 times; replace a longer text", noChange),
		editErrors, tool.Limits("100,000 replacements"), editLimits,
		tool.Example(`{"path":"main.go","old_string":"retries := 3","new_string":"retries := 5"}`, "changes one line"))
	tool.Register("replace_lines", "Replace lines of a file by their numbers, as file_read shows them. "+
		"If one reply has several calls, use the numbers from before the reply in all of them. The result shows the new ones. Read the file first.",
		replaceLines, tool.WritesFiles(), tool.NeedsLines("path", "expected_sha256"),
		tool.Errors(outOfRange, numberedLines, noChange), editErrors, editLimits,
		tool.Example(`{"path":"main.go","line_start":10,"line_end":12,"new_content":"\treturn nil\n"}`, "puts one line in the place of three"))
	tool.Register("insert_lines", "Insert lines into a file before the line with a number, as file_read shows it. "+
		"If one reply has several calls, use the numbers from before the reply in all of them. The result shows the new ones. Read the file first.",
		insertLines, tool.WritesFiles(), tool.NeedsLines("path", "expected_sha256"),
		tool.Errors(outOfRange, numberedLines), editErrors, editLimits,
		tool.Example(`{"path":"main.go","line_start":1,"new_content":"// Command a does nothing.\n"}`, "puts a line at the top"))
	tool.Register("apply_patch", "Change several files, all or none. The patch: *** Begin Patch, for each file "+
		"*** Add File: PATH with lines of +, *** Delete File: PATH, or *** Update File: PATH (then maybe *** Move to: PATH) with hunks, *** End Patch. "+
		"A hunk: @@ and maybe a line that stands above, then lines that begin with a blank (context, exactly as in the file), - or +. Read the files first, or know their lines.",
		applyPatch, tool.WritesFiles(), tool.NeedsPatched("patch", "expected_sha256"), tool.FindsText(), tool.Errors(notRead),
		tool.Errors("INVALID_PATCH: it is no patch of this form, or names a file twice; the text says at which line",
			"NO_MATCH: the lines of a hunk are not in the file; the text says which hunk, and shows the nearest line",
			"NOT_UNIQUE: the lines of a hunk are at several places; add context, or @@ with a line above",
			"FILE_EXISTS: a file that is to be added, or moved to, is there already", noChange), editErrors, editLimits,
		tool.Limits("128 files, 1000 hunks, 1 MiB of patch, 12 MiB of files together",
			"a hunk fits where all its lines are, exactly or but for white space at their ends; never where something similar is"),
		tool.Example(`{"patch":"*** Begin Patch\n*** Update File: main.go\n@@ func main() {\n-\tretries := 3\n+\tretries := 5\n*** Add File: NOTES\n+Why five.\n*** End Patch"}`,
			"changes a line of one file and makes another"))
}

// Errors that the documentation of several tools lists.
const (
	notFound        = "NOT_FOUND: the path does not exist; the text says what may have been meant"
	notAFile        = "NOT_A_FILE: it is a directory, a pipe or a device"
	notADirectory   = "NOT_A_DIRECTORY: a part of the path is a file"
	notRead         = "NOT_READ: the conversation has not read the file, and the old text is not in it exactly and once"
	binaryFile      = "BINARY_FILE: the file holds NUL bytes and is no text"
	unknownEncoding = "UNKNOWN_ENCODING: it is text in UTF-32 or damaged: convert it first; or it is no UTF-8: the text names encodings that it may have"
	contentChanged  = "CONTENT_CHANGED: the file has changed since it was read; read it again"
	noChange        = "NO_CHANGE: the file already reads like that"
	noSpace         = "NO_SPACE: the disk is full, or the call has written as much as one call may"
	outOfRange      = "OUT_OF_RANGE: there are no such lines; the text says how many there are"
	numberedLines   = "NUMBERED_LINES: new_content carries line numbers, as of file_read or cat -n; leave them out"
)

var (
	editErrors = tool.Errors(contentChanged, "NOT_ENCODABLE: the encoding of the file lacks a character of the new text",
		"TOO_LARGE: a file, or what it would be, has more than 8 MiB", binaryFile, unknownEncoding, notAFile, notADirectory, notFound, noSpace)
	editLimits = tool.Limits("files of up to 8 MiB", "encoding, byte order mark, line endings and mode stay as they are")
)
