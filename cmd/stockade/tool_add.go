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

// addOptions are those of `tool add`.
type addOptions struct {
	as       string
	describe string
	yes      reviewed
	allow    allowFlags
}

// reviewed is the yes of a script, which goes with the hash of what was reviewed.
type reviewed struct {
	yes    bool
	sha256 string
}

func (o *reviewed) add(cmd *cobra.Command, yes, what string) {
	cmd.Flags().BoolVar(&o.yes, "yes", false, yes)
	cmd.Flags().StringVar(&o.sha256, "sha256", "", "with --yes: the SHA-256 of the "+what+" that was reviewed, in hex")
}

// half reports whether one of the two flags is missing.
func (o reviewed) half() bool { return o.yes != (o.sha256 != "") }

// is reports whether it is what was reviewed.
func (o reviewed) is(digest string) bool {
	return strings.EqualFold(strings.TrimPrefix(o.sha256, "sha256:"), digest)
}

func newToolAddCmd(a *app) *cobra.Command {
	var o addOptions
	cmd := &cobra.Command{
		Use: "add REF", Short: "Add a module, after showing what it can touch",
		Long: `Show what a module is, who has signed it and what it asks for, and add it if you
say yes. Its tools are offered to the model as NAME_TOOL. They can only compute:
what a module asks for it gets at the question, or later with
` + "`stockade tool grant`" + `. Adding a module again, from where it came or from
elsewhere, takes the place of the old one; what is different is shown.

` + referenceHelp + `

A command of WASI, and what a plugin of Extism needs, are described by a few lines
of TOML: --describe FILE.toml. ` + "`stockade tool describe`" + ` writes them to begin with,
` + "`stockade help plugins`" + ` has examples.

--yes --sha256 HASH is for scripts: it adds the module if it is the one that was
reviewed, with what --read, --write, --host, --secret and --exec give it.

` + exitHelp,
		Example: "  stockade tool add ./weather.wasm\n  stockade tool add oci://registry.example.org/tools/weather:1.2\n" +
			"  stockade tool add --as meteo https://example.org/weather.wasm\n" +
			"  stockade tool add php.wasm --describe php.toml\n" +
			"  stockade tool add --yes --sha256 \"$(sha256sum <weather.wasm | cut -d' ' -f1)\" --host api.example.org weather.wasm",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runToolAdd(cmd.Context(), a, args[0], o) },
	}
	cmd.Flags().StringVar(&o.as, "as", "", "the name under which its tools are offered (default: the name that it gives itself)")
	cmd.Flags().StringVar(&o.describe, "describe", "", "a file of TOML that says what its tools are, which becomes part of it")
	o.yes.add(cmd, "add it without a question; needs --sha256", "module")
	o.allow.add(cmd)
	cmd.Flags().BoolVar(&a.flags.large, "large", false, "add a module that is large, or has large functions, too, which takes long to compile")
	addReachFlag(cmd, a)
	return cmd
}

func runToolAdd(ctx context.Context, a *app, ref string, o addOptions) error {
	if o.yes.half() {
		return usageError("the module that was reviewed: --yes --sha256 \"$(sha256sum <FILE | cut -d' ' -f1)\"", "--yes and --sha256 belong together")
	}
	if err := a.mayAdd(); err != nil {
		return err
	}
	describe, err := a.describing(o.describe)
	if err != nil {
		return err
	}
	candidate, err := a.fetch(ctx, ref, false)
	if err != nil {
		return err
	}
	a.scanSystem(ctx, true)
	review, err := a.review(ctx, registry.Request{Candidate: candidate, As: o.as, Describe: describe})
	if err != nil {
		return a.undescribed(candidate, ref, err)
	}
	if review.Same() && !o.allow.any() && a.whole(*review.Was) {
		a.s.note("%s is there as it is: %s, sha256 %s", review.Record.Name, shownVersion(review.Record.Manifest), review.Record.Digest)
		return nil
	}
	if o.yes.yes {
		if !o.yes.is(candidate.Digest) {
			a.showCard(a.s.err, review)
			return usageError("review it again: it is not what was reviewed", "%s has the SHA-256 %s; it is not added", ref, candidate.Digest)
		}
		if err := o.allow.into(a, &review.Record, ""); err != nil {
			return err
		}
		return a.keep(review)
	}
	if err := a.askAdd(ctx, review, o, ref); err != nil {
		return err
	}
	return a.keep(review)
}

