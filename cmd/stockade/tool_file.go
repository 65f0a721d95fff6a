package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// Limits of the rows about a file; more are counted, and --json has them all.
const (
	maxImportGroups = 6 // modules from which a core module imports
	maxGroupNames   = 8 // names in one list of imports or exports
)

// fileReport holds what `tool info` shows about a file or a reference.
type fileReport struct {
	file       string // path or reference from the command line
	mod        *tool.Module
	provenance *provenance // nil if the module was read from a file, not fetched
	sandbox.Inspection
}

// infoFile shows the module in a file or of a reference. It is not compiled, run or stored.
func (a *app) infoFile(ctx context.Context, file string) error {
	mod, from, err := a.loadModule(ctx, file)
	if err != nil {
		return err
	}
	i, err := a.door().Sandbox().Inspect(ctx, mod)
	if err != nil {
		return err
	}
	if i.Refusal == nil {
		i.Refusal = a.Ceiling.PermitsRun(mod)
	}
	r := fileReport{file, mod, from, i}
	if a.flags.json {
		return printJSON(a.s, r.json())
	}
	return a.showFile(r)
}

func (a *app) showFile(r fileReport) error {
	a.infoLine("file", r.file)
	a.infoLine("kind", r.Shape.String())
	a.infoLine("size", humanize.Bytes(r.mod.Bytes))
	a.infoLine("sha256", r.mod.Digest)
	if r.provenance != nil {
		a.infoLine("manifest", strings.TrimPrefix(r.provenance.Manifest, "sha256:"))
		a.infoLine("signed by", r.provenance.SignedBy)
	}
	if m := r.Manifest; m != nil {
		a.infoLine("module", m.Name+" "+displayVersion(*m))
	}
	title := "imports"
	for _, row := range r.imports() {
		a.infoLine(title, row)
		title = ""
	}
	a.infoLine("missing", prefixIfSet("of WASI preview 1: ", nameList(r.Missing)))
	a.infoLine("exports", r.exports())
	a.infoLine("inside", r.inside())
	a.infoLine("tools", r.tools())
	if r.Manifest != nil {
		a.infoLine("asks for", registry.WantsOf(*r.Manifest).String())
	}
	verdict, hints := r.verdict()
	a.infoLine("runs here", verdict)
	if r.Manifest != nil {
		a.s.warnOptionArgs(*r.Manifest)
		fmt.Fprintln(a.s.out)
		for _, s := range r.Manifest.Tools {
			fmt.Fprintln(a.s.out, s.Name)
			rows := card{width: a.s.width()}.quotedRows("", "", s.Description, textRows)
			if s.Run != nil {
				rows = append(rows, card{width: a.s.width()}.quotedRows("", "how it is run: ", runLines(*s.Run), textRows)...)
			}
			fmt.Fprintln(a.s.out, strings.Join(rows, "\n"))
		}
	}
	for _, h := range hints {
		a.s.hint("%s", h)
	}
	return nil
}

// imports returns the imports in rows: of a component one for each kind of import, else one
// for each module from which it imports. Without imports the row is "nothing".
func (r fileReport) imports() (rows []string) {
	if r.Component != nil {
		return externRows(r.Component.Imports)
	}
	groups := r.Module.ImportGroups()
	for i, g := range groups {
		if i == maxImportGroups {
			return append(rows, fmt.Sprintf("and from %s", humanize.Plural(len(groups)-i, "more module")))
		}
		rows = append(rows, fmt.Sprintf("%s (%d): %s", displayName(g.Module), len(g.Names), nameList(g.Names)))
	}
	return append(rows, "nothing")[:max(len(rows), 1)]
}

func (r fileReport) exports() string {
	if r.Component != nil {
		return strings.Join(externRows(r.Component.Exports), "; ")
	}
	var functions []string
	for _, e := range r.Module.Exports {
		if e.Kind == wasm.KindFunc {
			functions = append(functions, e.Name)
		}
	}
	if functions == nil {
		return "no function"
	}
	return fmt.Sprintf("%s: %s", humanize.Plural(len(functions), "function"), nameList(functions))
}

