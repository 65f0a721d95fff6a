package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/prompt"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/tool"
)

// addedJSON holds the keys of toolJSON that only added tools have, even if they are off.
type addedJSON struct {
	off            string            // reason why the tool is not offered; empty: it is offered
	Version        string            `json:"version,omitempty"`
	Source         string            `json:"source"`
	ManifestDigest string            `json:"manifest_digest,omitempty"`
	Signer         string            `json:"signer,omitempty"`
	Keys           []string          `json:"keys,omitempty"`
	Project        string            `json:"project,omitempty"` // the only workspace that has the tool; empty: all
	Kind           string            `json:"kind,omitempty"`    // ABI, for a module that was made for another host
	Asks           tool.Capabilities `json:"asks"`
	Inferred       bool              `json:"inferred,omitempty"` // Asks is access that its imports could use
	Allowed        tool.Allowance    `json:"allowed"`
}

func addedAsJSON(r store.Record, t registry.AddedTool) *addedJSON {
	out := &addedJSON{
		off: t.OffReason, Version: r.Manifest.Version, Source: r.Source, ManifestDigest: r.ManifestDigest, Signer: r.Signer, Keys: r.Keys,
		Project: r.Project, Asks: t.Entry.Requested, Inferred: r.Manifest.Inferred, Allowed: registry.AllowanceOf(r, t.NameInModule),
	}
	if r.Manifest.Kind() != "" {
		out.Kind = r.Manifest.ABI
	}
	return out
}

// listAdded shows the added modules in rows, with the source and the allowance below each.
func listAdded(s *stdio, modules []registry.AddedModule) error {
	if len(modules) == 0 {
		return nil
	}
	width := s.width()
	names, versions, signers := len("ADDED"), len("VERSION"), len("SIGNED BY")
	for _, m := range modules {
		names, versions, signers = max(names, len(m.Record.Name)), max(versions, terminal.Width(displayVersion(m.Record.Manifest))), max(signers, terminal.Width(signer(m)))
	}
	signers = min(signers, maxCell)
	row := func(name, version, signer, state string) {
		before := fmt.Sprintf("%-*s  %-*s  %-*s  ", names, name, versions, version, signers, signer)
		fmt.Fprintln(s.out, before+fit(state, max(width-len(before)-1, 20)))
	}
	fmt.Fprintln(s.out)
	row("ADDED", "VERSION", "SIGNED BY", "STATE")
	for _, m := range modules {
		r := m.Record
		row(r.Name, displayVersion(r.Manifest), fit(signer(m), signers), stateOf(m))
		from := "  from " + r.Source
		switch {
		case r.Project != "":
			from = "  this project's, from " + r.Source
		case r.System:
			from = "  the administrator's, from " + r.Source
		}
		fmt.Fprintln(s.out, fit(from, width-1))
		if may := registry.TotalAllowance(r); !may.IsZero() {
			fmt.Fprintln(s.out, fit("  may use "+allowanceText(may), width-1))
		}
	}
	return nil
}

func signer(m registry.AddedModule) string { return terminal.Line(cmp.Or(m.Record.Signer, "nobody")) }

// stateOf describes whether the tools of a module are offered, and if not, the reason.
func stateOf(m registry.AddedModule) string {
	off := 0
	for _, t := range m.Tools {
		if t.OffReason != "" {
			off++
		}
	}
	switch {
	case m.OffReason() == store.OffByPerson:
		return "off"
	case m.OffReason() != "":
		return "off: " + m.OffReason()
	case off > 0:
		return fmt.Sprintf("on, %d of %s off", off, humanize.Plural(len(m.Tools), "tool"))
	}
	return "on"
}

func (a *app) infoAdded(m registry.AddedModule) error {
	r := m.Record
	width := a.s.width()
	line := a.infoLine
	line("module", r.Name+" "+displayVersion(r.Manifest))
	line("kind", foreignKind(r))
	line("state", stateOf(m))
	line("from", r.Source)
	line("counts in", cmp.Or(r.Project, "all your projects"))
	line("signed by", cmp.Or(r.Signer, "nobody whom you know"))
	line("keys", strings.Join(r.Keys, ", "))
	line("added", r.Added.Local().Format("2006-01-02 15:04"))
	line("sha256", r.Digest)
	if r.BaseDigest != "" {
		line("as came", r.BaseDigest)
	}
	line("manifest", strings.TrimPrefix(r.ManifestDigest, "sha256:"))
	line("asks for", registry.WantsOf(r.Manifest).String())
	line("may use", allowanceText(registry.AllowanceOf(r, "")))
	for _, inner := range slices.Sorted(maps.Keys(r.Allowances)) {
		if inner != "" {
			line("", r.Name+"_"+inner+": "+allowanceText(r.Allowances[inner]))
		}
	}
	texts := slices.Clone(r.Manifest.Notes)
	for i, note := range texts {
		texts[i] = "note: " + note
	}
	for _, key := range slices.Sorted(maps.Keys(r.Manifest.Config)) {
		texts = append(texts, fmt.Sprintf("config: %s = %s", key, tool.Marshal(r.Manifest.Config[key])))
	}
	for _, text := range texts { // texts by the module's author
		fmt.Fprintln(a.s.out, strings.Join(card{width: width}.quotedRows("", "", text, textRows), "\n"))
	}
	fmt.Fprintln(a.s.out)
	for _, t := range m.Tools {
		state := ""
		if t.OffReason != "" {
			state = "  (" + terminal.Line(t.OffReason) + ")"
		}
		fmt.Fprintln(a.s.out, fit(t.Name+state, width-1))
		fmt.Fprintln(a.s.out, strings.Join(card{width: width}.quotedRows("", "", t.Entry.Description, textRows), "\n"))
	}
	a.warnIfBroken(r)
	a.s.warnOptionArgs(r.Manifest)
	if len(m.Tools) > 0 {
		a.s.hint("one of its tools, with its arguments: stockade tool info %s", m.Tools[0].Name)
	}
	if w := registry.WantsOf(r.Manifest); !w.Nothing() && len(r.Allowances) == 0 {
		a.s.hint("to let it use what it asks for: stockade tool grant %s %s", r.Name, grantExample(w, a.Workspace))
	}
	return nil
}

