package terminal

import (
	"bufio"
	"context"
	"os"
	"strings"
	"sync"
	"time"
)

// Lines reads lines from a terminal or a pipe for whoever asks next: the prompt
// of a chat, or a question in the middle of a turn. A read that nobody waits for
// any more is handed to the next one who asks. The end of input is an answer to
// one who asks, once: on a terminal, more can be typed after it. It is safe for
// concurrent use.
type Lines struct {
	in    *os.File
	lines chan timedLine
	start sync.Once
}

type timedLine struct {
	text string
	at   time.Time // when it was read
	err  error
}

// NewLines returns a reader of a file, which two readers must not share.
func NewLines(in *os.File) *Lines { return &Lines{in: in, lines: make(chan timedLine)} }

// Next returns the next line.
func (l *Lines) Next(ctx context.Context) (string, error) {
	return l.After(ctx, time.Time{})
}

// Discard drops what has been typed so far, and returns the moment from which
// lines count: an answer must not be given before its question is seen.
func (l *Lines) Discard() time.Time {
	FlushInput(l.in)
	return time.Now()
}

// After returns the next line that was read at that moment or later, or io.EOF
// for an end of input then.
func (l *Lines) After(ctx context.Context, moment time.Time) (string, error) {
	l.start.Do(func() { go l.read() }) // ends with the program: a read from a terminal cannot be cancelled
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
		// Lines that arrived together count as read when the first of them was.
		_, err := r.Peek(1) // waits
		at := time.Now()
		for more := err == nil; more && err == nil; more = r.Buffered() > 0 {
			var text string
			if text, err = r.ReadString('\n'); text != "" {
				l.lines <- timedLine{text: strings.TrimRight(text, "\r\n"), at: at}
			}
		}
		if err != nil {
			l.lines <- timedLine{err: err, at: at}
		}
	}
}
