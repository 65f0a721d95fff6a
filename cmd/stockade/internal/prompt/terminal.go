package prompt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
)

// Lines is the source of typed answers; terminal.Lines implements it.
type Lines interface {
	// Discard drops the input so far, and returns the present moment for After.
	Discard() time.Time
	// After returns the next line that was read at moment or later.
	After(ctx context.Context, moment time.Time) (string, error)
}

// Terminal is an Asker that reads answers as typed lines.
type Terminal struct {
	Lines  Lines
	Out    io.Writer
	Color  bool
	Screen *terminal.Screen           // holds other output back while a question is open
	Size   func() (columns, rows int) // returns the current size; 0: unknown
	// Interrupt is the cause of a context that the person ended: a message about it is shown
	// elsewhere. For other causes, Ask prints a message; nil: for all.
	Interrupt error
}

// Ask implements [Asker].
func (t *Terminal) Ask(ctx context.Context, p *Prompt) (Choice, error) {
	defer t.Screen.Hold()()
	columns, height := t.Size()
	v := View{Width: columns, Height: height, Color: t.Color}
	if c, unseen := p.Unseen(v); unseen {
		return c, nil
	}
	shown := p.Rows(v)
	for {
		if err := t.write(lines(shown)); err != nil {
			return Choice{}, err
		}
		line, err := t.read(ctx, strings.Join(p.Keys(v), "\n")+" ")
		if errors.Is(err, io.EOF) {
			return p.No(), t.write("\n")
		}
		if err != nil {
			return Choice{}, err
		}
		choice, ok := p.Answer(v, line)
		if !ok {
			shown = []string{p.InvalidAnswer(v)}
			continue
		}
		if choice.AsksWhy() {
			reason, err := t.read(ctx, "  "+WhyLabel)
			if err != nil && !errors.Is(err, io.EOF) {
				return Choice{}, err
			}
			if choice, ok = choice.Because(reason); !ok {
				shown = p.Recap(v)
				continue
			}
		}
		if shown = p.Expand(v, choice); shown == nil {
			if said := p.Reply(choice); said != "" {
				err = t.write(said + "\n")
			}
			return choice, err
		}
		shown = append(shown, p.Recap(v)...)
	}
}

// read shows text as it is, so it must be safe for a terminal. It returns the line that the person
// types after it. If ctx ends, the error is its cause.
func (t *Terminal) read(ctx context.Context, text string) (string, error) {
	moment := t.Lines.Discard() // an answer must not be given before the question was seen
	if err := t.write(text); err != nil {
		return "", err
	}
	line, err := t.Lines.After(ctx, moment)
	if ctx.Err() != nil {
		cause, text := context.Cause(ctx), ""
		if t.Interrupt == nil || !errors.Is(cause, t.Interrupt) { // the person learns that the prompt has ended
			text = "  withdrawn: " + terminal.Line(cause.Error()) + "\n"
		}
		_ = t.write("\n" + text)
		return "", cause
	}
	return line, err
}

// write prints a text. After an error nobody can have seen it, and nothing may be allowed.
func (t *Terminal) write(text string) error {
	if _, err := io.WriteString(t.Out, text); err != nil {
		return fmt.Errorf("show the question: %w", err)
	}
	return nil
}

func lines(rows []string) string { return strings.Join(append(rows, ""), "\n") }
