package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/prompt"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/registry/source"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/tool"
)

func newToolUpdateCmd(a *app) *cobra.Command {
	var yes reviewedYes
	cmd := &cobra.Command{
		Use: "update [NAME]", Short: "Update the modules that you have added",
		Long: `Fetch each module, or one, from its source. A new version by the same publisher,
with the same description and requests, replaces the old one at once, and keeps
what you have allowed. Any other change is shown, and the module is switched off
until you decide. A newer version under another tag is mentioned, and not used.

` + exitHelp,
		Example: "  stockade tool update\n  stockade tool update weather\n  stockade tool update --yes --sha256 HASH weather",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runToolUpdate(cmd.Context(), a, strings.Join(args, ""), yes)
		},
	}
	yes.add(cmd, "accept the new one without a question; needs --sha256 and a name", "module")
	cmd.Flags().BoolVar(&a.flags.large, "large", false, "also accept a module that is large or has large functions; compiling it takes long")
	addReachFlag(cmd, a)
	return cmd
}

func runToolUpdate(ctx context.Context, a *app, name string, yes reviewedYes) error {
	if yes.isIncomplete() || yes.yes && name == "" {
		return usageError("stockade tool update --yes --sha256 HASH NAME", "--yes, --sha256 and a name belong together")
	}
	if err := a.checkMayAdd(); err != nil {
		return err
	}
	records, err := a.moduleStore().Records()
	if err != nil {
		return err
	}
	if name != "" {
		i, _, err := registry.Find(records, name, &registry.Project{Workspace: a.Workspace})
		if err != nil {
			return usageError("`stockade tool list` shows what was added", "%v", err)
		}
		records = records[i : i+1]
	}
	records = slices.DeleteFunc(slices.Clone(records), func(r store.Record) bool { return r.Project != "" || r.System })
	if len(records) == 0 && name == "" {
		a.s.note("there is nothing to update: you have added no modules of your own")
		return nil
	}
	if len(records) == 0 {
		a.s.note("%s is not yours to update: modules of a project come from its stockade.lock, and others from the administrator", name)
		a.s.hint("to have another version here, add that yourself, and then: stockade tool lock NAME")
		return nil
	}
	var errs []error
	for _, r := range records {
		if err := a.updateOne(ctx, r, yes); err != nil {
			errs = append(errs, err)
			if len(records) > 1 {
				reportError(a.s, ctx, err)
			}
		}
	}
	switch {
	case len(errs) == 0:
		return nil
	case len(records) == 1:
		return errs[0]
	}
	return &exitErr{code: exitError, message: humanize.Plural(len(errs), "module") + " of " + fmt.Sprint(len(records)) + " could not be updated"}
}

// updateOne updates one module to the present one at its source, if that needs no question or
// the person says yes. It is switched off from the question until the person decides.
func (a *app) updateOne(ctx context.Context, r store.Record, yes reviewedYes) error {
	candidate, err := a.fetch(ctx, r.Source, false)
	if err != nil {
		return err
	}
	q := registry.Request{Candidate: candidate, Name: r.Name}
	if r.BaseDigest != "" {
		q.Describe = a.keepDescription(r)
	}
	review, err := a.review(ctx, q)
	if err != nil {
		return err
	}
	defer a.tellNewer(ctx, review.Record)
	version := displayVersion(review.Record.Manifest)
	switch {
	case review.IsUnchanged() && a.isIntact(r):
		a.s.note("%s is up to date: %s", r.Name, version)
		return registry.SetOffReason(a.moduleStore(), r, "") // it may be off because of a newer version that is gone now
	case review.KeepsAllowance(), yes.yes && yes.matches(candidate.Digest):
		return a.addModule(review)
	case yes.yes:
		return usageError("review the module again, and name its SHA-256", "%s has the SHA-256 %s now, not that of --sha256; it is not updated", r.Name, candidate.Digest)
	}
	off := fmt.Sprintf("%s %s differs from what you approved; `stockade tool update %s` shows how, and asks", r.Name, version, r.Name)
	if err := registry.SetOffReason(a.moduleStore(), r, off); err != nil {
		return err
	}
	in, out, done, ok := a.terminal()
	if !ok {
		a.showCard(a.s.err, review)
		return &exitErr{code: exitNobodyToAsk, message: fmt.Sprintf("%s is switched off: nobody can be asked here about version %s", r.Name, version),
			hint: fmt.Sprintf("to take exactly this one: stockade tool update --yes --sha256 %s%s %s", candidate.Digest, a.fetchFlags(), r.Name)}
	}
	defer done()
	c := card{review: review, width: columnsOf(in), color: a.s.colors(), work: a.Workspace}
	short := func() string { return c.short() + "  It is switched off until you decide.\n" }
	gift := registry.WantsOf(review.Record.Manifest).DefaultAllowance(a.Workspace, &r)
	choices := yesChoices(gift, prompt.Choice{Letter: 'k', Label: "keep " + displayVersion(r.Manifest)}, prompt.Choice{Letter: 'r', Label: "remove it"}, prompt.Choice{Letter: 'n', Label: "not now"})
	answer, err := a.askChoice(ctx, in, out, prompt.New("Take it?", choices, short, c.long))
	switch {
	case err != nil:
		return err
	case answer == 'k':
		a.s.note("%s stays as it is: %s", r.Name, displayVersion(r.Manifest))
		return registry.SetOffReason(a.moduleStore(), r, "")
	case answer == 'r':
		return runToolRemove(a, []string{r.Name})
	case answer == 'n':
		return &exitErr{code: exitDenied, message: r.Name + " stays switched off"}
	case answer == 'y' && !gift.IsZero():
		review.Record.Allowances = map[string]tool.Allowance{"": gift}
	}
	return a.addModule(review)
}

// tellNewer prints a note if the registry has a newer version of the module under another tag,
// or if that is not known.
func (a *app) tellNewer(ctx context.Context, r store.Record) {
	out, rules, err := a.fetchEgress()
	newest := ""
	if err == nil {
		newest, err = source.NewestReference(ctx, r.Source, r.Manifest.Version, source.Options{Client: out.ClientFactory(rules, a.Ceiling, true), Credentials: a.credentials})
	}
	if err != nil {
		a.s.note("cannot tell whether there is a newer version of %s: %v", r.Name, err)
	} else if newest != "" {
		a.s.note("there is a newer version of %s", r.Name)
		a.s.hint("stockade tool add%s %s", asNameFlag(r), formatFlag("", newest)[1:])
	}
}
