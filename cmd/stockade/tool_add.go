package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/effect"
	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/registry/oci"
	"github.com/stockade-dev/stockade/host/registry/oci/credential"
	"github.com/stockade-dev/stockade/host/registry/source"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/settings"
	"github.com/stockade-dev/stockade/host/shellword"
	"github.com/stockade-dev/stockade/host/tool"
)

const referenceHelp = `REF is one of
  weather.wasm                       a file
  ./weather                          a folder with one module, or an OCI layout
  https://example.com/weather.wasm   a download
  oci://HOST/REPOSITORY:TAG          a registry; @sha256:HEX pins what is meant`

// addOptions are those of `tool add` and `tool update`.
type addOptions struct {
	as     string
	yes    bool
	sha256 string
	allow  allowFlags
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

--yes --sha256 HASH is for scripts: it adds the module if it is the one that was
reviewed, with what --read, --write, --host, --secret and --exec give it.

` + exitHelp,
		Example: "  stockade tool add ./weather.wasm\n  stockade tool add oci://registry.example.org/tools/weather:1.2\n" +
			"  stockade tool add --as meteo https://example.org/weather.wasm\n" +
			"  stockade tool add --yes --sha256 \"$(sha256sum <weather.wasm | cut -d' ' -f1)\" --host api.example.org weather.wasm",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runToolAdd(cmd.Context(), a, args[0], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.as, "as", "", "the name under which its tools are offered (default: the name that it gives itself)")
	f.BoolVar(&o.yes, "yes", false, "add it without a question; needs --sha256")
	f.StringVar(&o.sha256, "sha256", "", "with --yes: the SHA-256 of the module that was reviewed, in hex")
	o.allow.add(cmd)
	addReachFlag(cmd, a)
	return cmd
}

func runToolAdd(ctx context.Context, a *app, ref string, o addOptions) error {
	if o.yes != (o.sha256 != "") {
		return usageError("the module that was reviewed: --yes --sha256 \"$(sha256sum <FILE | cut -d' ' -f1)\"", "--yes and --sha256 belong together")
	}
	if err := a.mayAdd(); err != nil {
		return err
	}
	candidate, err := a.fetch(ctx, ref, false)
	if err != nil {
		return err
	}
	review, err := a.review(ctx, registry.Request{Candidate: candidate, As: o.as})
	if err != nil {
		return err
	}
	if review.Same() && !o.allow.any() && a.whole(*review.Was) {
		a.s.note("%s is there as it is: %s, sha256 %s", review.Record.Name, cmp.Or(review.Manifest.Version, "no version"), review.Record.Digest)
		return nil
	}
	if o.yes {
		if !strings.EqualFold(strings.TrimPrefix(o.sha256, "sha256:"), review.Record.Digest) {
			a.showCard(a.s.err, review)
			return usageError("review it again: it is not what was reviewed", "%s has the SHA-256 %s; it is not added", ref, review.Record.Digest)
		}
		if err := o.allow.into(a, review.Manifest, &review.Record, ""); err != nil {
			return err
		}
		return a.keep(review)
	}
	yes, err := a.askAdd(ctx, review, o.allow, ref)
	if err != nil || !yes {
		return err
	}
	return a.keep(review)
}

// whole reports whether the bytes of a module are those that were added. If not, adding
// it again mends that.
func (a *app) whole(r store.Record) bool {
	_, err := a.modules().Module(r).Read()
	return err == nil
}

// fetch gets a module from where a person says it is. One that a lockfile names is
// fetched without credentials, and from no address inside a network that the person's
// own rules do not have.
func (a *app) fetch(ctx context.Context, ref string, locked bool) (*source.Candidate, error) {
	if ok, why, from := a.Ceiling.PermitsFrom(registry.PlaceOf(ref)); !ok { // a request would tell somebody already
		return nil, &exitErr{code: exitDenied, message: fmt.Sprintf("%s is not fetched: %s: %s", ref, why, from)}
	}
	out, rules, err := a.fetching()
	if err != nil {
		return nil, err
	}
	shown := time.Now()
	credentials := oci.Credentials(a.credentials)
	if locked {
		credentials = nil
	}
	done := a.soon("fetching " + ref + " ...")
	c, err := source.Fetch(ctx, ref, source.Options{
		Client: out.Fetcher(rules, a.Ceiling, !locked), Credentials: credentials,
		Progress: func(done, total int64) {
			if now := time.Now(); !a.flags.quiet && now.Sub(shown) > time.Second {
				shown = now
				a.s.note("fetched %s of %s ...", humanBytes(done), humanBytes(total))
			}
		},
	})
	done()
	if err == nil {
		return c, nil
	}
	said := fetchError(ref, err)
	if denial, ok := errors.AsType[*network.Denial](err); ok && locked && denial.Grant != nil {
		said.hint = "if you trust that host with this: stockade tool sync" + a.netFlags() + " " + asFlag("--allow-net", denial.Grant.String())
	}
	return nil, said
}

// fetching is how modules are fetched: the server that a person names is reached, and
// whoever else the rules of the network allow, for tokens and redirects.
func (a *app) fetching() (*egress.Egress, []network.Rule, error) {
	rules, err := a.NetRules(a.flags.allowNet)
	if err != nil {
		return nil, nil, err
	}
	out, err := a.egress()
	return out, rules, err
}

// credentials are those that docker has in the home directory of the user's account,
// wherever HOME leads.
func (a *app) credentials(ctx context.Context, host string) (credential.Login, error) {
	home := accountHome
	if home == nil {
		home = settings.AccountHome
	}
	return credential.Home{Dir: home()}.For(ctx, host)
}

// fetchError says why a module was not fetched or pushed, and what would change that.
func fetchError(ref string, err error) *exitErr {
	out := &exitErr{code: exitError, message: err.Error()}
	if !strings.Contains(out.message, ref) {
		out.message = ref + ": " + out.message
	}
	if denial, ok := errors.AsType[*network.Denial](err); ok {
		out.code = exitDenied
		if denial.Grant != nil {
			out.hint = "if you trust that host with this: " + asFlag("--allow-net", denial.Grant.String())
		}
		return out
	}
	switch effect.KindOf(err) {
	case effect.DNS, effect.Connect:
		out.hint = "see whether the host and its port are right, and up; what you have added already needs no network"
	case effect.TLS:
		out.hint = "see whether the host is the right one; a registry on another machine is reached by https, and no certificate is let pass"
	}
	return out
}

// review checks a module before anybody is asked about it.
func (a *app) review(ctx context.Context, q registry.Request) (*registry.Review, error) {
	r, err := a.reviewer()
	if err != nil {
		return nil, err
	}
	done := a.soon("checking " + q.Candidate.Source + " ...")
	a.checking.Store(true)
	review, err := r.Review(ctx, q)
	a.checking.Store(false)
	done()
	if refused, ok := errors.AsType[*registry.RefusedError](err); ok {
		return nil, &exitErr{code: exitDenied, message: refused.Error(), hint: refused.Hint}
	}
	return review, err
}

// soon says what takes so long, if it is not done after a second.
func (a *app) soon(text string) (done func()) {
	if a.flags.quiet {
		return func() {}
	}
	over, said := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(said)
		select {
		case <-over:
		case <-time.After(time.Second):
			a.s.note("%s", text)
		}
	}()
	return func() { close(over); <-said }
}

func (a *app) showCard(w io.Writer, r *registry.Review) {
	fmt.Fprint(w, card{review: r, width: 80, work: a.Work}.short())
}

// askAdd asks whether to add a module, and writes into its record what it may have.
func (a *app) askAdd(ctx context.Context, r *registry.Review, flags allowFlags, ref string) (bool, error) {
	in, out, done, ok := a.terminal()
	if !ok || a.flags.json {
		a.showCard(a.s.err, r)
		return false, &exitErr{code: exitUnasked, message: "it is not added: there is no terminal to ask on",
			hint: "to add exactly this module: " + a.addCommand(r, ref, flags)}
	}
	defer done()
	c := card{review: r, width: columnsOf(in), color: a.s.colors(), work: a.Work}
	fmt.Fprint(out, c.short())
	gift, answers := tool.Allowance{}, []answer{{"y", "yes"}, {"n", "no"}}
	w := registry.WantsOf(r.Manifest)
	switch {
	case flags.any():
		if err := flags.into(a, r.Manifest, &r.Record, ""); err != nil {
			return false, err
		}
		answers[0].words = "with " + allowedWords(r.Record.Allowed[""])
	case r.Keeps():
		answers[0].words = "yes; what you have allowed stays"
	default:
		gift = a.gift(w, r.Was)
		if allowedWords(gift) != "nothing" {
			answers = []answer{{"y", giftWords(gift)}, {"o", "only computing"}, {"n", "no"}}
		}
	}
	answer, err := asking{in, out, c.width, c.color}.ask(ctx, "Add it?", answers, func() { fmt.Fprint(out, c.long()) })
	switch {
	case err != nil:
		return false, err
	case answer == "n":
		return false, &exitErr{code: exitDenied, message: r.Record.Name + " is not added"}
	case answer == "y" && allowedWords(gift) != "nothing":
		r.Record.Allowed = map[string]tool.Allowance{"": gift}
	}
	return true, nil
}

// addCommand is the command line that adds what was reviewed without a question, with
// all that was asked for.
func (a *app) addCommand(r *registry.Review, ref string, flags allowFlags) string {
	as := ""
	if r.Record.Name != r.Manifest.Name {
		as = " --as " + r.Record.Name
	}
	if word, ok := shellword.Quote(ref); ok {
		ref = word
	}
	return fmt.Sprintf("stockade tool add --yes --sha256 %s%s%s%s %s", r.Record.Digest, as, flags, a.netFlags(), ref)
}

// netFlags are those of --allow-net, as they follow a command.
func (a *app) netFlags() (out string) {
	for _, host := range a.flags.allowNet {
		out += " " + asFlag("--allow-net", host)
	}
	return out
}

// gift is what a yes gives a module: the hosts and secrets that it names, the files of
// the workspace if it asks for files, and commands, which are asked about anyway. One
// that takes the place of another has the directories that this had.
func (a *app) gift(w registry.Wants, was *store.Record) tool.Allowance {
	out := w.Named()
	out.Exec = w.Exec
	if was != nil {
		had := registry.AllowedTo(*was)
		if w.Files != tool.FilesNone {
			out.Read = had.Read
		}
		if w.Files == tool.FilesWrite {
			out.Write = had.Write
		}
		if w.AnyHost {
			out.Hosts = tidy(merged(out, had)).Hosts
		}
		return out
	}
	switch w.Files {
	case tool.FilesRead:
		out.Read = []string{a.Work}
	case tool.FilesWrite:
		out.Write = []string{a.Work}
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
	fmt.Fprintf(a.s.out, "%s %s %s: %s\n", verb, r.Record.Name, terminal.Line(cmp.Or(r.Manifest.Version, "(no version)")), strings.Join(toolNames(r), ", "))
	all := registry.AllowedTo(r.Record)
	w := registry.WantsOf(r.Manifest)
	switch words := allowedWords(all); {
	case words != "nothing" && r.Was != nil && r.Keeps():
		a.s.note("it has what you had allowed, because the same publisher has signed it and nothing of what it asks for has changed: %s", words)
	case words != "nothing":
		a.s.note("it may use: %s", words)
	case !w.Nothing():
		a.s.note("it can only compute so far; it asks for: %s", w.String())
		a.s.hint("stockade tool grant %s %s", r.Record.Name, grantExample(w, a.Work))
	}
	return nil
}

func merged(a, b tool.Allowance) tool.Allowance {
	return tool.Allowance{
		Read: slices.Concat(a.Read, b.Read), Write: slices.Concat(a.Write, b.Write), Hosts: slices.Concat(a.Hosts, b.Hosts),
		Secrets: slices.Concat(a.Secrets, b.Secrets), Exec: a.Exec || b.Exec,
	}
}

func newToolUpdateCmd(a *app) *cobra.Command {
	var o addOptions
	cmd := &cobra.Command{
		Use: "update [NAME]", Short: "Take newer versions of what you have added",
		Long: `Fetch each module, or one, from where it came. If it is another one now, a version
by the same publisher that says and asks the same takes its place at once, and
what you have allowed stays. Whatever else has changed is shown, and the module is
switched off until you decide.

` + exitHelp,
		Example: "  stockade tool update\n  stockade tool update weather\n  stockade tool update --yes --sha256 HASH weather",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return runToolUpdate(cmd.Context(), a, name, o)
		},
	}
	cmd.Flags().BoolVar(&o.yes, "yes", false, "take the new one without a question; needs --sha256 and a name")
	cmd.Flags().StringVar(&o.sha256, "sha256", "", "with --yes: the SHA-256 of the module that was reviewed, in hex")
	addReachFlag(cmd, a)
	return cmd
}

func runToolUpdate(ctx context.Context, a *app, name string, o addOptions) error {
	if o.yes != (o.sha256 != "") || o.yes && name == "" {
		return usageError("stockade tool update --yes --sha256 HASH NAME", "--yes, --sha256 and a name belong together")
	}
	if err := a.mayAdd(); err != nil {
		return err
	}
	records, err := a.modules().Records()
	if err != nil {
		return err
	}
	if name != "" {
		i, _, err := registry.Find(records, name, a.Work)
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
		return nil
	}
	var errs []error
	for _, r := range records {
		if err := a.updateOne(ctx, r, o); err != nil {
			errs = append(errs, err)
			if len(records) > 1 {
				report(a.s, ctx, err)
			}
		}
	}
	switch {
	case len(errs) == 0:
		return nil
	case len(records) == 1:
		return errs[0]
	}
	return &exitErr{code: exitError, message: plural(len(errs), "module") + " of " + fmt.Sprint(len(records)) + " could not be updated"}
}

// updateOne takes the newest version of one module, if a person need not be asked or
// says yes. The module is switched off while it is not decided.
func (a *app) updateOne(ctx context.Context, r store.Record, o addOptions) error {
	candidate, err := a.fetch(ctx, r.Source, false)
	if err != nil {
		return err
	}
	review, err := a.review(ctx, registry.Request{Candidate: candidate, As: r.Name})
	if err != nil {
		return err
	}
	version := shownVersion(review.Manifest)
	switch {
	case review.Same() && a.whole(r):
		a.s.note("%s is up to date: %s", r.Name, version)
		return a.putBack(r) // where a newer one that was not decided about has gone
	case review.Keeps():
		return a.keep(review)
	case o.yes && strings.EqualFold(strings.TrimPrefix(o.sha256, "sha256:"), review.Record.Digest):
		return a.keep(review)
	case o.yes:
		return usageError("review it again", "%s is sha256 %s now; it is not updated", r.Name, review.Record.Digest)
	}
	off := fmt.Sprintf("%s %s differs from what you approved; `stockade tool update %s` shows how, and asks", r.Name, version, r.Name)
	if r.Off != store.OffByPerson { // which it would not be any more if it is kept
		if err := a.setOff(r, off); err != nil {
			return err
		}
	}
	in, out, done, ok := a.terminal()
	if !ok {
		a.showCard(a.s.err, review)
		return &exitErr{code: exitUnasked, message: fmt.Sprintf("%s is switched off: nobody can be asked here about version %s", r.Name, version),
			hint: fmt.Sprintf("to take exactly this one: stockade tool update --yes --sha256 %s%s %s", review.Record.Digest, a.netFlags(), r.Name)}
	}
	defer done()
	c := card{review: review, width: columnsOf(in), color: a.s.colors(), work: a.Work}
	fmt.Fprintf(out, "%s  It is switched off until you decide.\n", c.short())
	gift := a.gift(registry.WantsOf(review.Manifest), &r)
	answers := []answer{{"y", "yes"}, {"k", "keep " + shownVersion(r.Manifest)}, {"r", "remove it"}, {"n", "not now"}}
	if allowedWords(gift) != "nothing" {
		answers = append([]answer{{"y", giftWords(gift)}, {"o", "only computing"}}, answers[1:]...)
	}
	answer, err := asking{in, out, c.width, c.color}.ask(ctx, "Take it?", answers, func() { fmt.Fprint(out, c.long()) })
	switch {
	case err != nil:
		return err
	case answer == "k":
		a.s.note("%s stays as it is: %s", r.Name, shownVersion(r.Manifest))
		return a.putBack(r)
	case answer == "r":
		return runToolRemove(a, []string{r.Name})
	case answer == "n":
		return &exitErr{code: exitDenied, message: r.Name + " stays switched off"}
	case answer == "y" && allowedWords(gift) != "nothing":
		review.Record.Allowed = map[string]tool.Allowance{"": gift}
	}
	return a.keep(review)
}

// putBack offers the tools of a module again that an update had switched off. What the
// person has switched off stays so.
func (a *app) putBack(r store.Record) error {
	if r.Off == store.OffByPerson {
		return nil
	}
	return a.setOff(r, "")
}

// setOff says why the tools of a module are not offered, or that they are.
func (a *app) setOff(r store.Record, why string) error {
	return a.modules().Change(nil, func(records []store.Record) ([]store.Record, error) {
		for i := range records {
			if records[i].Name == r.Name && records[i].Project == r.Project {
				records[i].Off = why
			}
		}
		return records, nil
	})
}

func newToolRemoveCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME...", Short: "Remove modules, with what you have allowed them",
		Example: "  stockade tool remove weather",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return runToolRemove(a, args) },
	}
}

func runToolRemove(a *app, names []string) error {
	s := a.modules()
	err := s.Change(nil, func(records []store.Record) ([]store.Record, error) {
		for _, name := range names {
			i, inner, err := registry.Find(records, name, a.Work)
			switch {
			case err != nil:
				return nil, usageError("`stockade tool list` shows what was added", "%v", err)
			case inner != "":
				return nil, usageError("stockade tool disable "+name+" switches one tool off", "%s is one tool of a module, which is removed as a whole", name)
			case records[i].System:
				return nil, usageError("stockade tool disable "+name+" switches it off for you", "%s is the administrator's", name)
			}
			records = slices.Delete(records, i, i+1)
		}
		return records, nil
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		fmt.Fprintf(a.s.out, "removed %s\n", terminal.Line(name))
	}
	return s.Sweep()
}
