package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/prompt"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/tool"
)

// giftWords are those of a yes that gives things: all of them if they are short, and
// else what is on the card.
func giftWords(a tool.Allowance) string {
	if words := allowedWords(a); len(words) <= 26 {
		return "with " + words
	}
	return "with all of that"
}

var (
	no      = prompt.Choice{Letter: 'n', Words: "no"}
	yesOrNo = []prompt.Choice{{Letter: 'y', Words: "yes"}, no}
)

// yesChoices are a yes, which gives things if there are any, and then the others.
func yesChoices(gift tool.Allowance, others ...prompt.Choice) []prompt.Choice {
	if gift.Nothing() {
		return append([]prompt.Choice{{Letter: 'y', Words: "yes"}}, others...)
	}
	return append([]prompt.Choice{{Letter: 'y', Words: giftWords(gift)}, {Letter: 'o', Words: "only computing"}}, others...)
}

// put puts a question of the program's own to a terminal, and returns the letter of what
// was chosen.
func (a *app) put(ctx context.Context, in *os.File, out io.Writer, p *prompt.Prompt) (rune, error) {
	t := prompt.Terminal{
		Lines: shownLines{in, out}, Out: out, Color: a.s.colors(), Screen: new(terminal.Screen), Interrupt: errInterrupted,
		Size: func() (int, int) { return columnsOf(in), 0 },
	}
	choice, err := t.Ask(ctx, p)
	return choice.Letter, err
}

// shownLines reads answers from a terminal, one key each. What is typed after an answer is
// left for the next reader.
type shownLines struct {
	in  *os.File
	out io.Writer
}

func (l shownLines) Discard() time.Time {
	terminal.FlushInput(l.in)
	return time.Time{}
}

func (l shownLines) After(ctx context.Context, _ time.Time) (string, error) {
	defer terminal.EachKey(l.in)()
	key, err := readShown(ctx, l.in)
	if err == nil && strings.Trim(key, "\x00\x04") == "" { // Ctrl-D
		err = io.EOF
	}
	if err == nil && !strings.HasSuffix(key, "\n") {
		fmt.Fprintln(l.out)
	}
	return key, err
}

// columnsOf is how wide a terminal is for a card.
func columnsOf(in *os.File) int {
	width, _, err := term.GetSize(int(in.Fd()))
	if err != nil || width < 60 {
		return 80
	}
	return min(width, 120)
}
