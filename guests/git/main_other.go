//go:build !wasip1

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
)

// Natively there is nobody to call the tool. The program then carries out one call,
// whose arguments come from standard input: it is what make bench-git compares the
// module with.
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
