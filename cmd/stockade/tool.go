package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/table"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/settings"
	"github.com/stockade-dev/stockade/host/tool"
)

func newToolCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "tool", Short: "The tools: what there is, what each asks for", Long: `List, show, add and share tools. ` + "`stockade help modules`" + ` is about those that others
have made, ` + "`stockade help author`" + ` about making one.`,
		Example: "  stockade tool list\n  stockade tool add oci://registry.example.org/tools/weather:1.2\n  stockade tool new weather"}
	list := &cobra.Command{
		Use: "list", Short: "List the tools", Args: cobra.NoArgs,
		Example: "  stockade tool list\n  stockade tool list --json | jq -r '.[].name'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.rescanSystem = true
			t, err := newToolset(cmd.Context(), a)
			if err != nil {
				return err
			}
			if a.flags.json {
				return t.listJSON(a.s, func(string, string) bool { return true })
			}
			return t.list(a.s)
		},
	}
	list.Flags().BoolVar(&a.flags.json, "json", false, "print JSON")
	for _, g := range toolGroups {
		cmd.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
	}
	cmd.AddCommand(list, newToolInfoCmd(a), newToolAddCmd(a), newToolUpdateCmd(a), newToolRemoveCmd(a), newToolGrantCmd(a), newToolVerifyCmd(a), newToolCompileCmd(a), newToolTrustCmd(a))
	cmd.AddCommand(newToolSwitchCmds(a)...)
	cmd.AddCommand(newToolLockCmds(a)...)
	cmd.AddCommand(newToolShareCmds(a)...)
	cmd.AddCommand(newAuthorCmds(a)...)
	for _, c := range cmd.Commands() {
		for _, g := range toolGroups {
			if slices.Contains(g.commands, c.Name()) {
				c.GroupID = g.title
			}
		}
		if complete := a.completions()[c.Name()]; complete != nil {
			c.ValidArgsFunction = complete
		}
	}
	return cmd
}

func newToolInfoCmd(a *app) *cobra.Command {
	ask, schema := false, false
	cmd := &cobra.Command{
		Use: "info TOOL|MODULE|FILE|REF", Short: "Show a tool, an added module, or a file",
		Long: `Show a tool or an added module by its name, or describe a file. A word that ends
in .wasm or has a slash in it is a file, any other word is a name. REF is as in
` + "`stockade tool add`" + `: oci://HOST/REPOSITORY:TAG, https://... or an OCI layout.
The module that REF names is fetched and not kept.

For a file it shows the kind of module, its imports and exports, the tools that it
describes, and whether it runs here or what would make it run. Nothing of the
file is compiled or run. --ask asks a module for its tools, with
nothing granted, and FILE.wasm:TOOL shows one of them.

--schema prints the JSON Schema of the arguments of one tool and nothing else.

` + exitHelp,
		Example: `  stockade tool info grep
  stockade tool info weather
  stockade tool info ./module.wasm
  stockade tool info --json ~/Downloads/plugin.wasm | jq .runs
  stockade tool info oci://registry.example.org/tools/weather:1.2
  stockade tool info ./module.wasm:TOOL`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runToolInfo(cmd.Context(), a, args[0], ask, schema)
		},
	}
	cmd.Flags().BoolVar(&a.flags.json, "json", false, "print JSON")
	cmd.Flags().BoolVar(&ask, "ask", false, "ask the module of a file for its tools")
	cmd.Flags().BoolVar(&schema, "schema", false, "print the JSON Schema of a tool's arguments")
	addReachFlag(cmd, a)
	return cmd
}

