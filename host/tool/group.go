package tool

import (
	"cmp"
	"slices"
)

// The names of the tool that lists a group of tools, and of what stands for its
// module. The host answers its calls itself; no module takes either of them.
const (
	ListTools  = "list_tools"
	ListModule = "catalog"
)

// UndoTool is the name under which the log has what a person undoes. No model can call
// it: it is in no catalog.
const UndoTool = "undo"

// Group is the tools of a module that was added, or of several of one name, by
// which it is called.
type Group struct {
	Name  string
	Tools []*Entry // in the order in which they were given
}

// Groups tells the built-in tools from the others, which it groups by their
// modules, in alphabetical order.
func Groups(entries []*Entry) (builtin []*Entry, groups []Group) {
	at := map[string]int{}
	for _, e := range entries {
		if e.Module.Origin == OriginBuiltin {
			builtin = append(builtin, e)
			continue
		}
		i, ok := at[e.Module.Name]
		if !ok {
			i = len(groups)
			at[e.Module.Name], groups = i, append(groups, Group{Name: e.Module.Name})
		}
		groups[i].Tools = append(groups[i].Tools, e)
	}
	slices.SortFunc(groups, func(a, b Group) int { return cmp.Compare(a.Name, b.Name) })
	return builtin, groups
}
