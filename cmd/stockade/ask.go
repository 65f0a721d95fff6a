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

// yesLabel returns the label of a yes that gives an allowance: the allowance itself if it is
// short, and otherwise a reference to the card.
func yesLabel(a tool.Allowance) string {
	if words := allowanceText(a); len(words) <= 26 {
		return "with " + words
	}
	return "with all of that"
}

var (
	noChoice = prompt.Choice{Letter: 'n', Label: "no"}
	yesOrNo  = []prompt.Choice{{Letter: 'y', Label: "yes"}, noChoice}
)

// yesChoices returns the choice "yes", followed by others. If a yes gives an allowance (gift is
// not zero), the label of the yes shows it, and the choice "only computing" stands between.
func yesChoices(gift tool.Allowance, others ...prompt.Choice) []prompt.Choice {
	if gift.IsZero() {
		return append([]prompt.Choice{{Letter: 'y', Label: "yes"}}, others...)
	}
	return append([]prompt.Choice{{Letter: 'y', Label: yesLabel(gift)}, {Letter: 'o', Label: "only computing"}}, others...)
}

// askChoice asks a question of the program on a terminal, and returns the letter of the
// chosen answer.
func (a *app) askChoice(ctx context.Context, in *os.File, out io.Writer, p *prompt.Prompt) (rune, error) {
	t := prompt.Terminal{
		Lines: keyReader{in, out}, Out: out, Color: a.s.colors(), Screen: new(terminal.Screen), Interrupt: errInterrupted,
		Size: func() (int, int) { return columnsOf(in), 0 },
	}
	choice, err := t.Ask(ctx, p)
	return choice.Letter, err
}

// keyReader reads answers from a terminal without waiting for Enter. Keys that wait together
// are one answer; later ones are left for the next reader.
type keyReader struct {
	in  *os.File
	out io.Writer
}

func (l keyReader) Discard() time.Time {
	terminal.FlushInput(l.in)
	return time.Time{}
}

func (l keyReader) After(ctx context.Context, _ time.Time) (string, error) {
	defer terminal.Cbreak(l.in)()
	key, err := readLine(ctx, l.in)
	if err == nil && strings.Trim(key, "\x00\x04") == "" { // Ctrl-D
		err = io.EOF
	}
	if err == nil && !strings.HasSuffix(key, "\n") {
		fmt.Fprintln(l.out)
	}
	return key, err
}

// columnsOf returns the width of a terminal for a card, 60 to 120 columns. For a narrower
// terminal, or an unknown width, it returns 80.
func columnsOf(in *os.File) int {
	width, _, err := term.GetSize(int(in.Fd()))
	if err != nil || width < 60 {
		return 80
	}
	return min(width, 120)
}
