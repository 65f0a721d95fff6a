package extism

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stockade-dev/stockade/host/sandbox/dialect"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// Describe implements [dialect.Dialect]. A generic plugin is not run for it.
func (d Dialect) Describe(ctx context.Context, g *dialect.Guest, name string, m *wasm.Module) ([]byte, []string, error) {
	l := &listing{Manifest: tool.Manifest{ABI: d.ABI(), Name: name, Inferred: true}, needs: dialect.Needs(m)}
	if d.Kind == wasm.Extism {
		for _, function := range offered(m) {
			l.add(tool.Definition{
				Name:        function,
				Description: fmt.Sprintf("Runs %q of the Extism plugin %s. Its author does not say what it does.", function, name),
				Parameters:  plainParameters,
			}, &tool.Run{Function: function, Input: "{input}"})
		}
	} else if err := d.list(ctx, g, l); err != nil {
		return nil, nil, err
	}
	text, err := json.Marshal(l.Manifest)
	return text, l.said(), err
}

var plainParameters = json.RawMessage(`{"type":"object","properties":{"input":{"type":"string","description":"What the plugin reads."}},"additionalProperties":false}`)

// listing is a manifest that is being made of what a stranger says.
type listing struct {
	tool.Manifest
	needs tool.Capabilities
	bytes int
	notes []string
	more  int // notes that there is no room for
}

// Limits on a listing.
const (
	maxTools = 128
	maxNotes = 16
	// maxSpecs keeps the manifest below tool.MaxManifestBytes, with its head.
	maxSpecs = tool.MaxManifestBytes - 4<<10
)

// add adds a tool, or a note why not.
func (l *listing) add(def tool.Definition, run *tool.Run) {
	spec := tool.Spec{Definition: def, Capabilities: l.needs, Run: run}
	one := l.Manifest
	one.Tools = []tool.Spec{spec}
	text, err := json.Marshal(one)
	if err == nil {
		_, err = tool.ParseManifest(text)
	}
	for _, t := range l.Tools {
		if err == nil && t.Name == def.Name {
			err = fmt.Errorf("two tools are named %q", def.Name)
		}
	}
	switch {
	case err != nil:
		l.note("a tool is left out: %v", err)
	case len(l.Tools) == maxTools || l.bytes+len(text) > maxSpecs:
		l.note("the tool %q is left out: there is no room for it", def.Name)
	default:
		l.Tools, l.bytes = append(l.Tools, spec), l.bytes+len(text)
	}
}

func (l *listing) note(format string, args ...any) {
	if len(l.notes) == maxNotes {
		l.more++
		return
	}
	l.notes = append(l.notes, fmt.Sprintf("%.400s", fmt.Sprintf(format, args...)))
}

// said are the notes.
func (l *listing) said() []string {
	if l.more > 0 {
		return append(l.notes, fmt.Sprintf("and %d more like these", l.more))
	}
	return l.notes
}
