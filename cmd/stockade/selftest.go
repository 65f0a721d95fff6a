package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/table"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/selftest"
	"github.com/stockade-dev/stockade/host/selftest/machine"
)

func newSelftestCmd(a *app) *cobra.Command {
	var areas []string
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "Attack the sandbox on this machine, and show what stops each attack",
		Long: `Run hostile WebAssembly modules through the sandbox of this program, on this
machine, and show what stopped each. Most attacks are tried with each kind of
module that runs: native ones, WASI commands, Extism plugins. Such an attack is
one row if all kinds were stopped. An attack passes only if the module has tried
it, reports what it saw, and has read and changed nothing beyond its grants. An
attack that could not be carried out has failed.

In the area jail a hostile program runs as a command of bash does, and in the area
staging commands run before they are asked about. The last line says in which tier:
see ` + "`stockade help bash`" + `.

Everything happens in a temporary directory, which is removed. No attack harms
the machine, even if nothing stops it.

Areas: ` + strings.Join(areaNames(), ", ") + `

It ends with exit code 0 if every attack was stopped, and with 1 otherwise.`,
		Example: `  stockade selftest
  stockade selftest --area files --area memory --verbose
  stockade selftest --json | jq '.[] | select(.result == "fail")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runSelftest(cmd.Context(), a, areas) },
	}
	cmd.Flags().Var((*stringsFlag)(&areas), "area", "attack this area only; may be given several times")
	cmd.Flags().BoolVar(&a.flags.json, "json", false, "print JSON")
	return cmd
}

func areaNames() []string {
	var names []string
	for _, area := range selftest.Areas {
		names = append(names, string(area))
	}
	return names
}

func runSelftest(ctx context.Context, a *app, names []string) (err error) {
	var areas []selftest.Area
	for _, name := range names {
		if !slices.Contains(selftest.Areas, selftest.Area(name)) {
			return usageError("the areas are: "+strings.Join(areaNames(), ", "), "there is no area %q", name)
		}
		areas = append(areas, selftest.Area(name))
	}
	scratch, err := selftest.Scratch()
	if err != nil {
		return err
	}
	defer func() {
		if e := os.RemoveAll(scratch); err == nil && e != nil {
			err = fmt.Errorf("remove the scratch directory: %w", e)
		}
	}()
	options := a.door().SandboxOptions()
	options.OnCompile, options.OnCompiled, options.Logger = nil, nil, nil // the errors of these modules are the result
	options.Permit = nil                                                  // the modules belong to this program
	target := selftest.NewSandbox(options, filepath.Join(scratch, "compiled"))
	target.Tier, target.Staging = a.tier, a.door().WhyNotStaged
	defer func() {
		if e := target.Close(); err == nil {
			err = e
		}
	}()

	tiers := a.door().Tiers()
	left := map[selftest.Area]string{}
	if tiers.Tier == policy.TierNone {
		left[selftest.Jail] = "nothing confines a command here, so bash is refused; `stockade tool info bash` says why"
	}
	if why := target.Staging([]policy.Mount{{Host: scratch, Write: true}}); why != "" {
		left[selftest.Staging] = "commands are asked about before they run here: " + why
	}
	if areas == nil {
		areas = slices.Clone(selftest.Areas)
	}
	areas = slices.DeleteFunc(areas, func(area selftest.Area) bool { return left[area] != "" })
	start := time.Now()
	results, err := selftest.Run(ctx, target, selftest.Options{Areas: areas, Dir: scratch, Started: func(at selftest.Attack, n, of int) {
		a.showProgress(fmt.Sprintf("%d of %d: %s", n, of, at.Name))
	}})
	a.showProgress("")
	if err != nil {
		return err
	}
	return showAttacks(a, results, time.Since(start), tiers.Tier, left, sandbox.MissingLimits())
}

// showAttacks prints the results of attacks, and returns the error with which the program
// ends; nil: all passed. left has the areas that cannot be attacked here, each with the
// reason. missing names limits on the compiling process that this system lacks.
func showAttacks(a *app, results []selftest.Result, took time.Duration, tier policy.Tier, left map[selftest.Area]string, missing string) (err error) {
	if a.flags.json {
		err = attacksJSON(a.s, results)
	} else {
		err = attacksTable(a.s, results, took, tier, a.flags.verbose)
	}
	if err != nil {
		return err
	}
	for _, area := range selftest.Areas {
		if why := left[area]; why != "" {
			a.s.note("the area %s was not attacked: %s", area, why)
		}
	}
	if missing != "" {
		a.s.note("not on this system: limits on %s of the process that compiles", missing)
	}
	if failed := countFailed(results); failed > 0 {
		return &exitErr{code: exitError, message: fmt.Sprintf("%d of %d attacks did not pass", failed, len(results))}
	}
	return nil
}

func countFailed(results []selftest.Result) int {
	n := 0
	for _, r := range results {
		if !r.Pass {
			n++
		}
	}
	return n
}

// showProgress replaces the line of a terminal that shows the progress; "" clears it.
func (a *app) showProgress(text string) {
	if a.s.errTTY && !a.flags.quiet {
		fmt.Fprint(a.s.err, "\r\x1b[K"+text)
	}
}

func attacksTable(s *stdio, results []selftest.Result, took time.Duration, tier policy.Tier, verbose bool) error {
	w := newAttacksTable()
	var area selftest.Area
	for _, r := range attackRows(results, verbose) {
		if r.Area != area {
			if err := s.table(w); err != nil {
				return err
			}
			if w = newAttacksTable(); area != "" {
				fmt.Fprintln(s.out)
			}
			area = r.Area
			fmt.Fprintf(s.out, "%s\n", strings.ToUpper(string(area)))
		}
		says := r.Mechanism
		if !r.Pass {
			says = r.Detail
		}
		w.Row("  "+r.Name, verdict(r.Result), says)
		if verbose {
			if err := s.table(w); err != nil {
				return err
			}
			w = newAttacksTable()
			fmt.Fprintf(s.out, "    %s %d ms.", r.Description, r.Duration.Milliseconds())
			if r.Pass && r.Detail != "" {
				fmt.Fprintf(s.out, " %s.", terminal.Line(r.Detail))
			}
			fmt.Fprintln(s.out)
		}
	}
	if err := s.table(w); err != nil {
		return err
	}
	failed := countFailed(results)
	_, err := fmt.Fprintf(s.out, "\n%d attacks in %.1f s on %s/%s, %s: %d passed, %d failed\n",
		len(results), took.Seconds(), runtime.GOOS, runtime.GOARCH, tier, len(results)-failed, failed)
	return err
}

// newAttacksTable returns an empty section of the table. Each section has its column widths.
func newAttacksTable() *table.Table {
	return table.New(table.Fixed(""), table.Fixed(""), table.Text(""))
}

// attackRow is a row of the table. Name is the attack's name in the row.
type attackRow struct {
	selftest.Result
	Name string
}

// attackRows returns the rows of a table. An attack that was tried with several kinds of
// modules is one row, unless it did not pass with one of them, or verbose is set.
func attackRows(results []selftest.Result, verbose bool) (rows []attackRow) {
	for len(results) > 0 {
		n := 1
		for n < len(results) && results[n].Name == results[0].Name {
			n++
		}
		kinds := results[:n]
		results = results[n:]
		if n > 1 && (verbose || countFailed(kinds) > 0) {
			for _, r := range kinds {
				rows = append(rows, attackRow{r, fmt.Sprintf("%s (%s)", r.Name, r.Kind)})
			}
			continue
		}
		var names []string
		for _, r := range kinds {
			names = append(names, r.Kind.String())
		}
		name := kinds[0].Name
		if kinds[0].Kind != machine.Native { // most attacks use native modules only
			name += " (" + strings.Join(names, ", ") + ")"
		}
		rows = append(rows, attackRow{kinds[0], name})
	}
	return rows
}

func verdict(r selftest.Result) string {
	if r.Pass {
		return "pass"
	}
	return "FAIL"
}

// attackJSON is an attack in the output of `selftest --json`, a documented contract.
type attackJSON struct {
	Name       string `json:"name"`
	Area       string `json:"area"`
	Kind       string `json:"kind"` // kind of the attacking modules: native, command, plugin
	Tries      string `json:"tries"`
	Result     string `json:"result"`    // pass, fail
	Mechanism  string `json:"mechanism"` // mechanism that stopped the attack; empty if it succeeded
	Detail     string `json:"detail"`
	DurationMS int64  `json:"duration_ms"`
}

func attacksJSON(s *stdio, results []selftest.Result) error {
	out := []attackJSON{}
	for _, r := range results {
		out = append(out, attackJSON{
			Name: r.Name, Area: string(r.Area), Kind: r.Kind.String(), Tries: r.Description, Result: strings.ToLower(verdict(r)),
			Mechanism: r.Mechanism, Detail: r.Detail, DurationMS: r.Duration.Milliseconds(),
		})
	}
	return printJSON(s, out)
}
