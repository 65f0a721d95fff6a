package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stockade-dev/stockade/sdk/go/lines"
)

const (
	// maxOutput limits the output of one call, in bytes, and maxLine a line, in characters.
	maxOutput = 50 << 10
	maxLine   = 2000
)

// errFull is returned when the page is full. It ends an operation.
var errFull = errors.New("the page is full")

// page is the part of the output that one call returns.
type page struct {
	out   strings.Builder
	skip  int  // lines before the page
	limit int  // number of lines on the page; 0: no limit
	lines int  // number of lines so far, including skipped ones
	full  bool // there is more output
	next  int  // next offset if it does not count lines; 0: it is lines
}

// line adds a line, given without its ending. It returns errFull if the page has no room.
func (p *page) line(text string) error {
	if p.lines++; p.lines <= p.skip {
		return nil
	}
	if p.limit > 0 && p.lines > p.skip+p.limit || p.out.Len()+len(text) > maxOutput && p.out.Len() > 0 {
		p.lines--
		p.full = true
		return errFull
	}
	if len(text) > maxLine {
		if part, more := lines.Cut([]byte(text), maxLine); more {
			text = fmt.Sprintf("%s [line cut: it has %d bytes]", part, len(text))
		}
	}
	p.out.WriteString(text)
	p.out.WriteByte('\n')
	return nil
}

func (p *page) linef(format string, args ...any) error { return p.line(fmt.Sprintf(format, args...)) }

// note adds a note at the end of the output, unless it is there already.
func (c *call) note(format string, args ...any) {
	const most = 20
	text := fmt.Sprintf(format, args...)
	for _, n := range c.notes {
		if n == text {
			return
		}
	}
	if len(c.notes) < most {
		c.notes = append(c.notes, text)
	}
}

// plural returns a number with its noun, such as "3 files".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func wasWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

func (c *call) result() result {
	out := result{}
	if c.page.full {
		if out.NextOffset = c.page.next; out.NextOffset == 0 {
			out.NextOffset = c.page.lines
		}
		how := fmt.Sprintf("to go on, call git again with offset=%d", out.NextOffset)
		if c.Operation == "diff" || c.Operation == "show" {
			how += ", or name a path; format=numstat lists the files"
		}
		c.notes = append(c.notes, "there is more; "+how)
	}
	text := c.page.out.String()
	for _, n := range c.notes {
		text += "[" + n + "]\n"
	}
	out.Output = strings.TrimSuffix(text, "\n")
	return out
}
