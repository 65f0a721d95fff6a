//go:build !wasip1

package form

import (
	"encoding/json"
	"fmt"
	"os"
)

var run func() error

// Offer makes a job the task of the program.
func Offer[In, Out any](_, _ string, job func(In) (Out, error)) {
	run = func() error {
		var in In
		if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
			return err
		}
		out, err := job(in)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(out)
	}
}

// Warm does nothing: every call begins with a new process.
func Warm(func()) {}

// Main runs the job once.
func Main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