// externRows returns the imports or exports of a component in rows, one for each kind; if
// there are none, the row "nothing".
func externRows(externs []wasm.Extern) (rows []string) {
	byKind := map[wasm.ExternKind][]string{}
	for _, e := range externs {
		byKind[e.Kind] = append(byKind[e.Kind], e.Name)
	}
	for kind := range wasm.ExternInstance + 1 {
		if names := byKind[wasm.ExternInstance-kind]; names != nil { // interfaces first
			rows = append(rows, fmt.Sprintf("%s: %s", humanize.Plural(len(names), (wasm.ExternInstance-kind).String()), nameList(names)))
		}
	}
	return append(rows, "nothing")[:max(len(rows), 1)]
}

// inside describes the content of a component; empty: the module is no component.
func (r fileReport) inside() string {
	c := r.Component
	if c == nil {
		return ""
	}
	text := humanize.Plural(len(c.Modules), "core module")
	if c.Components > 0 {
		text += " and " + humanize.Plural(c.Components, "component")
	}
	if r.LargestModule != nil {
		text += fmt.Sprintf("; the largest module has %s and is %s", humanize.Bytes(int64(len(r.LargestModule.Raw))), wasm.Classify(r.LargestModule))
	}
	return text
}

func (r fileReport) tools() string {
	switch {
	case r.Manifest != nil:
		return fmt.Sprintf("%d, described in a section of it", len(r.Manifest.Tools))
	case r.Refusal == nil && r.Shape.Kind != wasm.Command: // few commands do
		return "it lists them when it is asked"
	}
	return ""
}

// verdict describes whether the module runs here; hints are advice, and commands that help or
// show more.
func (r fileReport) verdict() (text string, hints []string) {
	if r.Refusal != nil {
		if _, ok := errors.AsType[*admit.LargeError](r.Refusal); ok {
			if r.provenance != nil {
				return "once it is added: at its size that takes a person's word", []string{formatFlag("stockade tool add --large", r.file)}
			}
			return "once it is compiled: at its size that takes a person's word", []string{formatFlag("stockade tool compile --large", r.file)}
		}
		if e, ok := errors.AsType[*admit.KindError](r.Refusal); ok {
			if how := runAdvice(e); how != "" {
				hints = []string{how}
			}
			if e.MainRuns {
				return "no, but its largest core module is of a kind that does", hints
			}
			text = "no: modules of its kind do not"
			if needs := r.foreignImports(); len(needs) > 0 {
				text = "no: it needs functions of a host of its own: " + nameList(needs)
			}
			return text, hints
		}
		if e, ok := errors.AsType[*admit.RefusedError](r.Refusal); ok {
			return "no: " + e.Why, nil
		}
		return "no: " + r.Refusal.Error(), nil
	}
	if r.Manifest != nil {
		return "yes", nil
	}
	describe := formatFlag("stockade tool describe", r.file)
	switch r.Shape.Kind {
	case wasm.Command:
		text = "yes, if it answers --schema as ikigai's tools do, or is described"
		hints = []string{"to begin a description: " + describe}
	case wasm.Extism:
		text = "yes: each of its functions that takes no parameters is a tool with one text"
		hints = []string{"to begin a description of them: " + describe}
	default:
		text = "yes"
	}
	return text, append(hints, "to ask it for its tools, with nothing granted: "+formatFlag("stockade tool info --ask", r.file))
}

// foreignImports returns the imports of a module beyond those of WASI, which only the host has
// for which it was made; nil for the kinds whose hosts are known.
func (r fileReport) foreignImports() (out []string) {
	if r.Shape.Kind != wasm.Unknown && r.Shape.Kind != wasm.Library && r.Shape.Kind != wasm.Reactor {
		return nil // the hosts of the other kinds have these imports
	}
	for _, i := range r.Module.Imports {
		if i.Module != "wasi_snapshot_preview1" && i.Module != "wasi_unstable" {
			out = append(out, i.Module+"."+i.Name)
		}
	}
	return out
}

