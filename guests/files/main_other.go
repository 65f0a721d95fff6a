//go:build !wasip1

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
)

// main runs grep once, with arguments from standard input. A native program has no host that
// calls its tools; make bench-grep compares this program with the module.
func main() {
	var in grepArgs
	err := json.NewDecoder(os.Stdin).Decode(&in)
	if err == nil {
		var out grepResult
		if out, err = grep(context.Background(), in); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "grep:", err)
		os.Exit(1)
	}
}
