package extism

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/sandbox/dialect"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// Describe implements [dialect.Dialect]. Generic plugins are not run: their exports are their
// tools.
func (d Dialect) Describe(ctx context.Context, g *dialect.Guest, name string, m *wasm.Module) ([]byte, []string, error) {
	l := &listing{Manifest: tool.Manifest{ABI: d.ABI(), Name: name, Inferred: true}, capabilities: dialect.InferCapabilities(m)}
	if d.Kind == wasm.Extism {
		for _, function := range toolFunctions(m) {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			l.add(tool.Definition{
				Name:        function,
				Description: fmt.Sprintf("Runs %q of the Extism plugin %s. Its author does not say what it does.", function, name),
				Parameters:  inputParameters,
			}, inputRun(function))
		}
	} else if err := d.list(ctx, g, l); err != nil {
		return nil, nil, err
	}
	text, err := json.Marshal(l.Manifest)
	return text, l.allNotes(), err
}

var inputParameters = json.RawMessage(`{"type":"object","properties":{"input":{"type":"string","description":"What the plugin reads."}},"additionalProperties":false}`)

// listing builds a manifest from the list of a plugin, which may be hostile.
type listing struct {
	tool.Manifest
	capabilities tool.Capabilities // capabilities of each tool
	bytes        int               // size of the tools in JSON, in bytes
	notes        []string
	droppedNotes int // number of notes that did not fit
}

// Limits on a listing.
const (
	maxTools = 128 // further tools are left out, with a note
	maxNotes = 16  // further notes are only counted
	// maxSpecs limits the bytes of the tools in JSON, so that the whole manifest stays below
	// tool.MaxManifestBytes. A tool that does not fit is left out, with a note.
	maxSpecs = tool.MaxManifestBytes - 4<<10
)

// add adds a tool, or a note with the reason why the tool is left out.
func (l *listing) add(def tool.Definition, run *tool.Run) {
	switch { // cheap checks first: there may be many tools
	case !tool.ValidName(def.Name):
		l.note("a tool is left out: its name %.80q is not 1 to 64 letters, digits, '_' or '-'", def.Name)
		return
	case len(l.Tools) == maxTools:
		l.note("the tool %q is left out: a module has at most %d", def.Name, maxTools)
		return
	case slices.ContainsFunc(l.Tools, func(s tool.Spec) bool { return s.Name == def.Name }):
		l.note("a tool is left out: two are named %q", def.Name)
		return
	}
	spec := tool.Spec{Definition: def, Capabilities: l.capabilities, Run: run}
	single := l.Manifest
	single.Tools = []tool.Spec{spec}
	text, err := json.Marshal(single)
	if err == nil {
		_, err = tool.ParseManifest(text)
	}
	switch {
	case err != nil:
		l.note("the tool %q is left out: %s", def.Name, strings.TrimPrefix(err.Error(), "manifest: tool 0: "+def.Name+": "))
	case l.bytes+len(text) > maxSpecs:
		l.note("the tool %q is left out: with it, what the module says about its tools is more than %d KiB", def.Name, tool.MaxManifestBytes>>10)
	default:
		l.Tools, l.bytes = append(l.Tools, spec), l.bytes+len(text)
	}
}

func (l *listing) note(format string, args ...any) {
	if len(l.notes) == maxNotes {
		l.droppedNotes++
		return
	}
	l.notes = append(l.notes, fmt.Sprintf("%.400s", fmt.Sprintf(format, args...)))
}

func (l *listing) allNotes() []string {
	if l.droppedNotes > 0 {
		return append(l.notes, fmt.Sprintf("and %d more like these", l.droppedNotes))
	}
	return l.notes
}
