package main

import (
	"bytes"
	"fmt"
	"strings"
)

const (
	previewContext = 3
	// These keep the preview of a large change short: what a call has written it knows.
	maxPreviewBytes = 4 << 10
	maxPreviewLines = 10 // at each end of a run of lines that are new
)

// preview shows the lines that changes have made and those around them, numbered as
// file_read would number them now, so that a model can go on by number.
func preview(was, is []byte, changes []change) string {
	var out strings.Builder
	lines, bytesOn := 0, 0 // by how much the new content is ahead of the old one
	shown := 0             // up to which line
	for i, h := range hunksOf(was, changes[:min(len(changes), maxDiffChanges)]) {
		if out.Len() > maxPreviewBytes {
			out.WriteString("[there are more changes]\n")
			break
		}
		size := 0
		for _, line := range h.new {
			size += len(line)
		}
		start := h.start + bytesOn
		from, to := offsetLinesBefore(is, start, previewContext), offsetAfterLines(is, start+size, previewContext)
		number := h.line + lines - countLines(is[from:start]) // of the line at from, counted from 0
		if shown > number {
			from = offsetAfterLines(is, from, shown-number)
			number = shown
		} else if i > 0 && shown < number {
			out.WriteString("...\n")
		}
		first, last := h.line+lines+maxPreviewLines, h.line+lines+len(h.new)-maxPreviewLines // not shown between
		for at := from; at < to; number++ {
			next := offsetAfterLines(is, at, 1)
			switch {
			case number == first && last > first+1:
				fmt.Fprintf(&out, "[%d more new lines]\n", last-first)
			case number > first && number < last && last > first+1:
			default:
				text, more := cut(trimEnding(is[at:next]), maxDiffLine)
				if more {
					text += " [line cut]"
				}
				fmt.Fprintf(&out, "%d: %s\n", number+1, text)
			}
			at = next
		}
		shown = number
		lines += len(h.new) - len(h.old)
		bytesOn += size - (h.end - h.start)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// lineCount is how many lines there are, also where the last has no line feed.
func lineCount(content []byte) int {
	n := countLines(content)
	if len(content) > 0 && !bytes.HasSuffix(content, []byte("\n")) {
		n++
	}
	return n
}
