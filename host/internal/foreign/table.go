package foreign

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/tool"
)

// Row is the result of running a module.
type Row struct {
	Name, From string
	Kind       string // derived from its bytes
	Needs      string // capabilities it asks for, and functions it imports that do not exist
	Call       string
	Result     string
}

// limits end a guest that would run for ever, before it takes long.
var limits = policy.Limits{Fuel: 20_000_000_000, OutputBytes: 4 << 20}

// RunRow runs a module in a directory that has [Files].
func RunRow(ctx context.Context, box *sandbox.Sandbox, m Module, code []byte, dir string) (Row, error) {
	row := Row{Name: m.Name, From: m.Source.String(), Call: "what it is"}
	mod := tool.NewModule(fileName(m.Name), tool.OriginFile, "", code)
	found, err := box.Inspect(ctx, mod)
	if refused, ok := errors.AsType[*admit.RefusedError](err); ok {
		row.Kind, row.Result = "-", "refused: "+refused.Why
		return row, nil
	}
	if err != nil {
		return row, err
	}
	row.Kind, row.Needs = found.Shape.String(), strings.Join(found.Missing, " ")
	if row.Needs != "" {
		row.Needs = "not there: " + row.Needs
	}
	r, err := Prepare(ctx, box, m.Name, code, m.Run.TOML(), dir)
	if refused, ok := errors.AsType[*admit.RefusedError](err); ok {
		row.Result = "refused: " + refused.Why
		return row, nil
	}
	if err != nil {
		return row, err
	}
	args := []byte(`{}`)
	if m.Input != "" {
		args = tool.Marshal(map[string]string{"input": m.Input})
	}
	row.Call = callText(m)
	row.Needs = strings.Join(slices.DeleteFunc([]string{capabilitiesText(r, m.Tool), row.Needs}, func(s string) bool { return s == "" }), "; ")
	result, err := r.Call(ctx, box, m.Tool, args, limits, nil)
	if err != nil {
		return row, err
	}
	row.Result = strings.ReplaceAll(result.String(), dir, "WORKSPACE")
	return row, nil
}

// capabilitiesText lists the capabilities of a tool.
func capabilitiesText(r *Prepared, name string) string {
	var all []string
	for _, s := range r.Manifest.Tools {
		if s.Name != cmp.Or(name, r.Manifest.Tools[0].Name) {
			continue
		}
		if c := s.Capabilities; c.Files != "" {
			all = append(all, "files: "+string(c.Files))
		}
		if s.Capabilities.Network != "" {
			all = append(all, "network")
		}
	}
	return strings.Join(all, ", ")
}

// callText returns the call in the form that a person would write.
func callText(m Module) string {
	text := strings.Join(m.Run.Args, " ")
	if m.Run.Stdin != "" {
		text = "stdin " + m.Run.Stdin
	}
	text = strings.ReplaceAll(text, "{input}", m.Input)
	if m.Run.Args == nil && m.Run.Stdin == "" {
		text = m.Input
	}
	return strings.TrimSpace(m.Tool + " " + text)
}

// maxCell limits the length of a text in the table, in characters.
const maxCell = 160

// Line returns the row in Markdown.
func (r Row) Line() string {
	cells := []string{r.Name, r.From, r.Kind, r.Needs, r.Call, r.Result}
	for i, c := range cells {
		c = strings.NewReplacer("\n", " ", "|", `\|`, "\x00", `\0`).Replace(c)
		if runes := []rune(c); len(runes) > maxCell {
			c = string(runes[:maxCell]) + " ..."
		}
		cells[i] = strings.TrimSpace(c)
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// TableHead is the start of the table.
const TableHead = `# Modules made for other hosts, and their results

Made by a test: ` + "`make test-foreign`" + ` compares it with the present results, ` + "`go test -all -update`" + ` in this folder
writes it again. Each module is as it was published. A command runs with a description of a few lines, a plugin
without one, except for its configuration.

| module | from | kind | needs | asked | result |
|---|---|---|---|---|---|
`
