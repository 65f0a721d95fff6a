package dispatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/tool"
)

// maxUngrouped is the number of tools above which tools are offered to the model in groups:
// see RATIONALE, "Why does the model see groups of tools above 40?".
const maxUngrouped = 40

// Limits for the description of list_tools, which is part of every request, and for its
// result, which stays in the conversation.
const (
	maxGroups          = 100      // groups that are named; further ones are counted
	maxDescribedGroups = 40       // groups with a description; further ones have only a name
	maxGroupText       = 100      // bytes of the description of one group, which is cut
	maxListedText      = 200      // bytes of the description of one tool in a result, which is cut
	maxListedSchema    = 2 << 10  // bytes of the schema of one tool in a result; a longer one is left out
	maxListedBytes     = 24 << 10 // bytes of all these texts in a result; further ones are left out
)

// listModule stands for the module of list_tools, a tool that has no guest. The host
// recognizes it by its address, which no module from a catalog can have.
var listModule = &tool.Module{
	Name: tool.ListModule, Origin: tool.OriginBuiltin,
	Read: func() ([]byte, error) { return nil, errors.New("the host answers these calls itself") },
}

// offer holds the tools that are offered to the model, without those that the policy hides.
type offer struct {
	plain  []*tool.Entry // built-in tools; without groups, all tools
	groups []tool.Group  // empty: all tools are in plain
	list   *tool.Entry   // list_tools; nil: there are no groups
}

func (d *Dispatcher) offer() offer {
	hidden := func(e *tool.Entry) bool { return d.opts.Policy.Hides(e, tool.CallerAgent) }
	all := slices.DeleteFunc(d.catalog.Load().Entries(), hidden)
	builtin, groups := tool.Groups(all)
	if len(all) > maxUngrouped && len(groups) > 0 {
		// Groups need a list_tools that is offered: the model learns from it what they hold.
		if list := listEntry(groups); !hidden(list) {
			return offer{builtin, groups, list}
		}
	}
	return offer{plain: all}
}

// group returns the tools of one group; nil: there is no such group.
func (o offer) group(name string) []*tool.Entry {
	i := slices.IndexFunc(o.groups, func(g tool.Group) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	return o.groups[i].Tools
}

// toolsWith returns the tools that are offered while these groups are open.
func (o offer) toolsWith(openGroups []string) []*tool.Entry {
	out := slices.Clone(o.plain)
	if o.list != nil {
		out = append(out, o.list)
	}
	for _, name := range openGroups {
		out = append(out, o.group(name)...)
	}
	return out
}

// listEntry returns the tool list_tools for these groups.
func listEntry(groups []tool.Group) *tool.Entry {
	var about strings.Builder
	about.WriteString("Most tools stand in groups. This lists the tools of one group; from your next reply on they are offered like the others. The groups, with what some of their tools do:")
	var names []string
	for i, g := range groups[:min(len(groups), maxGroups)] {
		names = append(names, g.Name)
		if i < maxDescribedGroups {
			fmt.Fprintf(&about, "\n- %s (%d): %s", g.Name, len(g.Tools), groupText(g))
		}
	}
	if more := len(names) - maxDescribedGroups; more > 0 {
		fmt.Fprintf(&about, "\nand %d that have only a name here.", more)
	}
	if more := len(groups) - len(names); more > 0 {
		fmt.Fprintf(&about, "\n%d more groups are left out; the user can name the ones to offer.", more)
	}
	return tool.NewEntry(tool.Spec{Definition: tool.Definition{
		Name: tool.ListTools, Description: about.String(),
		Parameters: tool.Marshal(map[string]any{
			"type": "object", "properties": map[string]any{"group": map[string]any{"type": "string", "enum": names}},
			"required": []string{"group"}, "additionalProperties": false,
		}),
	}}, listModule, "")
}

// groupText returns the first sentence of the description of each tool of a group, in one line
// that is cut to maxGroupText bytes.
func groupText(g tool.Group) string {
	var text string
	for _, e := range g.Tools {
		sentence, _, _ := strings.Cut(oneLine(e.Description, maxGroupText+1), ". ")
		text = strings.TrimSpace(text + " " + strings.TrimSuffix(sentence, ".") + ".")
		if len(text) > maxGroupText {
			break
		}
	}
	return oneLine(text, maxGroupText)
}

// oneLine returns text without line breaks, cut to maxBytes bytes: with line breaks the text
// of one module could look like another entry of the list.
func oneLine(text string, maxBytes int) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxBytes-len("…")], "") + "…"
}

