package terminal

import (
	"strings"
	"unicode/utf8"
)

// Fold makes a text visible and breaks it into rows of at most columns columns; 0: rows are
// not broken. The first row begins with first and all others with next, so that no row can
// look like a line of somebody else.
func Fold(text, first, next string, columns int) []string {
	var out []string
	for line := range strings.SplitSeq(Visible(text), "\n") {
		rows := []string{line}
		if columns > 0 {
			rows = Rows(strings.ReplaceAll(line, "\t", "    "), max(columns-1-max(len(first), len(next)), 2))
		}
		for _, row := range rows {
			out = append(out, first+row)
			first = next
		}
	}
	return out
}

// Rows breaks a visible line into rows of at most columns columns. A character outside ASCII
// counts as two columns, because terminals and fonts differ in its width; marks stay with
// their character. Only an empty line gives an empty row.
func Rows(line string, columns int) []string {
	var rows []string
	start, used := 0, 0
	for i := 0; i < len(line); {
		r, n := utf8.DecodeRuneInString(line[i:])
		end, width := i+n, columnsOf(r)
		for end < len(line) {
			mark, n := utf8.DecodeRuneInString(line[end:])
			if !isMark(mark) {
				break
			}
			end, width = end+n, width+columnsOf(mark)
		}
		if used+width > columns && i > start {
			rows, start, used = append(rows, line[start:i]), i, 0
		}
		i, used = end, used+width
	}
	return append(rows, line[start:])
}

// Wrap breaks a visible line between words. A word that is longer than a row is broken
// inside. Blanks before the first word are kept if they leave room for words.
func Wrap(line string, columns int) (rows []string) {
	words := strings.Split(strings.TrimLeft(line, " "), " ")
	if indent := len(line) - len(strings.TrimLeft(line, " ")); indent < columns/2 {
		words[0] = line[:indent] + words[0]
	}
	row := ""
	for _, word := range words {
		if row != "" && Width(row)+1+Width(word) <= columns {
			row += " " + word
			continue
		}
		if row != "" {
			rows = append(rows, row)
		}
		parts := Rows(word, columns)
		rows, row = append(rows, parts[:len(parts)-1]...), parts[len(parts)-1]
	}
	return append(rows, row)
}

// Width returns the number of columns that a row may take, counted as by [Rows].
func Width(row string) (columns int) {
	for _, r := range row {
		columns += columnsOf(r)
	}
	return columns
}

func columnsOf(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	return 2
}
