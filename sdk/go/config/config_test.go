//go:build !wasip1

package config

import (
	"testing"

	"github.com/stockade-dev/stockade/sdk/go/internal/abi"
)

func TestGet(t *testing.T) {
	tests := map[string]struct {
		answer func(r abi.Record, f *abi.Frame)
		want   string
		ok     bool
	}{
		"of a name that is declared": {func(r abi.Record, f *abi.Frame) { r.SetCase(0, 1); r.SetPair(4)(f.Text("brave")) }, "brave", true},
		"an empty value":             {func(r abi.Record, f *abi.Frame) { r.SetCase(0, 1); r.SetPair(4)(f.Text("")) }, "", true},
		"of another name":            {func(abi.Record, *abi.Frame) {}, "", false},
	}
	before := hostGet
	defer func() { hostGet = before }()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			hostGet = func(namePtr, nameLen, ret uint32) {
				if name := string(abi.Take(namePtr, nameLen)); name != "engine" {
					t.Errorf("host got the name %q", name)
				}
				tt.answer(abi.Take(ret, 12), new(abi.Frame))
			}
			if got, ok := Get("engine"); got != tt.want || ok != tt.ok {
				t.Errorf("got %q, %v", got, ok)
			}
			if n := abi.Live(); n != 0 {
				t.Errorf("%d blocks left", n)
			}
		})
	}
}
