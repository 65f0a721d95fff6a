package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// pflag takes what stands between back-quotes in a usage for the name of the
// flag's type.
func TestNoFlagHasASentenceForAType(t *testing.T) {
	root := newRootCmd(&app{s: &stdio{}})
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
