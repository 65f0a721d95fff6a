package tool

import (
	"cmp"
	"slices"
)

// ListTools is the name of the tool that lists the tools of a group, and ListModule the name
// of its module. The host answers calls of the tool itself. No tool in a catalog is named
// ListTools, and no added module ListModule.
const (
	ListTools  = "list_tools"
	ListModule = "catalog"
)

// UndoTool is the name of the tool in the log when a person undoes changes; no model sees it.
const UndoTool = "undo"

// Group is the tools of one module that is not built in, or of several with the same name.
type Group struct {
	Name  string   // name of the module
	Tools []*Entry // in the order of the arguments of Groups
}

// Groups separates built-in tools from the others. It groups the others by the names of their
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
