package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "stockade (devel)"
	}
	return "stockade " + info.Main.Version
}

func newVersionCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs, Example: "  stockade version",
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.s.out, version())
			return err
		},
	}
}