func runToolInfo(ctx context.Context, a *app, name string, ask, schema bool) error {
	file, inner, isFile := registry.SplitPath(name)
	if strings.Contains(name, "://") {
		file, inner = name, ""
	}
	switch {
	case schema && a.flags.json:
		return usageError("--json has the schema in its field `parameters`", "--schema and --json cannot both be given")
	case schema && isFile && inner == "":
		return usageError("for example: stockade tool info --schema ./module.wasm:TOOL", "--schema is for one tool, and %q is a file", humanize.Clip(name, maxShownName))
	}
	if isFile && inner == "" && !ask {
		return a.infoFile(ctx, file)
	}
	if !isFile {
		if ask {
			return usageError("for example: stockade tool info --ask ./module.wasm", "--ask is for a file, and %q is a name", humanize.Clip(name, maxShownName))
		}
		t, err := newToolset(ctx, a)
		if err != nil {
			return err
		}
		switch {
		case a.flags.json:
			return t.infoJSON(a.s, name)
		case schema:
			return t.schema(a.s, name)
		}
		return t.info(ctx, a, name)
	}
	mod, _, err := a.loadModule(ctx, file)
	if err != nil {
		return err
	}
	catalog, err := registry.Catalog(ctx, a.door().Sandbox(), mod)
	if err != nil {
		return err
	}
	t := toolset{availableTools: availableTools{Catalog: catalog}, ceiling: a.Ceiling}
	if _, ok := catalog.Find(inner); inner != "" && !ok {
		return noToolError(catalog, inner)
	}
	switch {
	case a.flags.json:
		return t.listJSON(a.s, func(tool, _ string) bool { return inner == "" || tool == inner })
	case schema:
		return t.schema(a.s, inner)
	}
	for _, name := range catalog.Names() {
		if inner == "" || inner == name {
			if err := t.info(ctx, a, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// toolGroups lists the subcommands of tool in the groups that the help has.
var toolGroups = []struct {
	title    string
	commands []string
}{
	{"Use:", []string{"list", "info", "add", "update", "remove", "grant", "enable", "disable"}},
	{"With a project:", []string{"lock", "sync"}},
	{"Trust and check:", []string{"trust", "verify", "compile"}},
	{"Make and share:", []string{"new", "build", "test", "describe", "pack", "key", "sign", "push"}},
}

// completions returns functions that complete the names of added modules and tools; the key is
// the command. They read only the index, and report no errors.
func (a *app) completions() map[string]cobra.CompletionFunc {
	added := func(of func(store.Record) []string) cobra.CompletionFunc {
		return func(_ *cobra.Command, args []string, _ string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
			dirs, err := settings.FindDirs(a.s.env)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			records, err := store.Open(dirs.Modules()).Records()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			work, err := workspace(a.flags.dir)
			for _, r := range records {
				if r.Project != "" && (err != nil || r.Project != work) {
					continue
				}
				for _, name := range of(r) {
					if !slices.Contains(args, name) {
						out = append(out, name)
					}
				}
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		}
	}
	with := func(separator string) cobra.CompletionFunc {
		return added(func(r store.Record) []string {
			out := []string{r.Name}
			for _, s := range r.Manifest.Tools {
				out = append(out, r.Name+separator+s.Name)
			}
			return out
		})
	}
	own := added(func(r store.Record) []string {
		if r.Project != "" || r.System {
			return nil
		}
		return []string{r.Name}
	})
	return map[string]cobra.CompletionFunc{
		"remove": own, "update": own, "lock": own, "grant": with(":"), "enable": with(":"), "disable": with(":"), "info": with("_"),
	}
}

func newToolCompileCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "compile MODULE.wasm...", Short: "Compile modules ahead of their first call",
		Long: `Check modules and compile them, so that their first call does not wait. Compiling
happens in a separate process. Its limits on time and memory grow with the size
of the module. A module of 16 to 64 MiB, or with functions of 256 KiB to 4 MiB, is
compiled only with --large. Later calls of it then find it compiled.`,
		Example: "  stockade tool compile ./greet.wasm\n  stockade tool compile --large ./python.wasm",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var failed []error
			for _, file := range args {
				mod, err := registry.ReadModule(file)
				if err == nil {
					err = a.door().Sandbox().Compile(cmd.Context(), mod)
				}
				if err != nil {
					failed = append(failed, err)
					continue
				}
				fmt.Fprintf(a.s.out, "%s (%s) is compiled\n", terminal.Line(mod.Path), humanize.Bytes(mod.Bytes))
			}
			return errors.Join(failed...)
		},
	}
	cmd.Flags().BoolVar(&a.flags.large, "large", false, "also compile modules that are large or have large functions")
	return cmd
}

// toolset shows the available tools to a person.
type toolset struct {
	availableTools
	ceiling policy.Ceiling
	denied  map[string]policy.Explanation // decisions that deny all calls of a tool, by its name; nil: unknown
}

func newToolset(ctx context.Context, a *app) (toolset, error) {
	found, err := a.findTools(ctx)
	if err != nil {
		return toolset{}, err
	}
	t := toolset{found, a.Ceiling, nil}
	t.denied, err = a.deniedTools(found.Catalog)
	for i := range t.added {
		m := &t.added[i]
		for j := range m.Tools {
			m.Tools[j].OffReason = cmp.Or(m.Tools[j].OffReason, t.denialReason(m.Tools[j].Entry))
		}
		if len(m.Tools) > 0 && a.Ceiling.PermitsRun(m.Tools[0].Entry.Module) != nil {
			m.Record.OffReason = cmp.Or(m.Record.OffReason, m.Tools[0].OffReason)
		}
	}
	return t, err
}

// denialReason returns a text with the reason and the layer that deny all calls of a tool. It
// is empty if no layer denies them, or if that is unknown.
func (t toolset) denialReason(e *tool.Entry) string {
	x, ok := t.denied[e.Name]
	if !ok {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%s: %s %s", x.Reason, x.Source, x.Origin))
}

func (t toolset) enabled() []*tool.Entry { return t.bySwitch("") }

// bySwitch returns the tools that one of the setting keys has switched off. The key "" stands
// for tools that are on.
func (t toolset) bySwitch(keys ...string) (out []*tool.Entry) {
	for _, e := range t.Entries() {
		if slices.Contains(keys, t.ceiling.SwitchedOff(e)) {
			out = append(out, e)
		}
	}
	return out
}

// maxCell limits the width that a long cell of a list gives its column, in columns.
const maxCell = 24

func (t toolset) list(s *stdio) error {
	rows := [][]string{{"TOOL", "RISK", "MODULE"}}
	texts := []string{"DESCRIPTION"}
	sorted, groups := tool.Groups(t.bySwitch("", policy.OffKey)) // a person wants to see the tools that they have named
	for _, g := range groups {
		sorted = append(sorted, g.Tools...)
	}
	modules := slices.ContainsFunc(sorted, func(e *tool.Entry) bool { return e.Module.Origin != tool.OriginBuiltin })
	for _, e := range sorted {
		risk := policy.RiskOf(e).String()
		if x, denied := t.denied[e.Name]; denied {
			risk = "denied (" + string(x.Source) + ")"
			if x.Source == policy.SourceAdmin || t.ceiling.PermitsRun(e.Module) != nil { // no setting of the user changes these
				risk = "off (" + string(x.Source) + ")"
			}
		}
		if key := t.ceiling.SwitchedOff(e); key != "" {
			risk = "off (" + key + ")"
		}
		rows = append(rows, []string{e.Name, risk, terminal.Line(e.Module.Name)})
		texts = append(texts, firstLine(e.Description))
	}
	var columns [3]int
	for y, row := range rows {
		if !modules { // then all are built in, and the descriptions get the room
			row = row[:2]
			rows[y] = row
		}
		for i, cell := range row {
			if i == 1 && strings.Contains(cell, " (") {
				continue // the reason of a denied tool makes no room in all rows
			}
			columns[i] = max(columns[i], min(len(cell), maxCell))
		}
	}
	for i, row := range rows {
		before := ""
		for i, cell := range row {
			before += fmt.Sprintf("%-*s  ", columns[i], cell)
		}
		if _, err := fmt.Fprintln(s.out, before+fit(texts[i], max(s.width()-len(before)-1, 20))); err != nil {
			return err
		}
	}
	return listAdded(s, t.added)
}

// commandDecision returns the policy's decision about an ordinary command in the workspace.
func (t toolset) commandDecision(a *app, e *tool.Entry) (x policy.Explanation, err error) {
	mounts, err := a.workspaceMounts()
	if err != nil {
		return x, err
	}
	p, err := a.newPolicy(t.Catalog, mounts)
	if err != nil {
		return x, err
	}
	args, err := json.Marshal(map[string]string{e.Capabilities.Exec: "true"})
	if err != nil {
		return x, err
	}
	return p.Decide(tool.Call{Tool: e.Name, Args: args, Caller: tool.CallerAgent, Cwd: a.Workspace}, e, policy.Facts{}).Explain(), nil
}

// deniedTools returns the tools that the policy hides from the model, because it would deny all
// calls of them, each with the decision of the layer that denies it.
func (a *app) deniedTools(catalog *tool.Catalog) (map[string]policy.Explanation, error) {
	p, err := a.newPolicy(catalog, nil)
	if err != nil {
		return nil, err
	}
	out := map[string]policy.Explanation{}
	for _, e := range catalog.Entries() {
		if p.Hides(e, tool.CallerAgent) {
			call := tool.Call{Tool: e.Name, Args: json.RawMessage("{}"), Caller: tool.CallerAgent, Cwd: a.Workspace}
			out[e.Name] = p.Decide(call, e, policy.Facts{}).Explain()
		}
	}
	return out, nil
}

// toolJSON is a tool in the output of `tool list --json` and `tool info --json`.
type toolJSON struct {
	Name         string            `json:"name"`
	Description  string            `json:"description"`
	Risk         string            `json:"risk"`
	Capabilities tool.Capabilities `json:"capabilities"`
	Module       string            `json:"module"`
	Origin       tool.Origin       `json:"origin"`
	Digest       string            `json:"digest"`
	Parameters   json.RawMessage   `json:"parameters"`
	Doc          *tool.Doc         `json:"doc,omitempty"` // nil: the tool has no documentation
	Off          string            `json:"off,omitempty"` // reason why the tool is not offered; empty: it is offered
	*addedJSON                     // nil for a built-in tool
}

// infoJSON prints one tool, or all tools of an added module, as JSON.
func (t toolset) infoJSON(s *stdio, name string) error {
	_, isModule := t.module(name)
	_, isTool := t.Find(name)
	_, _, isAdded := t.addedTool(name)
	isTool = isTool || isAdded
	if !isModule && !isTool {
		return noToolError(t.Catalog, name)
	}
	return t.listJSON(s, func(tool, module string) bool { return tool == name || !isTool && module == name })
}

// listJSON prints the tools for which wanted returns true, as JSON: tools that are offered,
// those that tools.off names, and added tools that are off.
func (t toolset) listJSON(s *stdio, wanted func(tool, module string) bool) error {
	added := map[*tool.Entry]*addedJSON{}
	shown := t.bySwitch("", policy.OffKey)
	for _, m := range t.added {
		for _, addedTool := range m.Tools {
			added[addedTool.Entry] = addedAsJSON(m.Record, addedTool)
			if addedTool.OffReason != "" && !slices.Contains(shown, addedTool.Entry) {
				shown = append(shown, addedTool.Entry)
			}
		}
	}
	out := []toolJSON{}
	for _, e := range shown {
		if !wanted(e.Name, e.Module.Name) {
			continue
		}
		off := cmp.Or(t.ceiling.SwitchedOff(e), t.denialReason(e))
		if a := added[e]; a != nil && off == "" {
			off = a.off
		}
		out = append(out, toolJSON{
			Name: e.Name, Description: e.Description, Risk: policy.RiskOf(e).String(), Capabilities: e.Capabilities,
			Module: e.Module.Name, Origin: e.Module.Origin, Digest: e.Module.Digest, Parameters: e.Parameters, Doc: e.Doc, Off: off, addedJSON: added[e],
		})
	}
	return printJSON(s, out)
}

func (t toolset) schema(s *stdio, name string) error {
	e, ok := t.Find(name)
	if _, added, isAdded := t.addedTool(name); isAdded {
		e, ok = added.Entry, true
	}
	if !ok {
		return noToolError(t.Catalog, name)
	}
	return printJSON(s, e.Parameters)
}

// addedTool returns an added tool and its module, even if the tool is not offered.
func (t toolset) addedTool(name string) (m registry.AddedModule, found registry.AddedTool, ok bool) {
	for _, m := range t.added {
		if i := slices.IndexFunc(m.Tools, func(of registry.AddedTool) bool { return of.Name == name }); i >= 0 {
			return m, m.Tools[i], true
		}
	}
	return m, found, false
}

func (t toolset) info(ctx context.Context, a *app, name string) error {
	if m, added, ok := t.addedTool(name); ok {
		return a.infoAddedTool(m, added)
	}
	e, ok := t.Find(name)
	if !ok {
		if m, ok := t.module(name); ok {
			return a.infoAdded(m)
		}
		return noToolError(t.Catalog, name)
	}
	snapshot, err := a.door().Sandbox().Snapshot(ctx, e.Module)
	if err != nil {
		return err
	}
	w := table.New(table.Fixed(""), table.Text(""))
	w.Row("tool", e.Name)
	if key := t.ceiling.SwitchedOff(e); key != "" {
		w.Row("state", "off, by the setting "+key)
	} else if off := t.denialReason(e); off != "" {
		w.Row("state", "off: "+off)
	}
	w.Row("risk", policy.RiskOf(e))
	w.Row("asks for", capabilitiesText(e.Requested))
	if e.Allowed != nil {
		w.Row("may use", allowanceText(*e.Allowed))
	}
	w.Row("module", fmt.Sprintf("%s (%s), %s", e.Module.Name, e.Module.Origin, humanize.Bytes(e.Module.Bytes)))
	w.Row("digest", "sha256:"+e.Module.Digest)
	w.Row("calls", snapshotText(snapshot))
	if err := a.s.table(w); err != nil {
		return err
	}
	if e.Capabilities.Exec != "" {
		changes, err := t.commandDecision(a, e)
		if err != nil {
			return err
		}
		if err := showJail(a.s, a.door().Tiers(), changes); err != nil {
			return err
		}
	}
	a.describeTool(e, "What its module says of it:")
	return nil
}

// maxShownName limits the characters of a name in a message; the rest is cut.
const maxShownName = 200

func noToolError(catalog *tool.Catalog, name string) error {
	hint := "`stockade tool list` shows the tools"
	if near := catalog.Nearest(name); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return usageError(hint, "there is no tool %q", humanize.Clip(name, maxShownName))
}

// snapshotText describes the state in which each call of a tool starts, which decides its
// cost.
func snapshotText(b sandbox.SnapshotInfo) string {
	if b.ImageBytes == 0 {
		return "each starts with a new instance, which is slow: " + b.Why
	}
	text := fmt.Sprintf("each starts with a snapshot of %s of initialised memory", humanize.Bytes(b.ImageBytes))
	if b.Reseeded {
		text += "; its random numbers are fresh"
	}
	return text
}

func capabilitiesText(c tool.Capabilities) string {
	var parts []string
	if c.Exec != "" {
		parts = append(parts, fmt.Sprintf("running the command in its argument %q", c.Exec))
	}
	switch {
	case c.Exec != "": // a process can reach all files
	case c.Files == tool.FilesWrite:
		parts = append(parts, "reading and changing files in the mounted directories")
	case c.Files == tool.FilesRead:
		parts = append(parts, "reading files in the mounted directories")
	}
	switch {
	case len(c.Hosts) > 0:
		parts = append(parts, "requests to "+strings.Join(c.Hosts, ", "))
	case c.Network != tool.NetworkNone:
		parts = append(parts, "requests to the hosts that are allowed")
	}
	if c.Store {
		parts = append(parts, "keeping things in a session")
	}
	for _, s := range c.Secrets {
		parts = append(parts, "the secret "+s.String())
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}
