package main

import (
	"fmt"

	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
)

// depthLimit limits the stack of a guest's calls, in the unit of package fuel.
const depthLimit = 100_000

// instrument rewrites a module so that it counts its fuel, and the depth of its calls if
// depth is not zero.
func instrument(code []byte, depth int64) ([]byte, error) {
	m, err := wasm.Decode(code)
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return fuel.Rewrite(m, fuel.Options{MaxDepth: depth})
}
