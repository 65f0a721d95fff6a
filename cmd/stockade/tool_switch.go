package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/tool"
)

func newToolRemoveCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME...", Short: "Remove modules, with what you have allowed them",
		Example: "  stockade tool remove weather",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return runToolRemove(a, args) },
	}
}

func runToolRemove(a *app, names []string) error {
	s := a.moduleStore()
	err := s.Change(nil, func(records []store.Record) ([]store.Record, error) {
		for _, name := range names {
			i, inner, err := registry.Find(records, name, a.project())
			switch {
			case err != nil:
				return nil, usageError("`stockade tool list` shows what was added", "%v", err)
			case inner != "":
				return nil, usageError("stockade tool disable "+name+" switches one tool off", "%s is one tool of a module, which is removed as a whole", name)
			case records[i].System:
				return nil, usageError("stockade tool disable "+name+" switches it off for you", "%s is the administrator's", name)
			}
			records = slices.Delete(records, i, i+1)
		}
		return records, nil
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		fmt.Fprintf(a.s.out, "removed %s\n", terminal.Line(name))
	}
	return s.Sweep()
}

func newToolSwitchCmds(a *app) []*cobra.Command {
	run := func(names []string, on bool) error {
		err := a.moduleStore().Change(nil, func(records []store.Record) ([]store.Record, error) {
			for _, name := range names {
				i, inner, err := registry.Find(records, name, a.project())
				if err != nil {
					return nil, notAddedError(name, on, err)
				}
				r := &records[i]
				switch {
				case on && inner == "" && r.OffReason != "" && r.OffReason != store.OffByPerson:
					return nil, usageError("", "%s cannot be switched on like this: %s", name, r.OffReason)
				case inner == "" && on:
					r.OffReason, r.OffTools = "", nil
				case inner == "" && r.OffReason == "":
					r.OffReason = store.OffByPerson
				case inner != "" && on:
					r.OffTools = slices.DeleteFunc(r.OffTools, func(t string) bool { return t == inner })
				case inner != "" && !slices.Contains(r.OffTools, inner):
					r.OffTools = append(r.OffTools, inner)
				}
			}
			return records, nil
		})
		if err != nil {
			return err
		}
		if on {
			return a.reportSwitchedOn(names)
		}
		for _, name := range names {
			fmt.Fprintf(a.s.out, "%s is switched off\n", terminal.Line(name))
		}
		return nil
	}
	var out []*cobra.Command
	for _, c := range []struct {
		use, short string
		on         bool
	}{
		{"enable", "Offer a module, or one of its tools, again", true},
		{"disable", "Stop offering a module, or one of its tools", false},
	} {
		out = append(out, &cobra.Command{
			Use: c.use + " NAME[:TOOL]...", Short: c.short,
			Example: fmt.Sprintf("  stockade tool %s weather\n  stockade tool %s weather:week", c.use, c.use),
			Args:    cobra.MinimumNArgs(1),
			RunE:    func(_ *cobra.Command, args []string) error { return run(args, c.on) },
		})
	}
	return out
}

// notAddedError returns the error for a name that no added module has. For a built-in tool or
// module, its hint shows how to switch it on (if on is set) or off.
func notAddedError(name string, on bool, err error) error {
	builtin, noBuiltin := registry.Builtin()
	if noBuiltin != nil || !slices.ContainsFunc(builtin.Entries(), func(e *tool.Entry) bool { return name == e.Name || name == e.Module.Name }) {
		return usageError("`stockade tool list` shows the tools and the modules", "%v", err)
	}
	if on {
		return usageError(fmt.Sprintf("take %q out of %s in your agent.toml, if it is there; `stockade tool list` says what keeps a tool off", name, policy.OffKey),
			"%s is built in, and no module that was added", name)
	}
	return usageError(fmt.Sprintf("%s = [%q] in your agent.toml switches it off: see `stockade help tools`", policy.OffKey, name), "%s is built in, and no module that was added", name)
}

// reportSwitchedOn prints those modules and tools that are offered after a person has switched
// them on. For the first of the others, it returns an error with the reason.
func (a *app) reportSwitchedOn(names []string) (err error) {
	project := a.project()
	system, _ := registry.SystemFiles(systemTools().Path)
	modules, err := a.addedModules(project, system)
	if err != nil {
		return err
	}
	h := availableTools{added: registry.ResolveNames(modules)}
	for _, name := range names {
		module, inner, _ := strings.Cut(name, ":")
		m, _ := h.module(module)
		why, hint := m.OffReason(), fmt.Sprintf("`stockade tool update %s` looks for another version; `stockade tool verify` and `stockade tool trust list` say more", module)
		switch {
		case why == store.OffByPerson:
			why, hint = "the whole module is switched off", "stockade tool enable "+module
		case strings.Contains(why, "`stockade "):
			hint = ""
		}
		for _, t := range m.Tools {
			switch {
			case why != "" || t.OffReason == "" || t.OffReason == store.OffByPerson:
			case inner == "":
				a.s.note("%s is switched off: %s", t.Name, t.OffReason)
			case t.NameInModule == strings.TrimPrefix(inner, module+"_"):
				why, hint = t.OffReason, "only one tool can have a name: switch the other one off with `stockade tool disable`, or add this module under another name with --as"
			}
		}
		if why == "" {
			fmt.Fprintf(a.s.out, "%s is switched on\n", terminal.Line(name))
		} else if err == nil {
			err = usageError(hint, "%s is not offered: %s", name, why)
		}
	}
	return err
}
