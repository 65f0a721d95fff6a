package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// pflag takes what stands between back-quotes in a usage for the name of the
// flag's type.
func TestNoFlagHasASentenceForAType(t *testing.T) {
	root := newRootCmd(&app{s: &stdio{}}, "")
	for _, cmd := range append(commands(root), root) {
		check := func(f *pflag.Flag) {
			if name, _ := pflag.UnquoteUsage(f); strings.ContainsAny(name, " \t\n") {
				t.Errorf("%s: --%s has the type %q", cmd.CommandPath(), f.Name, name)
			}
		}
		cmd.LocalFlags().VisitAll(check)
		cmd.InheritedFlags().VisitAll(check)
	}
}

// TestACommandThatIsMadeAlone: a standalone command is the same as among all commands.
func TestACommandThatIsMadeAlone(t *testing.T) {
	all := newRootCmd(&app{s: &stdio{}}, "")
	for name := range standalone {
		root := newRootCmd(&app{s: &stdio{}}, name)
		got, _, err := root.Find([]string{name})
		if err != nil || got == root || len(root.Commands()) != 1 {
			t.Fatalf("%s: %v, and %d commands", name, err, len(root.Commands()))
		}
		want, _, err := all.Find([]string{name})
		if err != nil || want.UsageString() != got.UsageString() || got.HasSubCommands() {
			t.Errorf("%s: %v; among others it is\n%s\nand alone\n%s", name, err, want.UsageString(), got.UsageString())
		}
	}
	for _, c := range []struct {
		args, want string
	}{
		{"run hello", "run"}, {"-C dir -q run hello", "run"}, {"--plain --directory dir call ls", "call"}, {"version", "version"}, {"chat", "chat"},
		{"", ""}, {"-C run", ""}, {"--help run", ""}, {"run --help", ""}, {"run -qh", ""}, {"help run", ""}, {"rnu run", ""}, {"tool run", ""},
		{"--model m run hello", ""}, {"__complete run", ""}, {"session resume", ""},
	} {
		if got := standaloneCommand(strings.Fields(c.args)); got != c.want {
			t.Errorf("%q: %q is made alone, want %q", c.args, got, c.want)
		}
	}
}
