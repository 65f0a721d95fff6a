package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/table"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/config/policyfile"
	"github.com/stockade-dev/stockade/host/dispatch"
	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/tool"
)

func newPolicyCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy", Short: "What tools may do: show, explain, check, simulate, revoke",
		Long: `Show and check what tools may do. The administrator, you, the workspace, variables
and flags are layers of the policy, and each can only narrow what the others permit.

The layers and the form of rules are in ` + "`stockade help policy`" + `.`,
	}
	var caller, as string
	var files []string
	var defaults bool

	show := &cobra.Command{
		Use: "show", Short: "Show what each layer says and which answers are remembered", Args: cobra.NoArgs,
		Example: "  stockade policy show\n  stockade policy show --json | jq '.[] | select(.source==\"administrator\")'\n" +
			"  stockade policy show --defaults > policy.toml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if defaults {
				_, err := fmt.Fprint(a.s.out, policyfile.Sample())
				return err
			}
			return runPolicyShow(cmd.Context(), a)
		},
	}
	show.Flags().BoolVar(&defaults, "defaults", false, "print a policy.toml with every key and its default")
	explain := &cobra.Command{
		Use: "explain TOOL|MODULE.wasm [JSON | ARGUMENT=VALUE...]", Short: "Show which rule of which layer decides about a call, and how to change that",
		Long: `Decide about a call without making it. Say which rule of which layer decides, why,
and the smallest change that would allow the call. Nobody is asked, nothing runs.`,
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
		Long: `Check a policy.toml: its keys, values, rules and their examples. --as says whose
file it would be, because not every layer may hold every key. If it is the
administrator's file in its place, its owner, permissions and links are checked
too, and the files of certificate authorities that it names.`,
		Example: "  stockade policy check policy.toml --as administrator\n  stockade policy check /etc/stockade/policy.toml",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return runPolicyCheck(a, as, args[0]) },
	}
	check.Flags().StringVar(&as, "as", string(policy.SourceUser), "whose file it would be: administrator, user or project")
	simulate := &cobra.Command{
		Use: "simulate [SESSION]", Short: "Decide the calls of a session again, under other rules",
		Long: `Decide every call of a recorded session again, under the rules in force now. No
call is made. --policy takes the rules of a file instead of those of your own
policy.toml. Answers that were given at a prompt are not repeated.

` + sessionArgHelp,
		Example: "  stockade policy simulate last\n  stockade policy simulate last --policy stricter.toml\n  stockade policy simulate 01k --deny bash --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runPolicySimulate(cmd.Context(), a, sessionArg(args), files)
		},
	}
	simulate.Flags().Var((*stringsFlag)(&files), "policy", "use this file instead of your own policy.toml; may be repeated")
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

// boundJSON is a statement of a policy layer, or a remembered answer, in the output of `policy
// show --json`. The fields after Statement are set for answers only.
type boundJSON struct {
	policy.Statement
	ID        string `json:"id,omitempty"`
	Project   string `json:"project,omitempty"`   // workspace in which it holds; empty: all
	Changed   string `json:"changed,omitempty"`   // change of the tool that makes the answer void; empty: none
	Elsewhere bool   `json:"elsewhere,omitempty"` // no tool in this program has the name in the answer
}

