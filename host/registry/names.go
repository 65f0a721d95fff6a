package registry

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/tool"
)

// reserved are names that no added tool may have: the program's tools have them or will have
// them. The names in [Builtin] and the aliases are reserved, too.
var reserved = []string{
	"add_task", "apply_patch", "bash", "file_edit", "file_read", "file_write", "filesystem", "get_current_time",
	"get_working_directory", "git", "glob", "grep", "http_fetch", "insert_lines", "list_tasks", "ls", "replace_lines",
	"request_code_context", "run_js", "sh", "sql_query", "system_info", "update_task", "web_search",
}

// maxNameBytes limits the name of a module in bytes; a longer one is refused. With an
// underscore and a short name of a tool it stays within the 64 characters that every provider
// accepts.
const maxNameBytes = 40

// CheckName returns an error if no module can be offered under a name. The name becomes a
// prefix of the module's tools, as NAME_tool; see RATIONALE, "Why does a stranger's tool
// always carry its module's name?" others are the names of the other modules.
func CheckName(name string, others []string) error {
	switch {
	case !tool.ValidName(name) || len(name) > maxNameBytes:
		return fmt.Errorf("%.80q is not 1 to %d letters, digits, '_' or '-'", name, maxNameBytes)
	case strings.HasPrefix(name, "-"):
		return fmt.Errorf("%q begins with '-', as an option does", name)
	}
	for _, taken := range slices.Concat(reservedNames(), others) {
		switch {
		case name == taken && slices.Contains(others, taken):
			return fmt.Errorf("there is a module %q already", taken)
		case name == taken:
			return fmt.Errorf("%q is the name of a built-in tool", taken)
		case skeleton(name) == skeleton(taken):
			return fmt.Errorf("%q looks like %q", name, taken)
		}
	}
	return checkLookalike(name, "")
}

// checkLookalike returns an error if a name can be mistaken for a version of a built-in tool,
// or for an option. inner is the name of a tool in its module; empty: name is a module's.
func checkLookalike(name, inner string) error {
	if strings.HasPrefix(inner, "-") {
		return fmt.Errorf("%q begins with '-', as an option does", inner)
	}
	for _, p := range simpleForms(name) {
		if taken := builtinForms()[p]; taken != "" {
			return fmt.Errorf("%q looks like %q, a built-in tool", name, taken)
		}
	}
	return nil
}

// builtinForms maps the [simpleForms] of the names of built-in tools to these names.
var builtinForms = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	builtin, err := Builtin()
	if err != nil {
		return out
	}
	for _, name := range slices.Concat(reserved, tool.Aliases(), builtin.Names()) {
		for _, p := range simpleForms(name) {
			out[p] = name
		}
	}
	return out
})

func reservedNames() []string {
	names := slices.Concat(reserved, tool.Aliases(), []string{tool.ListModule, tool.ListTools})
	if builtin, err := Builtin(); err == nil {
		names = append(names, builtin.Names()...)
		for _, e := range builtin.Entries() { // --tools takes the names of modules, too
			names = append(names, e.Module.Name)
		}
	}
	return names
}

// skeleton returns the same text for names that a person confuses: they differ only in case,
// hyphens, the number of underscores, or letters of a similar shape. A name is ASCII, so there
// are no other lookalikes. Letters are replaced first: a pair that looks like one letter can
// be made of digits.
func skeleton(name string) string {
	name = pairs.Replace(letters.Replace(strings.ToLower(name)))
	return strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r == '_' }), "_")
}

// simpleForms returns simplified forms of a name, for comparing names: its skeleton without
// separators, doubled letters and the s of a plural, each with and without version numbers at
// its start and at its end. A digit of a version can also stand for a letter.
func simpleForms(name string) (out []string) {
	name = strings.ToLower(name)
	for _, name := range []string{name, versionBefore.ReplaceAllString(name, "")} {
		for _, name := range []string{name, versionAfter.ReplaceAllString(name, "")} {
			name = string(slices.Compact([]byte(strings.ReplaceAll(skeleton(name), "_", ""))))
			if len(name) > len("sh")+1 { // "sh" and the like stay whole
				name = strings.TrimSuffix(name, "s")
			}
			out = append(out, name)
		}
	}
	return out
}

var (
	letters = strings.NewReplacer("-", "_", "0", "o", "1", "l", "i", "l", "5", "s", "2", "z", "8", "b")
	pairs   = strings.NewReplacer("rn", "m", "vv", "w", "cl", "d")

	// A version is a number, with or without a v or r before it, or one of
	// these letters alone.
	versionBefore = regexp.MustCompile(`^(?:[_-]|[vr]?[0-9]|[vr][_-])+`)
	versionAfter  = regexp.MustCompile(`(?:[_-]|[vr]?[0-9]|[_-][vr])+$`)
)
