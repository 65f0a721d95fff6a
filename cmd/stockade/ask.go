package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

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

// yesAnswers are a yes, which gives things if there are any, and then the others.
func yesAnswers(gift tool.Allowance, others ...answer) []answer {
	if gift.Nothing() {
		return append([]answer{{"y", "yes"}}, others...)
	}
	return append([]answer{{"y", giftWords(gift)}, {"o", "only computing"}}, others...)
}

// answer is what can be typed at a question: its letter, or its number.
type answer struct{ letter, words string }

// asking is a question on a terminal.
type asking struct {
	in    *os.File
	out   io.Writer
	width int
	color bool
}

// ask asks until one of the answers is typed. "?" shows more. The end of input is the
// last of them, which does nothing.
func (q asking) ask(ctx context.Context, what string, answers []answer, more func()) (string, error) {
	terminal.FlushInput(q.in) // an answer must not be given before its question is seen
	for {
		fmt.Fprint(q.out, q.rows(what, answers))
		line, err := readShown(ctx, q.in)
		if errors.Is(err, io.EOF) {
			return answers[len(answers)-1].letter, nil
		}
		if err != nil {
			return "", err
		}
		typed := strings.ToLower(strings.TrimSpace(line))
		if typed == "?" {
			more()
			continue
		}
		for i, a := range answers {
			if typed == a.letter || typed == fmt.Sprint(i+1) || typed == map[string]string{"y": "yes", "n": "no"}[a.letter] && typed != "" {
				return a.letter, nil
			}
		}
		fmt.Fprintln(q.out, "  That is no answer: type one of the letters or numbers, and Enter.")
	}
}

// rows is the question with its answers, broken between these only. Behind the last
// is room for what is typed.
func (q asking) rows(what string, answers []answer) string {
	var b strings.Builder
	row := "  " + what
	end := func() { b.WriteString(terminal.Style(q.color, terminal.Bold, row)) }
	for i, a := range answers {
		word := fit(fmt.Sprintf("[%s]%d %s", a.letter, i+1, a.words), q.width-len(what)-len("      [?] x "))
		if terminal.Width(row)+2+terminal.Width(word) >= q.width-len("  [?] x") {
			end()
			b.WriteByte('\n')
			row = "  " + strings.Repeat(" ", len(what))
		}
		row += "  " + word
	}
	row += "  [?]"
	end()
	b.WriteByte(' ')
	return b.String()
}

// columnsOf is how wide a terminal is for a card.
func columnsOf(in *os.File) int {
	width, _, err := term.GetSize(int(in.Fd()))
	if err != nil || width < 60 {
		return 80
	}
	return min(width, 120)
}