func nameList(names []string) string {
	var out []string
	for i, name := range names {
		if i == maxGroupNames && len(names) > i+1 {
			out = append(out, fmt.Sprintf("and %d more", len(names)-i))
			break
		}
		out = append(out, displayName(name))
	}
	return strings.Join(out, ", ")
}

// plainName matches a name that cannot be mistaken for other text.
var plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_$.:/@#|*\[\]-]{1,80}$`) })

// displayName returns a name that a module has chosen. If the name is not plain, it is quoted
// in ASCII and cut, because it could look like text of ours.
func displayName(name string) string {
	if plainName().MatchString(name) {
		return name
	}
	const most = 60
	short := strings.ToValidUTF8(name[:min(len(name), most)], "")
	if short != name {
		return strconv.QuoteToASCII(short) + "..."
	}
	return strconv.QuoteToASCII(short)
}

// fileJSON is the output of `tool info --json` about a file or a reference.
type fileJSON struct {
	File        string `json:"file"`
	Kind        string `json:"kind"`
	Description string `json:"description"`
	Bytes       int64  `json:"bytes"`
	SHA256      string `json:"sha256"`
	*provenance
	Module      string      `json:"module,omitempty"`
	Version     string      `json:"version,omitempty"`
	Imports     []namedJSON `json:"imports"`
	Missing     []string    `json:"missing,omitempty"`
	Exports     []namedJSON `json:"exports"`
	CoreModules []int       `json:"core_modules,omitempty"`
	Tools       []specJSON  `json:"tools,omitempty"`
	Runs        bool        `json:"runs"`
	Why         string      `json:"why,omitempty"`
	Hints       []string    `json:"hints,omitempty"`
}

// namedJSON is an import or an export. Module is set only for an import of a core module.
type namedJSON struct {
	Module string `json:"module,omitempty"`
	Name   string `json:"name"`
	Kind   string `json:"kind"`
}

// specJSON is a tool as its module's manifest describes it.
type specJSON struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Asks        tool.Capabilities `json:"asks"`
	Run         *tool.Run         `json:"run,omitempty"`
}

func (r fileReport) json() fileJSON {
	out := fileJSON{
		File: r.file, Kind: r.Shape.Kind.String(), Description: r.Shape.String(), Bytes: r.mod.Bytes, SHA256: r.mod.Digest,
		Missing: r.Missing, Imports: []namedJSON{}, Exports: []namedJSON{}, Runs: r.Refusal == nil, provenance: r.provenance,
	}
	if m := r.Module; m != nil {
		for _, i := range m.Imports {
			out.Imports = append(out.Imports, namedJSON{i.Module, i.Name, i.Kind.String()})
		}
		for _, e := range m.Exports {
			out.Exports = append(out.Exports, namedJSON{Name: e.Name, Kind: e.Kind.String()})
		}
	}
	if c := r.Component; c != nil {
		for _, e := range c.Imports {
			out.Imports = append(out.Imports, namedJSON{Name: e.Name, Kind: e.Kind.String()})
		}
		for _, e := range c.Exports {
			out.Exports = append(out.Exports, namedJSON{Name: e.Name, Kind: e.Kind.String()})
		}
		for _, m := range c.Modules {
			out.CoreModules = append(out.CoreModules, len(m))
		}
	}
	if m := r.Manifest; m != nil {
		out.Module, out.Version = m.Name, m.Version
		for _, s := range m.Tools {
			out.Tools = append(out.Tools, specJSON{s.Name, s.Description, s.Capabilities, s.Run})
		}
	}
	verdict, hints := r.verdict()
	out.Hints = hints
	if !out.Runs {
		out.Why = strings.TrimPrefix(verdict, "no: ")
	}
	return out
}
