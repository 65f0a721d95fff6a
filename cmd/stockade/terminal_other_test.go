//go:build !linux

package main

import "github.com/rogpeppe/go-internal/testscript"

func dialogue(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("terminal: needs a Linux pseudo-terminal")
}

func rows(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("rows: needs a Linux pseudo-terminal")
}
