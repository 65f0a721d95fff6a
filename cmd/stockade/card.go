package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/prompt"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/tool"
)

// card shows a module that waits for a yes: first, on at most cardRows rows with the
// question, what a person needs to decide; the rest behind "?".
type card struct {
	review *registry.Review
	width  int
	work   string // the workspace, for which files can be allowed
}

// What of a card is shown before "?" is pressed, so that it fits with the question
// on cardRows rows.
const (
	cardRows       = 15
	shownTools     = 3
	shownChanges   = 3
	maxCardVersion = 20
)

// short is the card before "?".
func (c card) short() string {
	var b strings.Builder
	r := c.review
	line := func(title, format string, args ...any) {
		fmt.Fprintf(&b, "  %-11s %s\n", title, clip(terminal.Line(fmt.Sprintf(format, args...)), c.width-19))
	}
	version := clip(cmp.Or(r.Manifest.Version, "no version"), maxCardVersion)
	switch {
	case r.Same():
		line(r.Record.Name, "%s, which you have", version)
	case r.Was != nil:
		line(r.Record.Name, "%s -> %s", clip(cmp.Or(r.Was.Manifest.Version, "no version"), maxCardVersion), version)
	default:
		line(r.Record.Name, "%s, %s", version, humanBytes(r.Record.Bytes))
	}
	line("from", "%s", pinned(r))
	line("signed by", "%s", signedBy(r))
	if r.Was == nil {
		line("tools", "%s", strings.Join(toolNames(r), ", "))
	}
	w := registry.WantsOf(r.Manifest)
	line("wants", "%s", w.String())
	if r.Was != nil {
		c.changes(&b, false)
	} else {
		for i, s := range r.Manifest.Tools {
			if i == shownTools && len(r.Manifest.Tools) > shownTools+1 {
				line("", "... and %d more tools", len(r.Manifest.Tools)-i)
				break
			}
			fmt.Fprintf(&b, "    | %s\n", clip(terminal.Line(s.Name+": "+firstLine(s.Description)), c.width-12))
		}
	}
	for _, warning := range c.warnings(w) {
		fmt.Fprintf(&b, "  %s\n", clip(warning, c.width-8))
	}
	return b.String()
}

// warnings say what a yes could lead to.
func (c card) warnings(w registry.Wants) (out []string) {
	hosts := strings.Join(w.Hosts, ", ")
	switch {
	case w.Sends:
		out = append(out, "It can send away the files that it reads, to "+cmp.Or(hosts, "the hosts that you allow")+".")
	case hosts != "" || w.AnyHost:
		out = append(out, "It can send what the model tells it to "+cmp.Or(hosts, "the hosts that you allow")+".")
	}
	if w.Exec {
		out = append(out, "It wants to run commands; each of them would be asked about.")
	}
	return out
}

// changes lists what is different from what was approved.
func (c card) changes(b *strings.Builder, all bool) {
	r := prompt.Renderer{Width: c.width}
	for i, change := range c.review.Changes {
		if i == shownChanges && !all {
			fmt.Fprintf(b, "  ... and %d more changes\n", len(c.review.Changes)-i)
			return
		}
		fmt.Fprintf(b, "  %s\n", change.What)
		if all {
			for _, text := range []struct{ before, text string }{{"- ", change.Was}, {"+ ", change.Is}} {
				if text.text != "" {
					shown, _ := r.Text(text.before+text.text, true)
					b.WriteString(shown)
				}
			}
			continue
		}
		was, is := apart(change.Was, change.Is)
		for _, text := range []struct{ before, text string }{{"- ", was}, {"+ ", is}} {
			if text.text != "" {
				fmt.Fprintf(b, "    | %s\n", clip(terminal.Line(text.before+text.text), c.width-12))
			}
		}
	}
	if len(c.review.Changes) == 0 && c.review.Was != nil && !c.review.Same() {
		fmt.Fprintf(b, "  its code is another; what it says of itself and asks for is the same\n")
	}
}

// apart leaves out most of what two texts begin with, so that what is new is on the
// row.
func apart(was, is string) (string, string) {
	n := 0
	for n < len(was) && n < len(is) && was[n] == is[n] {
		n++
	}
	if n <= 30 {
		return was, is
	}
	cut := strings.LastIndexByte(was[:n-20], ' ') + 1
	if cut == 0 {
		return was, is
	}
	return "... " + was[cut:], "... " + is[cut:]
}

