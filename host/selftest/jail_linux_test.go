package selftest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/diff"
	"github.com/stockade-dev/stockade/host/jail/probe"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// openJail is a target in whose jail every probe ends in the same way. Package jail has
// its own proofs, with real jails that lack a wall.
type openJail struct {
	Target
	outcome probe.Outcome
	done    string // changes seen outside
}

func (j openJail) probes(context.Context) (probes, error) {
	p := probes{results: map[string]probe.Result{}, done: map[string]string{}, tier: policy.MaxTier}
	for _, name := range probe.Attacks() {
		p.results[name] = probe.Result{Probe: name, Outcome: j.outcome, Why: "no way"}
		p.done[name] = j.done
	}
	for _, name := range probe.Work() {
		p.results[name] = probe.Result{Probe: name, Outcome: probe.Succeeded}
	}
	return p, nil
}

func jailProofs() []proof {
	var all []string
	for _, a := range jailAttacks() {
		all = append(all, a.Name)
	}
	var staged []string
	for _, a := range stagingAttacks() {
		if a.Name != "staged-open-files" { // this process may have few itself
			staged = append(staged, a.Name)
		}
	}
	manyFiles := func(ctx context.Context, g Guest) Outcome {
		if strings.Contains(g.Command, "ulimit") {
			g.Command = "echo 81920 >held"
		}
		return runPlainly(ctx, g)
	}
	open := func(name string) bool { return name == "command-memfd-exec" }
	return []proof{
		{name: "what a command does is seen outside", target: same(openJail{outcome: probe.Blocked, done: "a file was made"}), attacks: strings.Join(all, " ")},
		{name: "nothing is staged", target: same(targetFunc(runPlainly)), attacks: strings.Join(staged, " ")},
		{name: "nobody counts open files", target: same(targetFunc(manyFiles)), attacks: "staged-open-files"},
		{name: "a command can do everything", target: same(openJail{outcome: probe.Succeeded}), attacks: strings.Join(slices.DeleteFunc(all, open), " ")},
	}
}

// runPlainly runs a command, and then asks.
func runPlainly(ctx context.Context, g Guest) Outcome {
	cmd := exec.CommandContext(ctx, "bash", "-c", g.Command)
	cmd.Dir, cmd.Env = g.Cwd, append(os.Environ(), "HOME="+filepath.Join(filepath.Dir(g.Cwd), "home"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return Outcome{Err: fmt.Errorf("%w: %s", err, out)}
	}
	g.Answer(policy.Question{Changes: diff.New(ctx, []tool.Change{{Path: filepath.Join(g.Cwd, "made"), Kind: tool.Created}}, g.Cwd, nil)})
	return Outcome{Result: tool.Result{Output: tool.Text(string(out))}}
}

// TestWhatATierLeavesOpen: the list is the same as in the tests of package jail.
func TestWhatATierLeavesOpen(t *testing.T) {
	for tier, want := range map[policy.Tier]int{1: 7, 2: 6, 3: 1} {
		open := slices.DeleteFunc(probe.Attacks(), func(name string) bool { return !isHarmless(name, tier) })
		if len(open) != want {
			t.Errorf("%s leaves %q open", tier, open)
		}
	}
}

// TestACommandThatCannotEvenWorkIsAFailure: nothing can be learned from it.
func TestACommandThatCannotEvenWorkIsAFailure(t *testing.T) {
	for name, target := range map[string]Target{
		"no jail":     &Sandbox{},
		"no commands": obligingTarget,
		"no work":     noWork{},
	} {
		if r := one(t, target, jailAttacks()[0], DefaultPatience); r.Pass || !strings.Contains(r.Detail, "could not be tried") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

type noWork struct{ openJail }

func (noWork) probes(ctx context.Context) (probes, error) {
	p, err := openJail{outcome: probe.Blocked}.probes(ctx)
	p.results["write a file"] = probe.Result{Outcome: probe.Blocked, Why: "no way"}
	return p, err
}
