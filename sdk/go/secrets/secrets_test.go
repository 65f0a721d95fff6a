//go:build !wasip1

package secrets

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stockade-dev/stockade/sdk/go/internal/abi"
)

func TestPlaceholder(t *testing.T) {
	tests := map[string]struct {
		answer func(r abi.Record, f *abi.Frame)
		want   string
		err    error
		text   string
	}{
		"granted": {func(r abi.Record, f *abi.Frame) { r.SetPair(4)(f.Text("{{x}}")) }, "{{x}}", nil, ""},
		"denied": {func(r abi.Record, f *abi.Frame) { r.SetCase(0, 1); r.SetPair(8)(f.Text("no")) },
			"", ErrDenied, "secret denied: no"},
		"missing": {func(r abi.Record, f *abi.Frame) { r.SetCase(0, 1); r.SetCase(4, 1) },
			"", ErrMissing, `secret is not set: "token"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			hostPlaceholder = func(namePtr, nameLen, ret uint32) {
				if name := string(abi.Take(namePtr, nameLen)); name != "token" {
					t.Errorf("host got the name %q", name)
				}
				tt.answer(abi.Take(ret, 16), new(abi.Frame))
			}
			got, err := Placeholder("token")
			if got != tt.want || !errors.Is(err, tt.err) || err != nil && err.Error() != tt.text {
				t.Errorf("got %q, %v", got, err)
			}
			if n := abi.Live(); n != 0 {
				t.Errorf("%d blocks left", n)
			}
		})
	}
	if !errors.Is(ErrDenied, fs.ErrPermission) {
		t.Error("a denial is not fs.ErrPermission")
	}
}