func (a *app) showCard(w io.Writer, r *registry.Review) {
	fmt.Fprint(w, card{review: r, width: 80, work: a.Work}.short())
}

// askAdd asks whether to add a module, and writes into its record what it may have. No
// yes is an error.
func (a *app) askAdd(ctx context.Context, r *registry.Review, o addOptions, ref string) error {
	in, out, done, ok := a.terminal()
	if !ok || a.flags.json {
		a.showCard(a.s.err, r)
		return &exitErr{code: exitUnasked, message: "it is not added: there is no terminal to ask on",
			hint: "to add exactly this module: " + a.addCommand(r, ref, o)}
	}
	defer done()
	c := card{review: r, width: columnsOf(in), color: a.s.colors(), work: a.Work}
	gift, choices := tool.Allowance{}, slices.Clone(yesOrNo)
	switch {
	case o.allow.any():
		if err := o.allow.into(a, &r.Record, ""); err != nil {
			return err
		}
		choices[0].Words = "with " + allowedWords(r.Record.Allowed[""])
	case r.Keeps():
		choices[0].Words = "yes; what you have allowed stays"
	default:
		gift = registry.WantsOf(r.Record.Manifest).Gift(a.Work, r.Was)
		choices = yesChoices(gift, no)
	}
	answer, err := a.put(ctx, in, out, prompt.New("Add it?", choices, c.short, c.long))
	switch {
	case err != nil:
		return err
	case answer == 'n':
		return &exitErr{code: exitDenied, message: r.Record.Name + " is not added"}
	case answer == 'y' && !gift.Nothing():
		r.Record.Allowed = map[string]tool.Allowance{"": gift}
	}
	return nil
}

// addCommand is the command line that adds what was reviewed without a question, with
// all that was asked for.
func (a *app) addCommand(r *registry.Review, ref string, o addOptions) string {
	describe := ""
	if word, ok := shellword.Quote(ref); ok {
		ref = word
	}
	if o.describe != "" {
		describe = " " + asFlag("--describe", o.describe)
	}
	return fmt.Sprintf("stockade tool add --yes --sha256 %s%s%s%s%s %s", r.Record.Came(), asOther(r.Record), describe, o.allow, a.fetchFlags(), ref)
}

// asOther returns the flag for a module that is not kept under the name that it has itself.
// A blank is before the flag.
func asOther(r store.Record) string {
	if r.Name == r.Manifest.Name {
		return ""
	}
	return " --as " + r.Name
}

// fetchFlags returns the flags --large and --allow-net as they were given, a blank before each.
func (a *app) fetchFlags() (out string) {
	if a.flags.large {
		out = " --large"
	}
	for _, host := range a.flags.allowNet {
		out += " " + asFlag("--allow-net", host)
	}
	return out
}

// keep adds what was answered with yes, and says so.
func (a *app) keep(r *registry.Review) error {
	if err := registry.Keep(a.modules(), r); err != nil {
		return err
	}
	verb := "added"
	if r.Was != nil {
		verb = "updated"
	}
	fmt.Fprintf(a.s.out, "%s %s %s: %s\n", verb, r.Record.Name, shownVersion(r.Record.Manifest), strings.Join(toolNames(r), ", "))
	all := registry.AllowedTo(r.Record)
	w := registry.WantsOf(r.Record.Manifest)
	switch words := allowedWords(all); {
	case !all.Nothing() && r.Was != nil && r.Keeps():
		a.s.note("it has what you had allowed, because the same publisher has signed it and nothing of what it asks for has changed: %s", words)
	case !all.Nothing():
		a.s.note("it may use: %s", words)
	case w.Inferred && !w.Nothing():
		a.s.note("it can only compute so far; it does not say what it needs, and its imports could use: %s", strings.Join(w.Could(), ", "))
		a.s.hint("stockade tool grant %s %s", r.Record.Name, grantExample(w, a.Work))
	case !w.Nothing():
		a.s.note("it can only compute so far; it asks for: %s", w.String())
		a.s.hint("stockade tool grant %s %s", r.Record.Name, grantExample(w, a.Work))
	}
	return nil
}
