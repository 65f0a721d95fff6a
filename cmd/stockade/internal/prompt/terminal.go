package prompt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/policy"
)

// by is who answers on a terminal.
const by = "terminal"

// Lines is where answers come from; terminal.Lines is one.
type Lines interface {
	// Discard drops what was typed so far and returns the moment from which
	// lines count.
	Discard() time.Time
	// After returns the next line from that moment on.
	After(ctx context.Context, moment time.Time) (string, error)
}

// Terminal asks on a terminal. It is used by one goroutine at a time. When the
// context of a prompt ends, the prompt ends, says why, and returns the cause.
type Terminal struct {
	Lines  Lines
	Out    io.Writer
	Color  bool
	Screen *terminal.Screen // holds everything else back meanwhile
	// Size is how many columns and rows it has now; 0 is unknown.
	Size func() (columns, rows int)
	// Prepare looks up what a question does not say, and takes secrets out.
	Prepare func(policy.Question) Question
}

// one asks about one call. The end of input is a no.
func (t *Terminal) one(ctx context.Context, question policy.Question) (policy.Answer, error) {
	defer t.Screen.Hold()()
	q := t.Prepare(question)
	columns, _ := t.Size()
	r := Renderer{Width: columns, Color: t.Color}
	text, folded := r.Question(q, false)
	d, err := t.open(text)
	for err == nil {
		var answer string
		if answer, err = d.ask(ctx, r.Choices(q, folded)); err != nil {
			break
		}
		switch {
		case slices.Contains([]string{"y", "yes", "1", "once"}, answer):
			return policy.Answer{Allow: true, Scope: policy.ScopeOnce, By: by}, nil
		case slices.Contains([]string{"n", "no", "d", "deny"}, answer):
			return policy.Answer{By: by}, nil
		case answer == "v" && folded:
			text, _ := r.Question(q, true)
			err = d.write(text)
		default:
			if scope := scopeOf(answer); scope != "" && slices.Contains(question.Scopes, scope) {
				return policy.Answer{Allow: true, Scope: scope, By: by}, nil
			}
			// Anything else, an empty line too, is asked again: no key pressed by
			// chance allows or denies.
			err = d.write(r.noAnswer(choices(q, folded)))
		}
	}
	if errors.Is(err, io.EOF) {
		return policy.Answer{By: by}, d.write("\n")
	}
	return policy.Answer{}, err
}

// many asks about several calls at once. The answer, which holds once, is for all
// of them, but if each is to be asked about by itself. The end of input is a no to
// all. One yes is for all of them only if all of each of them is on the screen:
// nothing folded, and nothing that had to scroll away.
func (t *Terminal) many(ctx context.Context, questions []policy.Question) (_ policy.Answer, each bool, _ error) {
	defer t.Screen.Hold()()
	qs := make([]Question, len(questions))
	for i, q := range questions {
		qs[i] = t.Prepare(q)
	}
	columns, rows := t.Size()
	if rows <= 0 {
		rows = 24
	}
	r := Renderer{Width: columns, Color: t.Color}
	text, folded := r.Batch(qs)
	together := !folded && strings.Count(text+r.BatchChoices(qs, true), "\n") < rows
	d, err := t.open(text)
	for err == nil {
		var answer string
		if answer, err = d.ask(ctx, r.BatchChoices(qs, together)); err != nil {
			break
		}
		switch answer {
		case "y", "yes":
			if together {
				return policy.Answer{Allow: true, Scope: policy.ScopeOnce, By: by}, false, nil
			}
		case "n", "no":
			return policy.Answer{By: by}, false, nil
		case "o", "one":
			return policy.Answer{}, true, nil
		}
		err = d.write(r.noAnswer(batchChoices(together)))
	}
	if errors.Is(err, io.EOF) {
		return policy.Answer{By: by}, false, d.write("\n")
	}
	return policy.Answer{}, false, err
}

// dialogue is one prompt that is open.
type dialogue struct {
	t      *Terminal
	moment time.Time
}

// open shows a question. Lines that were typed before do not answer it.
func (t *Terminal) open(text string) (*dialogue, error) {
	d := &dialogue{t: t}
	err := d.write(text)
	d.moment = t.Lines.Discard()
	return d, err
}

// write fails if the person cannot have seen it: then nothing is allowed.
func (d *dialogue) write(text string) error {
	if _, err := io.WriteString(d.t.Out, text); err != nil {
		return fmt.Errorf("show the question: %w", err)
	}
	return nil
}

// ask shows the choices and returns the answer in lower case.
func (d *dialogue) ask(ctx context.Context, choices string) (string, error) {
	if err := d.write(choices); err != nil {
		return "", err
	}
	line, err := d.t.Lines.After(ctx, d.moment)
	if ctx.Err() != nil {
		// Who looks at the prompt learns that it is none any more.
		_ = d.write("\nwithdrawn: " + terminal.Line(context.Cause(ctx).Error()) + "\n")
		return "", context.Cause(ctx)
	}
	return strings.ToLower(strings.TrimSpace(line)), err
}

// scopeOf is the scope that an answer of more than once names.
func scopeOf(answer string) policy.Scope {
	for _, scope := range []policy.Scope{policy.ScopeTurn, policy.ScopeSession, policy.ScopeProject, policy.ScopeAlways, policy.ScopeBelow, policy.ScopeKeepBelow} {
		if answer == string(scope) || answer == string(scope[:1]) {
			return scope
		}
	}
	return ""
}
