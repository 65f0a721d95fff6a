package terminal

import (
	"bufio"
	"context"
	"os"
	"strings"
	"sync"
	"time"
)

// Lines reads lines from a terminal or a pipe for several readers in turn: the prompt of a
// chat, or a question during a turn. A line read for a caller that has given up goes to the
// next caller. The end of input is returned to one caller, once: on a terminal, more can be
// typed after it. Lines is safe for concurrent use.
type Lines struct {
	in    *os.File
	lines chan timedLine
	start sync.Once
}

type timedLine struct {
	text string
	at   time.Time // time when the line was read
	err  error
}

// NewLines returns a reader of a file. Only one reader may use the file.
func NewLines(in *os.File) *Lines { return &Lines{in: in, lines: make(chan timedLine)} }

// Next returns the next line; its errors are those of [Lines.After].
func (l *Lines) Next(ctx context.Context) (string, error) {
	return l.After(ctx, time.Time{})
}

// Discard drops all input so far, and returns the present moment for [Lines.After]: an answer
// must not be given before the person has seen the question.
func (l *Lines) Discard() time.Time {
	FlushInput(l.in)
	return time.Now()
}

// After returns the next line that was read at moment or later. At the end of input it
// returns io.EOF. If ctx ends first, the error is its cause.
func (l *Lines) After(ctx context.Context, moment time.Time) (string, error) {
	l.start.Do(func() { go l.read() }) // the goroutine ends with the program: a read from a terminal cannot be cancelled
	for {
		select {
		case line := <-l.lines:
			if line.at.Before(moment) {
				continue
			}
			return line.text, line.err
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

func (l *Lines) read() {
	r := bufio.NewReaderSize(l.in, 64<<10)
	for {
		// Lines that arrive together count as read at the time of the first one.
		_, err := r.Peek(1) // blocks
		at := time.Now()
		for more := err == nil; more && err == nil; more = r.Buffered() > 0 {
			var text string
			if text, err = readLine(r); text != "" {
				l.lines <- timedLine{text: strings.TrimRight(text, "\r\n"), at: at}
			}
		}
		if err != nil {
			l.lines <- timedLine{err: err, at: at}
		}
	}
}

// maxLine limits a line, in bytes; the rest of a longer one is dropped.
const maxLine = 16 << 20

func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line) < maxLine {
			line = append(line, part...)
		}
		if err != bufio.ErrBufferFull {
			return string(line), err
		}
	}
}
