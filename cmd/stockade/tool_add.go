package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/prompt"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/shellword"
	"github.com/stockade-dev/stockade/host/tool"
)

const referenceHelp = `REF is one of
  weather.wasm                       a file
  ./weather                          a folder with one module, or an OCI layout
  https://example.com/weather.wasm   a download
  oci://HOST/REPOSITORY:TAG          a registry; @sha256:HEX pins what is meant`

type addOptions struct {
	as       string
	describe string
	yes      reviewedYes
	allow    allowFlags
}

// reviewedYes holds the flags --yes and --sha256: the yes of a script, and the hash of the
// module or lockfile that was reviewed.
type reviewedYes struct {
	yes    bool
	sha256 string
}

func (o *reviewedYes) add(cmd *cobra.Command, yes, what string) {
	cmd.Flags().BoolVar(&o.yes, "yes", false, yes)
	cmd.Flags().StringVar(&o.sha256, "sha256", "", "with --yes: the SHA-256 of the "+what+" that was reviewed, in hex")
}

func (o reviewedYes) isIncomplete() bool { return o.yes != (o.sha256 != "") }

func (o reviewedYes) matches(digest string) bool {
	return strings.EqualFold(strings.TrimPrefix(o.sha256, "sha256:"), digest)
}

func newToolAddCmd(a *app) *cobra.Command {
	var o addOptions
	cmd := &cobra.Command{
		Use: "add REF", Short: "Add a module, after showing what it can touch",
		Long: `Show what a module is, who has signed it and what it asks for, and add it if you
say yes. Its tools are offered to the model as NAME_TOOL. They can only compute
until you allow the module more: with your answer, or later with
` + "`stockade tool grant`" + `. Adding a module again, from the same place or another,
replaces the old one; the differences are shown.

` + referenceHelp + `

A command of WASI, or the needs of a plugin of Extism, are described by a few lines
of TOML: --describe FILE.toml. ` + "`stockade tool describe`" + ` writes a first version,
` + "`stockade help plugins`" + ` has examples.

--yes --sha256 HASH is for scripts: it adds the module if it is the one that was
reviewed, and allows it what --read, --write, --host, --secret and --exec name.

` + exitHelp,
		Example: "  stockade tool add ./weather.wasm\n  stockade tool add oci://registry.example.org/tools/weather:1.2\n" +
			"  stockade tool add --as meteo https://example.org/weather.wasm\n" +
			"  stockade tool add php.wasm --describe php.toml\n" +
			"  stockade tool add --yes --sha256 \"$(sha256sum <weather.wasm | cut -d' ' -f1)\" --host api.example.org weather.wasm",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runToolAdd(cmd.Context(), a, args[0], o) },
	}
	cmd.Flags().StringVar(&o.as, "as", "", "the name under which its tools are offered (default: the name that it gives itself)")
	cmd.Flags().StringVar(&o.describe, "describe", "", "a TOML file that describes its tools, and becomes part of it")
	o.yes.add(cmd, "add it without a question; needs --sha256", "module")
	o.allow.add(cmd)
	cmd.Flags().BoolVar(&a.flags.large, "large", false, "also add a module that is large or has large functions; compiling it takes long")
	addReachFlag(cmd, a)
	return cmd
}

func runToolAdd(ctx context.Context, a *app, ref string, o addOptions) error {
	if o.yes.isIncomplete() {
		return usageError("the module that was reviewed: --yes --sha256 \"$(sha256sum <FILE | cut -d' ' -f1)\"", "--yes and --sha256 belong together")
	}
	if err := a.checkMayAdd(); err != nil {
		return err
	}
	describe, err := a.loadDescriber(o.describe)
	if err != nil {
		return err
	}
	candidate, err := a.fetch(ctx, ref, false)
	if err != nil {
		return err
	}
	a.scanSystem(ctx, true)
	review, err := a.review(ctx, registry.Request{Candidate: candidate, Name: o.as, Describe: describe})
	if err != nil {
		return a.undescribedError(candidate, ref, err)
	}
	if review.IsUnchanged() && !o.allow.isSet() && a.isIntact(*review.Previous) {
		a.s.note("%s was added before, and is the same: %s, sha256 %s", review.Record.Name, displayVersion(review.Record.Manifest), review.Record.Digest)
		return nil
	}
	if o.yes.yes {
		if !o.yes.matches(candidate.Digest) {
			a.showCard(a.s.err, review)
			return usageError("review the module again, and name its SHA-256", "%s has the SHA-256 %s, not that of --sha256; it is not added", ref, candidate.Digest)
		}
		if err := o.allow.grantTo(a, &review.Record, ""); err != nil {
			return err
		}
		return a.addModule(review)
	}
	if err := a.askAdd(ctx, review, o, ref); err != nil {
		return err
	}
	return a.addModule(review)
}

