package main

import (
	"bytes"
	"fmt"
	"strings"
)

const (
	previewContext = 3
	// These limits keep the preview of a large change short, as the caller knows the new text.
	maxPreviewBytes = 4 << 10
	maxPreviewLines = 10 // lines at each end of a run of new lines; those between are left out
)

// preview returns the new lines and the lines around them, with the numbers that file_read
// would show after the change, so that a model can go on with these numbers. A long preview is
// cut.
func preview(was, is []byte, changes []change) string {
	var out strings.Builder
	lineShift, byteShift := 0, 0 // from the old content to the new one
	shown := 0                   // number of the line after the last shown line
	for i, h := range hunksOf(was, changes[:min(len(changes), maxDiffChanges)]) {
		if out.Len() > maxPreviewBytes {
			out.WriteString("[there are more changes]\n")
			break
		}
		size := 0
		for _, line := range h.new {
			size += len(line)
		}
		start := h.start + byteShift
		from, to := offsetLinesBefore(is, start, previewContext), offsetAfterLines(is, start+size, previewContext)
		number := h.line + lineShift - countLines(is[from:start]) // of the line at from, counted from 0
		if shown > number {
			from = offsetAfterLines(is, from, shown-number)
			number = shown
		} else if i > 0 && shown < number {
			out.WriteString("...\n")
		}
		first, last := h.line+lineShift+maxPreviewLines, h.line+lineShift+len(h.new)-maxPreviewLines // lines between are left out
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
		lineShift += len(h.new) - len(h.old)
		byteShift += size - (h.end - h.start)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// lineCount returns the number of lines. The last line may lack its line feed.
func lineCount(content []byte) int {
	n := countLines(content)
	if len(content) > 0 && !bytes.HasSuffix(content, []byte("\n")) {
		n++
	}
	return n
}
