// Command large is the job of a tool with a large image: it runs a script in a JavaScript
// interpreter that it contains. The interpreter's state after its first use is made in
// advance if the form allows it, with a script of its own.
package main

import (
	"github.com/dop251/goja"

	"github.com/stockade-dev/stockade/host/internal/peers/workloads/call/form"
)

type arguments struct {
	Script string `json:"script" desc:"What to run."`
	N      int    `json:"n" desc:"What the script knows as n."`
}

type result struct {
	Value string `json:"value"`
}

func init() {
	form.Offer("large", "Runs a script.", run)
	form.Warm(func() { _, _ = run(arguments{Script: sample, N: 1}) })
}

// sample is a script of the expected kind.
const sample = `(function () {
	var seen = {};
	for (var i = 0; i < n; i++) { seen["k" + i] = (seen["k" + i] || 0) + 1; }
	return JSON.stringify(seen);
})()`

func main() { form.Main() }

// run keeps nothing from one call to the next, in any form.
func run(args arguments) (result, error) {
	vm := goja.New()
	if err := vm.Set("n", args.N); err != nil {
		return result{}, err
	}
	v, err := vm.RunString(args.Script)
	if err != nil {
		return result{}, err
	}
	return result{v.String()}, nil
}