func runPolicyShow(ctx context.Context, a *app) error {
	catalog, err := a.findTools(ctx)
	if err != nil {
		return err
	}
	if _, err := a.checkRuleNames(catalog.Catalog); err != nil {
		return err
	}
	answers, err := a.Dirs.Answers()
	if err != nil {
		return err
	}
	var out []boundJSON
	for _, l := range a.Layers {
		for _, b := range l.Describe() {
			out = append(out, boundJSON{Statement: b})
		}
	}
	for _, ans := range answers {
		r, err := ans.AllowRule()
		if err != nil {
			return err
		}
		s := boundJSON{Statement: r.Describe(), ID: ans.ID(), Project: ans.Project}
		if e, ok := catalog.Find(r.Tool); !ok {
			s.Elsewhere = true
		} else if parts := r.Binding.Changed(e); parts != nil {
			s.Changed = strings.Join(parts, ", ")
		}
		out = append(out, s)
	}
	if unbound := a.Ceiling.UnconfinedWarning(a.tier); unbound != "" {
		a.s.note("warning: %s", unbound)
	}
	if inside := namespaceWarning(); inside != "" {
		a.s.note("warning: %s", inside)
	}
	if done, err := printedList(a, out, "no layer has a rule, and no answer is remembered: the risk of a tool decides"); done {
		return err
	}
	w := table.New(table.Fixed("LAYER"), table.Fixed("ID"), table.Text("WHAT"), table.Path("WHERE"))
	for _, s := range out {
		text := s.Words
		if s.Changed != "" {
			text += fmt.Sprintf(" (asked again: %s changed)", s.Changed)
		}
		if s.Elsewhere {
			text += " (no tool here has this name: it counts if that module still has it)"
		}
		w.Row(s.Source, s.ID, text, s.Origin)
	}
	return a.s.table(w)
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
		return noToolError(catalog, name)
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
	p, err := a.newPolicy(catalog, mounts)
	if err != nil {
		return err
	}
	call := tool.Call{Tool: entry.Name, Args: data, Caller: tool.Caller(caller), Cwd: a.Workspace}
	x := withFlagHints(p.Decide(call, entry, policy.Facts{Files: dispatch.NamedFiles(p, call, entry)}).AssumeChanges().Explain())
	if a.flags.json {
		return printJSON(a.s, x)
	}
	w := table.New(table.Fixed(""), table.Text(""))
	rows := [][2]string{
		{"decision", x.Effect}, {"risk", x.Risk}, {"rule", x.Rule}, {"layer", string(x.Source)}, {"where", x.Origin}, {"reason", x.Reason},
	}
	if x.Tier != nil {
		rows = append(rows, [2]string{"jail", x.Tier.String()}, [2]string{"changes", changesText(x)})
	}
	for i, given := range x.Allowance {
		rows = append(rows, [2]string{[]string{"was given", "and"}[min(i, 1)], given})
	}
	rows = append(rows, [2]string{"not given", hintText(entry.MissingHint())})
	for _, also := range x.Also {
		rows = append(rows, [2]string{"so does", also.String()})
	}
	for _, row := range append(rows, [2]string{"to change it", x.HintText}) {
		if row[1] != "" {
			w.Row(row[0], row[1])
		}
	}
	if p.Hides(entry, tool.CallerAgent) {
		w.Row("the model", "does not see this tool")
	}
	return a.s.table(w)
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
	if fixed := adminPolicyPlace(); abs == fixed.Path {
		place, source = fixed, policy.SourceAdmin
	}
	layer, warnings, err := place.Read(source)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return usageError("", "%s: there is no such file", name)
	case err != nil:
		hint := "`stockade policy show --defaults` prints every key"
		if _, _, err := place.Read(policy.SourceAdmin); err == nil {
			hint = "an administrator's file may hold all of these keys: " + formatFlag("stockade policy check --as administrator", name)
		}
		return &exitErr{code: exitUsage, message: err.Error(), hint: hint}
	}
	if place == adminPolicyPlace() {
		if err := checkRoute(layer.Route); err != nil {
			return err
		}
	}
	for _, w := range warnings {
		a.s.note("warning: %s", w)
	}
	a.Layers = []policy.Layer{layer}
	warned := len(warnings)
	if catalog, err := registry.Builtin(); err == nil { // a build without tools cannot compare names
		n, err := a.checkRuleNames(catalog)
		if err != nil {
			return err
		}
		warned += n
	}
	if unbound := layer.Ceiling.UnconfinedWarning(a.tier); unbound != "" {
		a.s.note("warning: %s", unbound)
		warned++
	}
	bounds := layer.Describe()
	for _, b := range bounds {
		fmt.Fprintln(a.s.out, terminal.Line(b.Words))
	}
	statements := humanize.Plural(len(bounds), "statement")
	if warned > 0 {
		a.s.note("%s can be used as a policy of the %s, with the warnings above; it has %s", name, source, statements)
		return nil
	}
	a.s.note("%s is a good policy of the %s; it has %s", name, source, statements)
	return nil
}

func runPolicyRevoke(a *app, what []string) error {
	for _, word := range what {
		removed, err := a.Dirs.Revoke(word)
		if err != nil {
			return err
		}
		if len(removed) == 0 {
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

// namespaceWarning returns a warning if this program runs in a user namespace, where the
// policy may not be that of the machine; otherwise it returns "".
func namespaceWarning() string {
	ids := jail.UserNamespace()
	if ids == "" {
		return ""
	}
	return fmt.Sprintf("this program runs in a user namespace (uid_map %s): its creator may have replaced /etc, and the administrator's policy with it", ids)
}
