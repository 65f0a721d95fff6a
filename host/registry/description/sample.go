package description

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/config/keys"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// maxSampled limits the number of a plugin's functions in a sample; the others are left out.
const maxSampled = 8

// nonTools names exports that are no tools: they initialize a plugin, or compilers add them.
var nonTools = []string{"_start", "_initialize", "hs_init", "hs_exit", "__wasm_call_ctors", "__wasm_call_dtors"}

// Sample returns a description of a module for a person to complete. It holds only facts
// of the module; a person has to write what the module does.
func Sample(mod *tool.Module) (string, error) {
	_, m, abi, err := decodeDescribable(mod)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "name = %s\n", keys.Format(tool.NameOf(mod.Name)))
	switch {
	case abi == tool.ABICommand:
		b.WriteString(`
[tools.run]
description = "Say here what it does: this is what the model knows of it."
# Its arguments, what it reads, its variables. {NAME} is a parameter below.
args = ["{options}"]
stdin = "{input}"
# env = { LANG = "C" }
`)
		b.WriteString(sampleNeeds(m, true))
		b.WriteString(`
[tools.run.parameters.options]
type = "array"
items = { type = "string" }
description = "Its arguments. None begins with '-'; write such ones into args."

[tools.run.parameters.input]
type = "string"
description = "What it reads."
`)
	case abi != tool.ABIExtism:
		b.WriteString("# Its tools are those that it lists itself, if no [tools.NAME] is here.\n" + sampleNeeds(m, false))
	default:
		b.WriteString(config(m))
		functions := toolExports(m)
		if len(functions) == 0 {
			functions = []string{"_start"}
		}
		for _, f := range functions[:min(len(functions), maxSampled)] {
			fmt.Fprintf(&b, `
[tools.%s]
description = "Say here what it does: this is what the model knows of it."
function = %s
input = "{input}"
%s
[tools.%[1]s.parameters.input]
type = "string"
description = "What it reads."
required = true
`, tool.NameOf(f), keys.Format(f), sampleNeeds(m, true))
		}
		if left := len(functions) - maxSampled; left > 0 {
			fmt.Fprintf(&b, "\n# %d more functions are exported.\n", left)
		}
	}
	return b.String(), nil
}

// toolExports returns the names of those functions of a plugin that can be tools.
func toolExports(m *wasm.Module) (out []string) {
	for _, e := range m.Exports {
		sig, ok := m.ExportedFunc(e.Name)
		same := func(o string) bool { return tool.NameOf(o) == tool.NameOf(e.Name) }
		if ok && len(sig.Params) == 0 && slices.Equal(sig.Results, []wasm.ValType{wasm.I32}) &&
			!slices.Contains(nonTools, e.Name) && !strings.HasPrefix(e.Name, "asyncify_") && visibleName(e.Name) && !slices.ContainsFunc(out, same) {
			out = append(out, e.Name)
		}
	}
	return out
}

// visibleName reports whether the name of an export is safe in a file that a person copies.
func visibleName(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// sampleNeeds returns lines of TOML with the access that the module's imports could use. The
// lines are comments: a person chooses among them. ofTool is set if the lines are about one
// tool and not about the module.
func sampleNeeds(m *wasm.Module, ofTool bool) (out string) {
	if hasImport(m, "wasi_snapshot_preview1", "path_open") || hasImport(m, "wasi_unstable", "path_open") {
		out += "# files = \"read\"  # or \"write\": files of the directories that you grant\n"
	}
	if hasImport(m, "extism:host/env", "http_request") {
		out += "# hosts = [\"api.example.org\"]\n"
		out += "# secrets = [\"API_KEY\"]\n"
	}
	if !ofTool {
		out += config(m)
	}
	return out
}

func config(m *wasm.Module) string {
	if !hasImport(m, "extism:host/env", "config_get") {
		return ""
	}
	return "# config = { key = \"value\" }  # what it asks for by name\n"
}

func hasImport(m *wasm.Module, module, name string) bool {
	return slices.ContainsFunc(m.Imports, func(i wasm.Import) bool { return i.Module == module && i.Name == name })
}
