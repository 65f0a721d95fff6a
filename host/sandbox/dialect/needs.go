package dialect

import (
	"slices"

	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// Needs is the most that a module could use, by what it imports, where it does not say
// what it needs: whoever can open a file can write to it.
func Needs(m *wasm.Module) (c tool.Capabilities) {
	imports := func(module, name string) bool {
		return slices.ContainsFunc(m.Imports, func(i wasm.Import) bool { return i.Module == module && i.Name == name })
	}
	if imports(preview1.ModuleName, "path_open") {
		c.Files = tool.FilesWrite
	}
	if imports("extism:host/env", "http_request") {
		c.Network = tool.NetworkHTTP
	}
	return c
}
