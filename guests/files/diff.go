package main

import (
	"bytes"
	"fmt"
	"strings"
)

const (
	diffContext = 3
	// These limits keep the diff of a large replacement short; the diff says that more was
	// left out.
	maxDiffChanges = 200
	maxDiffBytes   = 8 << 10
	maxDiffLine    = 300
)

// hunk is a run of changed whole lines: content[start:end]. line is its first line, from 0.
type hunk struct {
	start, end, line int
	old, new         []string
}

// unifiedDiff returns the changes as a unified diff; a long one is cut. It need not search for
// differences, because it knows where the changes are.
func unifiedDiff(name string, content []byte, changes []change) string {
	var out strings.Builder
	fmt.Fprintf(&out, "--- a/%s\n+++ b/%s\n", name, name)
	hunks := hunksOf(content, changes[:min(len(changes), maxDiffChanges)])
	more := len(changes) > maxDiffChanges
	shift := 0 // lines of the new text minus lines of the old text so far
	for i := 0; i < len(hunks); {
		if out.Len() > maxDiffBytes {
			more = true
			break
		}
		// Hunks whose contexts touch are joined.
		last := i
		for last+1 < len(hunks) && hunks[last+1].line-hunks[last].line-len(hunks[last].old) <= 2*diffContext {
			last++
		}
		shift += writeHunk(&out, content, hunks[i:last+1], shift)
		i = last + 1
	}
	if more {
		out.WriteString("[diff cut: there are more changes]\n")
	}
	return out.String()
}

// writeHunk writes neighbouring hunks as one hunk of a diff; content is the old content.
// Earlier hunks add shift lines. It returns the number of lines that group adds, maybe below 0.
func writeHunk(out *strings.Builder, content []byte, group []hunk, shift int) (grown int) {
	first, last := group[0], group[len(group)-1]
	before := splitLines(content[offsetLinesBefore(content, first.start, diffContext):first.start])
	after := splitLines(content[last.end:offsetAfterLines(content, last.end, diffContext)])
	for _, h := range group {
		grown += len(h.new) - len(h.old)
	}
	line := first.line - len(before)
	lines := last.line + len(last.old) + len(after) - line
	fmt.Fprintf(out, "@@ -%s +%s @@\n", span(line, lines), span(line+shift, lines+grown))
	writeLines(out, ' ', before)
	for i, h := range group {
		if i > 0 {
			writeLines(out, ' ', splitLines(content[group[i-1].end:h.start]))
		}
		writeLines(out, '-', h.old)
		writeLines(out, '+', h.new)
	}
	writeLines(out, ' ', after)
	return grown
}

// span returns the range of n lines as a unified diff has it; an empty one names the line before.
// first counts from 0.
func span(first, n int) string {
	if n == 0 {
		return fmt.Sprintf("%d,0", first)
	}
	return fmt.Sprintf("%d,%d", first+1, n)
}

func writeLines(out *strings.Builder, mark byte, lines []string) {
	for i, line := range lines {
		if out.Len() > maxDiffBytes {
			fmt.Fprintf(out, "[%s cut]\n", count(len(lines)-i, "line", "lines"))
			return
		}
		text, more := cut([]byte(strings.TrimRight(line, "\r\n")), maxDiffLine)
		out.WriteByte(mark)
		out.WriteString(text)
		if more {
			out.WriteString(" [line cut]")
		}
		out.WriteByte('\n')
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("\\ No newline at end of file\n")
		}
	}
}

// hunksOf widens changes to whole lines, and joins changes in the same line.
func hunksOf(content []byte, changes []change) []hunk {
	var hunks []hunk
	line, counted := 0, 0 // line is the number of line breaks before the offset counted
	for i := 0; i < len(changes); {
		start := offsetLinesBefore(content, changes[i].start, 0)
		var text bytes.Buffer
		from, end := start, start
		for i < len(changes) && (end == start || changes[i].start < end) {
			text.Write(content[from:changes[i].start])
			text.WriteString(changes[i].text)
			from = changes[i].end
			// To the end of the next line, even if the change ends with a line break: without
			// a break in the new text, that line moves up.
			end = offsetAfterLines(content, from, 1)
			i++
		}
		text.Write(content[from:end])
		line += countLines(content[counted:start])
		counted = start
		h := hunk{start, end, line, splitLines(content[start:end]), splitLines(text.Bytes())}
		h.trim()
		hunks = append(hunks, h)
	}
	return hunks
}

// trim removes lines from both ends of the hunk that are equal in old and new.
func (h *hunk) trim() {
	for len(h.old) > 0 && len(h.new) > 0 && h.old[0] == h.new[0] {
		h.start += len(h.old[0])
		h.line++
		h.old, h.new = h.old[1:], h.new[1:]
	}
	for len(h.old) > 0 && len(h.new) > 0 && h.old[len(h.old)-1] == h.new[len(h.new)-1] {
		h.end -= len(h.old[len(h.old)-1])
		h.old, h.new = h.old[:len(h.old)-1], h.new[:len(h.new)-1]
	}
}

// offsetLinesBefore returns the start of the line that is n lines above the line at offset, or 0
// if there are fewer lines.
func offsetLinesBefore(content []byte, offset, n int) int {
	for {
		offset = bytes.LastIndexByte(content[:offset], '\n') + 1
		if n == 0 || offset == 0 {
			return offset
		}
		offset--
		n--
	}
}

// offsetAfterLines returns the offset after the n-th line break that follows offset, or the
// length of the content.
func offsetAfterLines(content []byte, offset, n int) int {
	for ; n > 0; n-- {
		i := bytes.IndexByte(content[offset:], '\n')
		if i < 0 {
			return len(content)
		}
		offset += i + 1
	}
	return offset
}

// splitLines returns the lines of a text with their endings; an empty text has no lines.
func splitLines(text []byte) []string {
	var lines []string
	for line := range bytes.Lines(text) {
		lines = append(lines, string(line))
	}
	return lines
}