// openGroups holds the open tool groups, whose tools are offered to the model, in the order of
// opening: the list of offered tools then grows only at its end, and a provider that caches
// the beginning of a request finds it unchanged.
type openGroups struct {
	mu    sync.Mutex
	names []string // nil: none is open
}

func (o *openGroups) list() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.names)
}

// openGroup opens the group with a name. It closes the groups that were opened first until the
// offered tools fit into a request, or only the new one is open, and returns their names. Empty,
// or open already: no change.
func (d *Dispatcher) openGroup(group string) (closed []string) {
	d.openGroups.mu.Lock()
	defer d.openGroups.mu.Unlock()
	o := &d.openGroups
	if group == "" || slices.Contains(o.names, group) {
		return nil
	}
	o.names = append(o.names, group)
	for offer := d.offer(); len(o.names) > 1 && len(offer.toolsWith(o.names)) > llm.MaxTools; o.names = o.names[1:] {
		closed = append(closed, o.names[0])
	}
	return closed
}

// openGroupOf opens the group of a tool; a built-in tool has none.
func (d *Dispatcher) openGroupOf(entry *tool.Entry) {
	if entry.Module.Origin != tool.OriginBuiltin {
		d.openGroup(entry.Module.Name)
	}
}

// Definitions returns the tools that are offered to the model: the first [llm.MaxTools] of
// them. Tools that the policy hides are left out. If more than 40 remain, and list_tools is
// not hidden, only the built-in tools, list_tools and the tools of open groups are offered.
// The model opens a group by a call of list_tools or of one of its tools, which can be called
// by name at any time.
func (d *Dispatcher) Definitions() []tool.Definition {
	entries := d.offer().toolsWith(d.openGroups.list())
	defs := make([]tool.Definition, min(len(entries), llm.MaxTools))
	for i := range defs {
		defs[i] = entries[i].Definition
	}
	return defs
}

// listedTool is one tool in the result of list_tools.
type listedTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // schema of its arguments; absent if it does not fit
}

// callListTools answers a call of list_tools, and opens the group that the call names.
func (d *Dispatcher) callListTools(call tool.Call) tool.Result {
	offer, name := d.offer(), groupIn(call.Args)
	group := offer.group(name)
	if len(group) == 0 { // the group is gone since the call was checked
		return tool.Failed(tool.CodeFailed, tool.NotFound, "%s: there is no group %.80q", tool.ListTools, name)
	}
	tools, left := make([]listedTool, len(group)), maxListedBytes
	for i, e := range group {
		tools[i].Name = e.Name
		if text := oneLine(e.Description, maxListedText); len(text) <= left {
			tools[i].Description = text
			left -= len(text)
		}
		if n := len(e.Parameters); n <= maxListedSchema && n <= left {
			tools[i].Parameters = e.Parameters
			left -= n
		}
	}
	result := tool.Result{Output: tool.Marshal(struct {
		Group string       `json:"group"`
		Tools []listedTool `json:"tools"`
	}{name, tools})}
	var notes []string
	if closed := d.openGroup(name); closed != nil {
		notes = append(notes, "to make room, these groups are not offered any more: "+strings.Join(closed, ", "))
	}
	if room := llm.MaxTools - len(offer.toolsWith(nil)); len(group) > room {
		notes = append(notes, fmt.Sprintf("of the %d tools of this group only the first %d are offered; the others can be called by their names all the same", len(group), max(0, room)))
	}
	result.Note = strings.Join(notes, "\n")
	return result
}

// groupIn returns the name of the group in the arguments of a call of list_tools; empty: none.
func groupIn(args json.RawMessage) string {
	var a struct {
		Group string `json:"group"`
	}
	if json.Unmarshal(args, &a) != nil {
		return ""
	}
	return a.Group
}
