package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
)

// version is the version of this build, from what the Go toolchain recorded.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "stockade (devel)"
	}
	return "stockade " + info.Main.Version
}

// build names this build of the program: its version and, because a developer
// builds many of one, the size and the time of its file.
func build() string {
	name := version()
	if file, err := os.Executable(); err == nil {
		if st, err := os.Stat(file); err == nil {
			name += fmt.Sprintf(" %d %s", st.Size(), st.ModTime().UTC().Format(time.RFC3339Nano))
		}
	}
	return name
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