func (a *app) showCard(w io.Writer, r *registry.Review) {
	fmt.Fprint(w, card{review: r, width: 80, work: a.Workspace}.short())
}

// askAdd asks whether to add a module, and stores its allowance in the record. If the person
// does not say yes, it returns an error.
func (a *app) askAdd(ctx context.Context, r *registry.Review, o addOptions, ref string) error {
	in, out, done, ok := a.terminal()
	if !ok || a.flags.json {
		a.showCard(a.s.err, r)
		return &exitErr{code: exitNobodyToAsk, message: "it is not added: there is no terminal to ask on",
			hint: "to add exactly this module: " + a.addCommand(r, ref, o)}
	}
	defer done()
	c := card{review: r, width: columnsOf(in), color: a.s.colors(), work: a.Workspace}
	gift, choices := tool.Allowance{}, slices.Clone(yesOrNo)
	switch {
	case o.allow.isSet():
		if err := o.allow.grantTo(a, &r.Record, ""); err != nil {
			return err
		}
		choices[0].Label = "with " + allowanceText(r.Record.Allowances[""])
	case r.KeepsAllowance():
		choices[0].Label = "yes, and keep what you have allowed"
	default:
		gift = registry.WantsOf(r.Record.Manifest).DefaultAllowance(a.Workspace, r.Previous)
		choices = yesChoices(gift, noChoice)
	}
	answer, err := a.askChoice(ctx, in, out, prompt.New("Add it?", choices, c.short, c.long))
	switch {
	case err != nil:
		return err
	case answer == 'n':
		return &exitErr{code: exitDenied, message: r.Record.Name + " is not added"}
	case answer == 'y' && !gift.IsZero():
		r.Record.Allowances = map[string]tool.Allowance{"": gift}
	}
	return nil
}

// addCommand returns the command line that adds the reviewed module without a question, with
// the flags in o.
func (a *app) addCommand(r *registry.Review, ref string, o addOptions) string {
	describe := ""
	if word, ok := shellword.Quote(ref); ok {
		ref = word
	}
	if o.describe != "" {
		describe = " " + formatFlag("--describe", o.describe)
	}
	return fmt.Sprintf("stockade tool add --yes --sha256 %s%s%s%s%s %s", r.Record.OriginalDigest(), asNameFlag(r.Record), describe, o.allow, a.fetchFlags(), ref)
}

// asNameFlag returns " --as NAME" for a module that is stored under another name than that in
// its manifest; otherwise "".
func asNameFlag(r store.Record) string {
	if r.Name == r.Manifest.Name {
		return ""
	}
	return " --as " + r.Name
}

// fetchFlags returns the given flags --large and --allow-net as text, each after a blank.
func (a *app) fetchFlags() (out string) {
	if a.flags.large {
		out = " --large"
	}
	for _, host := range a.flags.allowNet {
		out += " " + formatFlag("--allow-net", host)
	}
	return out
}

func (a *app) addModule(r *registry.Review) error {
	if err := registry.Save(a.moduleStore(), r); err != nil {
		return err
	}
	verb := "added"
	if r.Previous != nil {
		verb = "updated"
	}
	name := r.Record.Name
	fmt.Fprintf(a.s.out, "%s %s %s: %s\n", verb, name, displayVersion(r.Record.Manifest), strings.Join(toolNames(r), ", "))
	all := registry.TotalAllowance(r.Record)
	w := registry.WantsOf(r.Record.Manifest)
	switch words := allowanceText(all); {
	case !all.IsZero() && r.Previous != nil && r.KeepsAllowance():
		a.s.note("%s keeps what you had allowed, because the same publisher has signed it and its requests have not changed: %s", name, words)
	case !all.IsZero():
		a.s.note("%s may use: %s", name, words)
	case w.Inferred && !w.Nothing():
		a.s.note("%s can only compute so far; it does not say what it needs, and its imports could use: %s", name, strings.Join(w.InferredAccess(), ", "))
		a.s.hint("stockade tool grant %s %s", name, grantExample(w, a.Workspace))
	case !w.Nothing():
		a.s.note("%s can only compute so far; it asks for: %s", name, w.String())
		a.s.hint("stockade tool grant %s %s", name, grantExample(w, a.Workspace))
	}
	return nil
}
