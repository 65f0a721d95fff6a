package main

import (
	"errors"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/pager"
)

// pagedCommands are the commands whose output goes to the pager if it is long. The help topics
// are not in this list: pageOutput sends them to the pager, too.
var pagedCommands = []string{
	"stockade config", "stockade config trusted", "stockade policy explain", "stockade policy show", "stockade policy simulate", "stockade secret list",
	"stockade session list", "stockade session show", "stockade session stats", "stockade tool info", "stockade tool list", "stockade tool trust list",
}

// pageOutput makes pagedCommands run with a pager for their output.
func (a *app) pageOutput(root *cobra.Command) {
	for _, cmd := range commands(root) {
		run := cmd.RunE
		if run == nil || !slices.Contains(pagedCommands, cmd.CommandPath()) && cmd.Parent().CommandPath() != "stockade help" {
			continue
		}
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			end := a.startPager()
			err := run(cmd, args)
			return errors.Join(err, end())
		}
	}
}

// startPager sends standard output to the pager until the caller calls end, which waits until
// the person has left the pager. Without a terminal on stdout or without less, with --plain or
// ui.plain, or if PAGER turns paging off, it changes nothing.
func (a *app) startPager() (end func() error) {
	less, ok := pager.Find(os.LookupEnv)
	columns, rows, err := term.GetSize(int(os.Stdout.Fd()))
	if !ok || err != nil || rows < 1 || !a.s.outTTY || a.plain() {
		return func() error { return nil }
	}
	screen := a.stdout.w
	p := &pager.Pager{Less: less, Screen: os.Stdout, Rows: rows, Columns: columns, Lookup: os.LookupEnv}
	a.stdout.w = p
	return func() error {
		err := a.s.flushOut()
		a.stdout.w = screen
		return errors.Join(err, p.Close())
	}
}