// long is what "?" shows: everything.
func (c card) long() string {
	var b strings.Builder
	r := c.review
	text := func(title, text string) {
		shown, _ := prompt.Renderer{Width: c.width}.Text(text, true)
		fmt.Fprintf(&b, "  %s\n%s", title, shown)
	}
	fmt.Fprintf(&b, "  module    sha256:%s, %d bytes\n", r.Record.Digest, r.Record.Bytes)
	if r.Record.ManifestDigest != "" {
		fmt.Fprintf(&b, "  manifest  %s\n", r.Record.ManifestDigest)
	}
	text("source:", r.Record.Source)
	for _, k := range r.Record.Keys {
		fmt.Fprintf(&b, "  key       %s\n", k)
	}
	for _, k := range r.Verdict.Unknown {
		fmt.Fprintf(&b, "  key       %s, which nobody whom you know has\n", k)
	}
	if r.Was != nil {
		c.changes(&b, true)
	}
	for _, s := range r.Manifest.Tools {
		text(fmt.Sprintf("%s_%s asks for %s, and says:", r.Record.Name, s.Name, terminal.Line(s.Capabilities.String())), s.Description)
		text("its arguments:", s.Said().Schema)
	}
	return b.String()
}

func toolNames(r *registry.Review) (out []string) {
	for _, s := range r.Manifest.Tools {
		out = append(out, r.Record.Name+"_"+s.Name)
	}
	return out
}

// pinned is where a module came from, with the digest of what came.
func pinned(r *registry.Review) string {
	digest := "sha256:" + r.Record.Digest
	if r.Record.ManifestDigest != "" {
		digest = r.Record.ManifestDigest
	}
	return fmt.Sprintf("%s  %.15s...", r.Record.Source, digest)
}

// signedBy says who has signed. A signature by a key that nobody is known by is none.
func signedBy(r *registry.Review) string {
	switch {
	case r.Record.Signer != "":
		return fmt.Sprintf("%s, whose key you know (%s)", r.Record.Signer, strings.Join(r.Record.Keys, ", "))
	case len(r.Verdict.Unknown) > 0:
		return fmt.Sprintf("a key that you do not know (%s)", r.Verdict.Unknown[0].ID())
	}
	return "nobody"
}

// allowedWords says in one line what a module may use.
func allowedWords(a tool.Allowance) string {
	var out []string
	for _, d := range a.Read {
		out = append(out, "reads "+d)
	}
	for _, d := range a.Write {
		out = append(out, "changes "+d)
	}
	out = append(out, a.Hosts...)
	for _, s := range a.Secrets {
		out = append(out, "secret "+s)
	}
	if a.Exec {
		out = append(out, "commands, each asked about")
	}
	if out == nil {
		return "nothing"
	}
	return strings.Join(out, ", ")
}

// question asks on a terminal until one of the answers is typed, each of which has a
// letter in brackets: "[y]es". Their numbers answer, too. "?" shows more. The end of
// input is the last of them, which does nothing.
func question(ctx context.Context, in *os.File, out io.Writer, ask string, answers []string, more func()) (string, error) {
	terminal.FlushInput(in) // an answer must not be given before its question is seen
	letter := func(i int) string { return answers[i][strings.IndexByte(answers[i], '[')+1:][:1] }
	last := letter(len(answers) - 1)
	for {
		fmt.Fprintf(out, "  %s  %s  [?] ", ask, strings.Join(answers, "  "))
		line, err := readShown(ctx, in)
		if errors.Is(err, io.EOF) {
			return last, nil
		}
		if err != nil {
			return "", err
		}
		typed := strings.ToLower(strings.TrimSpace(line))
		if typed == "?" {
			more()
			continue
		}
		for i := range answers {
			if typed == letter(i) || typed == fmt.Sprint(i+1) || typed != "" && typed == strings.ToLower(word(answers[i])) {
				return letter(i), nil
			}
		}
		fmt.Fprintln(out, "  that is no answer: type one of the letters in brackets, and Enter")
	}
}

// word is the word of an answer, such as "yes" of "[y]es, with all".
func word(answer string) string {
	answer = strings.NewReplacer("[", "", "]", "").Replace(answer)
	answer, _, _ = strings.Cut(answer, " ")
	return strings.Trim(answer, ",")
}

// columnsOf is how wide a terminal is for a card.
func columnsOf(in *os.File) int {
	width, _, err := term.GetSize(int(in.Fd()))
	if err != nil || width < 60 {
		return 80
	}
	return min(width, 120)
}
