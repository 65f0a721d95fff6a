package main

import (
	"fmt"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/prompt"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/toolpage"
	"github.com/stockade-dev/stockade/host/shellword"
	"github.com/stockade-dev/stockade/host/tool"
)

// callOf returns the beginning of a command line that calls a tool.
func callOf(e *tool.Entry) string {
	name := e.Name
	if e.Module.Origin == tool.OriginFile {
		if word, ok := shellword.Quote(e.Module.Path + ":" + e.Name); ok {
			name = word
		}
	}
	return "stockade call " + name
}

// describeTool prints the manifest's description of a tool. Text of a stranger stands behind a
// bar, below a line with the text says.
func (a *app) describeTool(e *tool.Entry, says string) {
	if e.Module.Origin == tool.OriginBuiltin {
		fmt.Fprintf(a.s.out, "\n%s", toolpage.WrapText("", e.Description, a.s.width()))
		for _, part := range toolpage.Parts(e.Spec, callOf(e), a.s.width()) {
			fmt.Fprintf(a.s.out, "\n%s:\n%s", part.Title, part.Text)
		}
		return
	}
	fmt.Fprintf(a.s.out, "\n%s\n%s", says, prompt.View{Width: a.s.width()}.Text(e.Description, true))
	for _, part := range toolpage.Parts(e.Spec, callOf(e), a.s.width()-len(prompt.Bar)) {
		rows := terminal.Fold(strings.TrimRight(part.Text, "\n"), prompt.Bar, prompt.Bar, a.s.width())
		fmt.Fprintf(a.s.out, "\n%s\n%s\n", partTitles[part.Title], strings.Join(rows, "\n"))
	}
}

// partTitles maps the title of a part to the title that it has above texts of a stranger.
var partTitles = map[string]string{
	"Arguments": "Its arguments:", "Examples": "Calls of it, as its author has written them:", "Limits": "Its limits:", "Errors": "Its errors:",
}
