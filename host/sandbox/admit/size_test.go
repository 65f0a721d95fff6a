package admit

import (
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// A module that a person has allowed may exceed other limits as well as that of its size.
func TestLargeModulesMayHaveMore(t *testing.T) {
	for name, c := range map[string]struct {
		bytes, funcs, globals int
		says                  string
	}{
		"as many functions as there may be":    {1 << 20, 50_000, 100, ""},
		"one more":                             {1 << 20, 50_001, 100, "50001 functions, more than the limit of 50000"},
		"too many globals":                     {1 << 20, 50_000, 101, "globals times functions"},
		"clang":                                {30 << 20, 54_322, 646, ""},
		"as many functions in a large one":     {30 << 20, 100_000, 800, ""},
		"one more in a large one":              {30 << 20, 100_001, 100, "100001 functions, more than the limit of 100000"},
		"too many globals in a large one":      {30 << 20, 100_000, 801, "globals times functions"},
		"more globals than any module may use": {30 << 20, 10, 1001, "1001 globals, more than the limit of 1000"},
	} {
		m := &wasm.Module{Raw: make([]byte, c.bytes), NumGlobals: c.globals}
		m.Funcs = append(m.Funcs, make([]uint32, c.funcs)...)
		err := checkSize(m, scaleOf(&tool.Module{Bytes: int64(len(m.Raw))}))
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
