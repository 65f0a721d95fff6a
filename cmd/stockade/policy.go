package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/config/policyfile"
	"github.com/stockade-dev/stockade/host/dispatch"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

const policyHelp = `What tools may do is what every layer permits: the administrator's policy.toml,
yours, the workspace's .stockade/policy.toml, STOCKADE_DENY, --deny. Each only
narrows. What is left and asks a question is answered at the prompt, by an answer
that was remembered, or by --allow, and never beyond that.

A rule is TOOL or 'TOOL(CONDITION)'. A condition is one of

  ARGUMENT=VALUE                   the value to the letter
  path:ARGUMENT=/home/*/src/**     a path: * within one name, ** any number of names
  host:ARGUMENT=*.example.com      a host, or an address with one
  words:ARGUMENT='ls -l ...'       a command by its literal words: * any word, ... any more
  pattern:ARGUMENT=[a-z]+          a regular expression over the whole value
  one_of:ARGUMENT=["a","b"]        a list
  maximum:ARGUMENT=100             a number

and ARGUMENT a name, or a JSON pointer such as /edits/*/path. A rule for words
never allows what bash would expand, nor more than one command. A command that is
easily regretted (rm, dd, mkfs, sudo, git reset --hard) asks even where a rule allows
it, unless --allow holds it to the letter: a courtesy, and no protection.`

func newPolicyCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "policy", Short: "What tools may do: show, explain, check, simulate, revoke", Long: policyHelp}
	var caller, as string
	var files []string
	var defaults bool

	show := &cobra.Command{
		Use: "show", Short: "Show what each layer says and which answers are remembered", Args: cobra.NoArgs,
		Example: "  stockade policy show\n  stockade policy show --json | jq '.[] | select(.source==\"administrator\")'\n" +
			"  stockade policy show --defaults > policy.toml",
		RunE: func(*cobra.Command, []string) error {
			if defaults {
				_, err := fmt.Fprint(a.s.out, policyfile.Sample())
				return err
			}
			return runPolicyShow(a)
		},
	}
	show.Flags().BoolVar(&defaults, "defaults", false, "print a policy.toml with every key and its default")
	explain := &cobra.Command{
		Use: "explain TOOL|MODULE.wasm [JSON | ARGUMENT=VALUE...]", Short: "Say which rule of which layer decides about a call, and what would change it",
		Long: `Decide about a call without making it, and say which rule of which layer decides,
why, and the smallest change that would allow it. Nothing is asked or run.`,
		Example: "  stockade policy explain bash command='make test'\n" +
			"  stockade policy explain file_write path=src/main.go --caller mcp\n" +
			"  stockade policy explain bash command=ls --allow 'bash(words:command=ls ...)'",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runPolicyExplain(cmd.Context(), a, caller, args[0], args[1:])
		},
	}
	explain.Flags().StringVar(&caller, "caller", string(tool.CallerAgent), "who calls: agent, person or mcp")
	check := &cobra.Command{
		Use: "check FILE", Short: "Check a policy.toml without using it",
		Long: `Check a policy.toml: its keys, values, rules and their examples. Where it is at the
administrator's place, its owner, permissions and links are checked too, and the
files of certificate authorities that it names. With
--as, what an administrator's or a project's file may hold.`,
		Example: "  stockade policy check policy.toml --as administrator\n  stockade policy check /etc/stockade/policy.toml",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return runPolicyCheck(a, as, args[0]) },
	}
	check.Flags().StringVar(&as, "as", string(policy.SourceUser), "whose file it would be: administrator, user or project")
	simulate := &cobra.Command{
		Use: "simulate [SESSION]", Short: "Decide the calls of a session again, under other rules",
		Long: `Decide every call of a recorded session again, without making any, under the
rules in force now, or with --policy under those of files in the place of your
own policy.toml. Answers that were given at a prompt are not given again.

` + whatIsLast,
		Example: "  stockade policy simulate last\n  stockade policy simulate last --policy stricter.toml\n  stockade policy simulate 01k --deny bash --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runPolicySimulate(cmd.Context(), a, sessionArg(args), files)
		},
	}
	simulate.Flags().StringArrayVar(&files, "policy", nil, "a policy.toml in the place of your own; may be repeated")
	revoke := &cobra.Command{
		Use: "revoke ID|RULE...", Short: "Remove remembered answers, to be asked again",
		Example: "  stockade policy show\n  stockade policy revoke 1c9f03ab\n  stockade policy revoke file_write",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return runPolicyRevoke(a, args) },
	}
	for _, c := range []*cobra.Command{show, explain, simulate} {
		c.Flags().BoolVar(&a.flags.json, "json", false, "print JSON")
		addGrantFlags(c, a)
	}
	cmd.AddCommand(show, explain, check, simulate, revoke)
	return cmd
}

// shownBound is a bound in the output of `policy show --json`.
type shownBound struct {
	policy.Bound
	ID        string `json:"id,omitempty"` // of a remembered answer
	Project   string `json:"project,omitempty"`
	Changed   string `json:"changed,omitempty"`   // what, since it was remembered; it answers nothing then
	Elsewhere bool   `json:"elsewhere,omitempty"` // no built-in tool has its name
}

