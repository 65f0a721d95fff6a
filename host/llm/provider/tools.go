package provider

import (
	"bytes"
	"slices"
	"sync"

	"github.com/stockade-dev/stockade/host/tool"
)

// LastTools caches the wire form of the tools of the latest request with tools: mostly the next
// request has the same. The zero value is ready.
type LastTools struct {
	mu    sync.Mutex // guards the fields below
	tools []tool.Definition
	wire  []byte
}

// Wire returns what encode returns for tools; nil without tools.
func (l *LastTools) Wire(tools []tool.Definition, encode func([]tool.Definition) []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(tools) == 0 {
		return nil
	}
	if !SameTools(l.tools, tools) {
		l.tools, l.wire = CloneTools(tools), encode(tools)
	}
	return l.wire
}

// SameTools reports whether two requests have the same tools.
func SameTools(a, b []tool.Definition) bool {
	return slices.EqualFunc(a, b, func(a, b tool.Definition) bool {
		return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Parameters, b.Parameters)
	})
}

// CloneTools returns tools that the caller of a request cannot change any more.
func CloneTools(tools []tool.Definition) []tool.Definition {
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i].Parameters = bytes.Clone(tools[i].Parameters)
	}
	return tools
}
