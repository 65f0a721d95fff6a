package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/sdk/go/charset"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

type replaceArgs struct {
	Path           string           `json:"path" desc:"The file."`
	LineStart      int              `json:"line_start" desc:"The first line to replace, counted from 1." min:"1"`
	LineEnd        int              `json:"line_end" desc:"The last line to replace; line_start for one line." min:"1"`
	NewContent     string           `json:"new_content" desc:"The lines to put in their place, without line numbers; empty removes them."`
	Encoding       charset.Encoding `json:"encoding,omitzero" desc:"Of a file that is no UTF-8, such as gbk."`
	ExpectedSHA256 string           `json:"expected_sha256,omitempty" desc:"SHA-256 of the content that the line numbers are of. Filled in for you."`
}

type insertArgs struct {
	Path           string           `json:"path" desc:"The file."`
	LineStart      int              `json:"line_start" desc:"The line to insert before, counted from 1; one more than the file has appends." min:"1"`
	LineEnd        int              `json:"line_end,omitempty" desc:"Leave it out, or repeat line_start." min:"1"`
	NewContent     string           `json:"new_content" desc:"The lines to insert, without line numbers."`
	Encoding       charset.Encoding `json:"encoding,omitzero" desc:"Of a file that is no UTF-8, such as gbk."`
	ExpectedSHA256 string           `json:"expected_sha256,omitempty" desc:"SHA-256 of the content that the line number is of. Filled in for you."`
}

type linesResult struct {
	Output   string `json:"output"`
	Lines    int    `json:"lines"`    // number of lines in the file after the change
	Replaced [3]int `json:"replaced"` // number of the first line, number of old lines, number of new lines
	Diff     string `json:"diff"`
	SHA256   string `json:"sha256"` // of the new content
}

func replaceLines(_ context.Context, in replaceArgs) (linesResult, error) {
	if in.LineEnd < in.LineStart {
		return linesResult{}, tool.Coded("OUT_OF_RANGE", tool.InvalidInput("line_end %d is before line_start %d; both are lines to replace", in.LineEnd, in.LineStart))
	}
	return editLines(in.Path, in.ExpectedSHA256, in.Encoding, in.LineStart, in.LineEnd-in.LineStart+1, func(t *textFile, lines int) (change, string, error) {
		if in.LineEnd > lines {
			return change{}, "", tool.Coded("OUT_OF_RANGE", tool.InvalidInput("%s has %s, and there is no line %d; insert_lines with line_start=%d appends",
				t.loc.display(), count(lines, "line", "lines"), max(in.LineStart, min(in.LineEnd, lines+1)), lines+1))
		}
		start := offsetAfterLines(t.content, 0, in.LineStart-1)
		end := offsetAfterLines(t.content, start, in.LineEnd-in.LineStart+1)
		did := fmt.Sprintf("Replaced line %d", in.LineStart)
		if in.LineEnd > in.LineStart {
			did = fmt.Sprintf("Replaced lines %d to %d", in.LineStart, in.LineEnd)
		}
		if in.NewContent == "" {
			did = "Removed" + strings.TrimPrefix(did, "Replaced")
		} else {
			did += " with " + count(lineCount([]byte(in.NewContent)), "line", "lines")
		}
		return t.putLines(start, end, in.NewContent), did, t.checkNumbers(in.NewContent, in.LineStart)
	})
}

