package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/stockade-dev/stockade/sdk/go/filename"
)

// explainNoFiles returns the probable reason why a glob pattern has found nothing.
func explainNoFiles(pattern, path string) string {
	switch below := "**/" + pattern[strings.LastIndexByte(pattern, '/')+1:]; {
	case strings.Contains(pattern, "**"):
		return "nothing matches; what .gitignore excludes is left out, and so is .git"
	case !strings.Contains(pattern, "/"):
		return fmt.Sprintf("nothing in %s itself matches; with %s directories below it are searched too", filename.Show(path), filename.Show(below))
	case strings.ContainsAny(pattern, "*?[{"):
		return fmt.Sprintf("nothing matches; * stays within one directory and ** crosses directories, as in %s", filename.Show(below))
	default:
		return fmt.Sprintf("there is no such file; %s looks for the name everywhere", filename.Show(below))
	}
}

// starRE matches a * that was probably meant as "any text", as in a pattern for file names.
// The * in .* and [a-z]* is correct in a regular expression.
var starRE = regexp.MustCompile(`(^|[^\\.)\]])\*`)

// explainNoLines returns the probable reason why a search has found no lines. files is
// the number of searched files.
func explainNoLines(in grepArgs, files int) string {
	star := starRE.MatchString(in.Pattern)
	switch {
	case files == 0 && in.FileFilter != "":
		text := "no file matches file_filter"
		if strings.Contains(in.FileFilter, "/") && !strings.Contains(in.FileFilter, "**") {
			text += "; * stays within one directory and ** crosses directories, as in src/**/*.go"
		}
		return text
	case files == 0:
		return "there was no file to search: hidden files need include_hidden, and what .gitignore excludes ignore_gitignore"
	case in.FixedStrings && (star || strings.Contains(in.Pattern, ".*")):
		return "no line matches; with fixed_strings * is searched as it is"
	case fileNamePatternRE.MatchString(in.Pattern):
		return "no line matches; pattern is about the text of lines: file_filter chooses files by their names, and glob finds them"
	case star && !in.FixedStrings:
		return "no line matches; pattern is a regular expression, in which * repeats the character before it: .* stands for any text"
	}
	return "no line matches"
}

// fileNamePatternRE matches a pattern that was probably meant for the names of files.
var fileNamePatternRE = regexp.MustCompile(`^([\w.-]+/)*\*+(/\*+)*\.[\w{},]+$`)