// infoColumns is the width of the titles in the output of `tool info`.
const infoColumns = 9

// infoLine prints a title and its text, in as many rows as the text needs. It prints nothing
// if the text is empty.
func (a *app) infoLine(title, text string) {
	if text == "" {
		return
	}
	for _, row := range terminal.Wrap(terminal.Line(text), a.s.width()-infoColumns-3) {
		fmt.Fprintf(a.s.out, "%-*s  %s\n", infoColumns, title, row)
		title = ""
	}
}

// infoAddedTool shows a tool of an added module: first its properties and its allowance,
// then the texts of the module, behind bars.
func (a *app) infoAddedTool(m registry.AddedModule, t registry.AddedTool) error {
	r, e := m.Record, t.Entry
	a.infoLine("tool", t.Name)
	a.infoLine("state", cmp.Or(m.OffReason(), t.OffReason, "on"))
	a.infoLine("risk", policy.RiskOf(e).String())
	a.infoLine("module", r.Name+" "+displayVersion(r.Manifest))
	a.infoLine("from", r.Source)
	a.infoLine("sha256", r.Digest)
	a.infoLine("signed by", cmp.Or(r.Signer, "nobody whom you know"))
	a.infoLine("kind", foreignKind(r))
	if r.Manifest.Inferred {
		a.infoLine("asks for", registry.WantsOf(r.Manifest).String())
	} else {
		a.infoLine("asks for", capabilitiesText(e.Requested))
	}
	a.infoLine("may use", allowanceText(registry.AllowanceOf(r, t.NameInModule)))
	if missing := e.Missing(); len(missing) > 0 {
		a.infoLine("not given", strings.Join(missing, ", "))
	}
	says := "What its module says of it:"
	if r.BaseDigest != "" {
		says = "What its description says of it:"
	}
	a.describeTool(e, says)
	if e.Run != nil {
		fmt.Fprintf(a.s.out, "\nHow it is run:\n%s", prompt.View{Width: a.s.width()}.Text(runLines(*e.Run), true))
	}
	a.warnIfBroken(r)
	a.s.warnOptionArgs(tool.Manifest{Tools: []tool.Spec{{Definition: tool.Definition{Name: t.Name}, Run: e.Run}}})
	if missing := e.Missing(); len(missing) > 0 {
		a.s.hint("%s", hintText(tool.GrantHint(e, missing...)))
	}
	return nil
}

// warnIfBroken warns of a module whose file is missing or changed. Its record still describes
// the module that was added.
func (a *app) warnIfBroken(r store.Record) {
	if _, err := a.moduleStore().Module(r).Read(); err != nil {
		a.warn(err.Error(), "")
	}
}

func newToolVerifyCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: "Compare all modules with what you approved, offline",
		Long: `Hash all modules that you have added. Compare them, their manifests and their
signatures with what you approved, and stockade.lock of this workspace with both.
Nothing is fetched, and nothing is changed.

` + exitHelp,
		Example: "  stockade tool verify", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return runToolVerify(a) },
	}
}

func runToolVerify(a *app) error {
	records, err := a.moduleStore().Records()
	if err != nil {
		return err
	}
	var wrong []string
	for _, f := range a.moduleStore().Verify() {
		if !f.Unneeded {
			wrong = append(wrong, strings.TrimPrefix(f.Name+": ", ": ")+f.Message)
		}
	}
	rules, err := a.trustRules()
	if err != nil {
		return err
	}
	for _, r := range records {
		if err := registry.Verify(a.moduleStore(), rules, r); err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", r.Name, err))
		}
	}
	if p, err := registry.ReadProject(a.Workspace); err != nil {
		wrong = append(wrong, err.Error())
	} else {
		wrong = append(wrong, p.LockProblems(records)...)
	}
	for _, text := range wrong {
		fmt.Fprintln(a.s.out, terminal.Line(text))
	}
	if len(wrong) > 0 {
		return &exitErr{code: exitError, message: fmt.Sprintf("%s of %s", humanize.Plural(len(wrong), "fault"), humanize.Plural(len(records), "module")),
			hint: "`stockade tool remove NAME`, and add it again from where you trust it"}
	}
	fmt.Fprintf(a.s.out, "%s: all bytes, manifests and signatures are as they were approved\n", humanize.Plural(len(records), "module"))
	return nil
}
