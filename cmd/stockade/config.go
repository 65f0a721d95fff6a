package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/table"
	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/policy"
)

func newConfigCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Show the settings in force and where each comes from", Args: cobra.ArbitraryArgs,
		Long: `Show every setting with its value, and where it comes from: the default, your
agent.toml, the workspace's, or the environment. Keys of the workspace's file
that wait until you trust it are listed too. --defaults prints an agent.toml with
every key, its meaning and its default. See ` + "`stockade help config`" + `.`,
		Example: "  stockade config\n  mkdir -p ~/.config/stockade && stockade config --defaults > ~/.config/stockade/agent.toml",
	}
	defaults := cmd.Flags().Bool("defaults", false, "print an agent.toml with every key and its default")
	cmd.AddCommand(newTrustCmds(a)...)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		if *defaults {
			_, err := fmt.Fprint(a.s.out, config.Annotated())
			return err
		}
		return runConfig(a)
	}
	return cmd
}

func runConfig(a *app) error {
	w := table.New(table.Fixed("KEY"), table.Text("VALUE"), table.Text("FROM"))
	for _, key := range a.Config.Keys() {
		from := a.Config.Source(key)
		for _, wait := range a.UntrustedWarnings {
			if wait.Key == key {
				from += fmt.Sprintf(" (%s:%d waits for trust)", wait.Path, wait.Line)
			}
		}
		if key == "network.ca_files" {
			for _, file := range policy.RouteOf(a.Layers).CAFiles {
				from += fmt.Sprintf(" (and %q of %s)", file.Value, file.From)
			}
		}
		w.Row(key, a.Config.Value(key), from)
	}
	return a.s.table(w)
}
