package dialect

import (
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// InferCapabilities returns the capabilities that a module without a description could use,
// according to its imports. A module that can open files could also write to them.
func InferCapabilities(m *wasm.Module) (c tool.Capabilities) {
	for _, i := range m.Imports {
		switch {
		case preview1.Offers(i.Module) && i.Name == "path_open":
			c.Files = tool.FilesWrite
		case i.Module == "extism:host/env" && i.Name == "http_request":
			c.Network = tool.NetworkHTTP
		}
	}
	return c
}
