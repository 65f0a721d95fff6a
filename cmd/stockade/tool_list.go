package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/registry/trust"
	"github.com/stockade-dev/stockade/host/tool"
)

// addedJSON is what `tool list --json` prints of a tool that was added, beside what it
// prints of all. Of these tools it has those that are switched off, too.
type addedJSON struct {
	Off            string            `json:"off,omitempty"` // why it is not offered; empty: it is
	Version        string            `json:"version,omitempty"`
	Source         string            `json:"source"`
	ManifestDigest string            `json:"manifest_digest,omitempty"`
	Signer         string            `json:"signer,omitempty"`
	Keys           []string          `json:"keys,omitempty"`
	Project        string            `json:"project,omitempty"` // the workspace in which it counts; empty: any
	Asks           tool.Capabilities `json:"asks"`
	Allowed        tool.Allowance    `json:"allowed"`
}

func addedAsJSON(r store.Record, t registry.AddedTool) *addedJSON {
	return &addedJSON{
		Off: t.Off, Version: r.Manifest.Version, Source: r.Source, ManifestDigest: r.ManifestDigest, Signer: r.Signer, Keys: r.Keys,
		Project: r.Project, Asks: t.Entry.Asks, Allowed: registry.Allowed(r, t.Inner),
	}
}

// listAdded shows the modules that were added.
func listAdded(s *stdio, modules []registry.Added) error {
	if len(modules) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nADDED\tVERSION\tFROM\tSIGNED BY\tMAY USE\tSTATE")
	for _, m := range modules {
		r := m.Record
		signer, from := cmp.Or(r.Signer, "-"), r.Source
		if r.Project != "" {
			from = "this project: " + from
		}
		var all tool.Allowance
		for of := range r.Allowed {
			all = merged(all, r.Allowed[of])
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, clip(terminal.Line(cmp.Or(r.Manifest.Version, "-")), maxCardVersion), clip(terminal.Line(from), 60),
			terminal.Line(signer), clip(terminal.Line(allowedWords(tidy(all))), 60), clip(terminal.Line(stateOf(m)), 60))
	}
	return w.Flush()
}

// stateOf says whether the tools of a module are offered.
func stateOf(m registry.Added) string {
	off := 0
	for _, t := range m.Tools {
		if t.Off != "" {
			off++
		}
	}
	switch {
	case m.Off() != "":
		return "off: " + strings.TrimPrefix(m.Off(), "switched ")
	case off > 0:
		return fmt.Sprintf("on, %d of %d tools off", off, len(m.Tools))
	}
	return "on"
}

// infoAdded shows a module that was added.
func (a *app) infoAdded(m registry.Added) error {
	r := m.Record
	w := tabwriter.NewWriter(a.s.out, 0, 0, 2, ' ', 0)
	rows := [][2]string{
		{"module", r.Name + " " + r.Manifest.Version}, {"state", stateOf(m)}, {"from", r.Source}, {"for", cmp.Or(r.Project, "all your projects")},
		{"signed by", cmp.Or(r.Signer, "nobody whom you know")}, {"keys", strings.Join(r.Keys, ", ")},
		{"added", r.Added.Local().Format("2006-01-02 15:04")},
		{"module digest", "sha256:" + r.Digest}, {"manifest digest", r.ManifestDigest},
		{"asks for", registry.WantsOf(r.Manifest).String()}, {"may use", allowedWords(registry.Allowed(r, ""))},
	}
	for _, inner := range slices.Sorted(maps.Keys(r.Allowed)) {
		if inner != "" {
			rows = append(rows, [2]string{"  " + r.Name + "_" + inner, allowedWords(r.Allowed[inner])})
		}
	}
	for _, row := range rows {
		if row[1] != "" {
			fmt.Fprintf(w, "%s\t%s\n", row[0], terminal.Line(row[1]))
		}
	}
	fmt.Fprintln(w, "\nTOOL\tSTATE\tASKS FOR\tDESCRIPTION")
	for _, t := range m.Tools {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.Name, cmp.Or(t.Off, "on"), terminal.Line(t.Entry.Asks.String()), clip(terminal.Line(firstLine(t.Entry.Description)), 80))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	a.s.hint("stockade tool info %s shows one tool with its arguments", m.Tools[0].Name)
	return nil
}

func newToolVerifyCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: "Hold all added modules against what was approved, without the network",
		Long: `Hash all modules that you have added and hold them, their manifests and their
signatures against what you approved, and what stockade.lock of this workspace
says against both. Nothing is fetched, and nothing is changed.

` + exitHelp,
		Example: "  stockade tool verify", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runToolVerify(cmd.Context(), a) },
	}
}

func runToolVerify(_ context.Context, a *app) error {
	records, err := a.modules().Records()
	if err != nil {
		return err
	}
	var wrong []string
	for _, f := range a.modules().Verify() {
		if !f.Spare {
			wrong = append(wrong, strings.TrimPrefix(f.Name+": ", ": ")+f.What)
		}
	}
	files, err := a.TrustFiles(administrator())
	if err != nil {
		return err
	}
	for _, r := range records {
		if err := registry.Verify(trust.Combine(files...), r); err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", r.Name, err))
		}
	}
	differs, err := a.lockDiffers()
	if err != nil {
		return err
	}
	wrong = append(wrong, differs...)
	for _, text := range wrong {
		fmt.Fprintln(a.s.out, terminal.Line(text))
	}
	if len(wrong) > 0 {
		return &exitErr{code: exitError, message: fmt.Sprintf("%s of %s", plural(len(wrong), "fault"), plural(len(records), "module")),
			hint: "`stockade tool remove NAME`, and add it again from where you trust it"}
	}
	fmt.Fprintf(a.s.out, "%s: all bytes, manifests and signatures are as they were approved\n", plural(len(records), "module"))
	return nil
}
