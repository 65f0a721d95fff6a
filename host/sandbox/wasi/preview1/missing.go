package preview1

import (
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

// MissingFunction is a function that a guest imports from this module although WASI has no
// function with this name or this type: sockets of other runtimes, for example. It always
// returns ENOTSUP.
type MissingFunction struct {
	Name    string
	Params  []api.ValueType
	Results []api.ValueType // must be one error number
}

// Check returns an error unless the parameters are numbers and the results one error number.
func (m MissingFunction) Check() error {
	numbers := []api.ValueType{i32, i64, api.ValueTypeF32, api.ValueTypeF64}
	if slices.ContainsFunc(m.Params, func(t api.ValueType) bool { return !slices.Contains(numbers, t) }) {
		return fmt.Errorf("it imports %.200q, which WASI preview 1 does not have, with arguments that are not numbers", m.Name)
	}
	if !slices.Equal(m.Results, []api.ValueType{i32}) {
		return fmt.Errorf("it imports %.200q, which WASI preview 1 does not have and which returns no error number", m.Name)
	}
	return nil
}

func (m MissingFunction) function() function {
	return function{m.Name, m.Params, func(guest) wasi.Errno { return wasi.ENOTSUP }}
}
