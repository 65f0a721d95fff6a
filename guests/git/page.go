package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stockade-dev/stockade/sdk/go/lines"
)

const (
	maxOutput = 50 << 10 // bytes of a page; the rest is on the next page
	maxLine   = 2000     // characters of a line; a longer one is cut
)

// errFull is returned when the page is full, or secrets has listed enough. It ends the
// operation, not the call.
var errFull = errors.New("the page is full")

// page is the part of the output that one call returns.
type page struct {
	out   strings.Builder
	skip  int  // number of lines before the page, which are dropped
	limit int  // number of lines of the page, without skipped ones, after which it is full; 0: no limit
	lines int  // number of lines so far, including skipped ones
	full  bool // set if there is more output
	next  int  // offset of the next page, if it does not count lines; 0: it is the number in lines
}

// line adds a line, given without its ending, or skips it. It may return errFull.
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

// note adds a note for the end of the output, unless there is the same already. After 20
// notes, further ones are dropped.
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