func insertLines(_ context.Context, in insertArgs) (linesResult, error) {
	switch {
	case in.LineEnd != 0 && in.LineEnd != in.LineStart:
		return linesResult{}, tool.InvalidInput("line_end %d is not line_start %d: lines are inserted before one line; replace_lines replaces several", in.LineEnd, in.LineStart)
	case in.NewContent == "":
		return linesResult{}, tool.InvalidInput("new_content is empty; an empty line is a line feed")
	}
	return editLines(in.Path, in.ExpectedSHA256, in.Encoding, in.LineStart, 0, func(t *textFile, lines int) (change, string, error) {
		if in.LineStart > lines+1 {
			return change{}, "", tool.Coded("OUT_OF_RANGE", tool.InvalidInput("%s has %s, and there is no line %d to insert before; line_start=%d appends",
				t.loc.display(), count(lines, "line", "lines"), in.LineStart, lines+1))
		}
		at := offsetAfterLines(t.content, 0, in.LineStart-1)
		did := fmt.Sprintf("Inserted %s before line %d", count(lineCount([]byte(in.NewContent)), "line", "lines"), in.LineStart)
		if in.LineStart == lines+1 {
			did = fmt.Sprintf("Appended %s", count(lineCount([]byte(in.NewContent)), "line", "lines"))
		}
		return t.putLines(at, at, in.NewContent), did, t.checkNumbers(in.NewContent, in.LineStart)
	})
}

// editLines replaces whole lines: as many as old says, from first on; 0 inserts before first.
// choose gets the number of lines in the file, and returns the change with a summary, or an
// error if the file has no such lines. wantHash and hint are as in readForEdit.
func editLines(path, wantHash string, hint charset.Encoding, first, old int, choose func(t *textFile, lines int) (change, string, error)) (linesResult, error) {
	if path == "" {
		return linesResult{}, tool.InvalidInput("path is empty")
	}
	l, err := locate(path)
	if err != nil {
		return linesResult{}, err
	}
	if err := checkHashText(wantHash); err != nil { // not [tool.Unseen], either
		return linesResult{}, err
	}
	t, err := readForEdit(l, wantHash, hint)
	if err != nil {
		return linesResult{}, err
	}
	had := lineCount(t.content)
	c, did, err := choose(t, had)
	if err != nil {
		return linesResult{}, err
	}
	e, err := t.edit([]change{c})
	if err != nil {
		return linesResult{}, err
	}
	out := linesResult{Lines: lineCount(e.content), Diff: e.diff, SHA256: e.sha256}
	out.Replaced = [3]int{first, old, out.Lines - had + old}
	out.Output = fmt.Sprintf("%s in %s, which has %s now:\n%s", did, l.display(), count(out.Lines, "line", "lines"), preview(t.content, e.content, []change{c}))
	if err := overwrite(l, e.file); err != nil {
		return linesResult{}, l.toolError("edit", err)
	}
	return out, nil
}

// putLines returns the change that replaces content[start:end], which are whole lines, by
// other lines. The new lines get the line ending of the file, unless they hold CR, which is
// kept. Where the file ends without a line ending, none is added to the last new line.
func (t *textFile) putLines(start, end int, lines string) change {
	if t.eol == "" {
		t.eol = ending(t.content)
	}
	if t.eol == "\r\n" && !strings.Contains(lines, "\r") {
		lines = toCRLF(lines)
	}
	open := end == len(t.content) && end > 0 && t.content[end-1] != '\n'
	if lines != "" && !strings.HasSuffix(lines, "\n") && !open {
		lines += t.eol
	}
	if open && start == end {
		lines = t.eol + lines
	}
	return change{start, end, lines}
}

// checkNumbers returns an error for lines that begin with consecutive numbers, as file_read or
// cat -n prints them, unless the file itself has such lines. A single line is refused only if
// its number is the line number of the call.
func (t *textFile) checkNumbers(lines string, number int) error {
	first, next := 0, 0
	for line := range strings.Lines(lines) {
		n, err := strconv.Atoi(strings.Trim(lineNumbers.FindString(line), ": \t"))
		switch {
		case err != nil || next > 0 && n != next:
			return nil
		case next == 0:
			first = n
		}
		next = n + 1
	}
	if next == first+1 && first != number || next == 0 {
		return nil
	}
	for line := range bytes.Lines(t.content) {
		if lineNumbers.Match(line) {
			return nil
		}
	}
	return tool.Coded("NUMBERED_LINES", tool.InvalidInput("new_content carries line numbers, which are not part of the file; leave them out"))
}