func runPolicyShow(a *app) error {
	catalog, err := a.catalog()
	if err != nil {
		return err
	}
	if _, err := a.checkNames(catalog); err != nil {
		return err
	}
	answers, err := a.dirs.Answers()
	if err != nil {
		return err
	}
	out := []shownBound{}
	for _, l := range a.layers {
		for _, b := range l.Describe() {
			out = append(out, shownBound{Bound: b})
		}
	}
	for _, ans := range answers {
		r, err := ans.AllowRule()
		if err != nil {
			return err
		}
		s := shownBound{Bound: r.Describe(), ID: ans.ID(), Project: ans.Project}
		if e, ok := catalog.Find(r.Tool); !ok {
			s.Elsewhere = true
		} else if parts := r.Bound.Changed(e); parts != nil {
			s.Changed = strings.Join(parts, ", ")
		}
		out = append(out, s)
	}
	if unbound := a.ceiling.Unbound(policy.TierNone); unbound != "" {
		a.s.note("warning: %s", unbound)
	}
	if a.flags.json {
		return printJSON(a.s, out)
	}
	if len(out) == 0 {
		a.s.note("no layer says anything, and nothing is remembered: the risk of a tool decides")
		return nil
	}
	w := tabwriter.NewWriter(a.s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "LAYER\tID\tWHAT\tWHERE")
	for _, s := range out {
		words := s.Words
		if s.Changed != "" {
			words += fmt.Sprintf(" (asked again: %s changed)", s.Changed)
		}
		if s.Elsewhere {
			words += " (no built-in tool has this name: it counts if that module still has it)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.Source, s.ID, terminal.Line(words), terminal.Line(s.Origin))
	}
	return w.Flush()
}

func runPolicyExplain(ctx context.Context, a *app, caller, name string, args []string) error {
	if !slices.Contains([]string{string(tool.CallerAgent), string(tool.CallerPerson), string(tool.CallerMCP)}, caller) {
		return usageError("", "--caller is agent, person or mcp, not %q", caller)
	}
	catalog, mounts, name, err := a.callTarget(ctx, name)
	if err != nil {
		return err
	}
	entry, ok := catalog.Find(name)
	if !ok {
		return noTool(catalog, name)
	}
	data, err := parseArgs(entry, args)
	if err != nil {
		return err
	}
	if checked, err := entry.Schema.Check(ctx, data); err == nil {
		data = checked
	} else {
		a.s.note("warning: such a call is refused before anything is decided: %v", err)
	}
	p, err := a.policy(catalog, mounts)
	if err != nil {
		return err
	}
	call := tool.Call{Tool: entry.Name, Args: data, Caller: tool.Caller(caller), Cwd: a.work}
	call.Files = dispatch.NamedFiles(p, call, entry)
	x := p.Decide(call, entry).Foreseen().Explain()
	if a.flags.json {
		return printJSON(a.s, x)
	}
	w := tabwriter.NewWriter(a.s.out, 0, 0, 2, ' ', 0)
	rows := [][2]string{
		{"decision", x.Effect}, {"risk", x.Risk}, {"rule", x.Rule}, {"layer", string(x.Source)}, {"where", x.Origin}, {"reason", x.Reason},
	}
	for _, also := range x.Also {
		rows = append(rows, [2]string{"so does", also.String()})
	}
	for _, row := range append(rows, [2]string{"to change it", x.Change}) {
		if row[1] != "" {
			fmt.Fprintf(w, "%s\t%s\n", row[0], terminal.Line(row[1]))
		}
	}
	if p.Hides(entry, tool.CallerAgent) {
		fmt.Fprintf(w, "the model\tdoes not see this tool\n")
	}
	return w.Flush()
}

func runPolicyCheck(a *app, as, name string) error {
	source := policy.Source(as)
	if !slices.Contains([]policy.Source{policy.SourceAdmin, policy.SourceUser, policy.SourceProject}, source) {
		return usageError("", "--as is administrator, user or project, not %q", as)
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	place := policyfile.Place{Path: abs, Owner: policyfile.Anybody}
	if fixed := administrator(); abs == fixed.Path {
		place, source = fixed, policy.SourceAdmin
	}
	layer, warnings, err := place.Read(source)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return usageError("", "%s: there is no such file", name)
	case err != nil:
		return &exitErr{code: exitUsage, message: err.Error(), hint: "`stockade policy show --defaults` prints every key"}
	}
	if place == administrator() {
		if err := checkRoute(layer.Route); err != nil {
			return err
		}
	}
	for _, w := range warnings {
		a.s.note("warning: %s", w)
	}
	a.layers = []policy.Layer{layer}
	warned := len(warnings)
	if catalog, err := a.catalog(); err == nil { // a build without tools has none to compare with
		n, err := a.checkNames(catalog)
		if err != nil {
			return err
		}
		warned += n
	}
	if unbound := layer.Ceiling.Unbound(policy.TierNone); unbound != "" {
		a.s.note("warning: %s", unbound)
		warned++
	}
	bounds := layer.Describe()
	for _, b := range bounds {
		fmt.Fprintln(a.s.out, terminal.Line(b.Words))
	}
	says := plural(len(bounds), "thing")
	if warned > 0 {
		a.s.note("%s can be used as a policy of the %s, with the warnings above; it says %s", name, source, says)
		return nil
	}
	a.s.note("%s is a good policy of the %s; it says %s", name, source, says)
	return nil
}

func runPolicyRevoke(a *app, what []string) error {
	for _, word := range what {
		removed, err := a.dirs.Revoke(word)
		if err != nil {
			return err
		}
		if removed == nil {
			return usageError("`stockade policy show` lists what is remembered, with its id", "nothing remembered is %q", word)
		}
		for _, ans := range removed {
			r, err := ans.AllowRule()
			if err != nil {
				return err
			}
			fmt.Fprintf(a.s.out, "revoked: %s\n", terminal.Line(r.InWords()))
		}
	}
	return nil
}
