//go:build !wasip1

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
)

// main carries out one call, with its arguments from standard input: natively there is no
// host that calls the tool. make bench-git compares the module with this program.
func main() {
	var in args
	err := json.NewDecoder(os.Stdin).Decode(&in)
	if err == nil {
		var out result
		if out, err = run(context.Background(), in); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "git:", err)
		os.Exit(1)
	}
}
