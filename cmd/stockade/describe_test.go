package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/registry/description"
)

// TestDescriptionsInTheHelpAreOnes: what a reader copies is taken.
func TestDescriptionsInTheHelpAreOnes(t *testing.T) {
	page, err := os.ReadFile("help/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, block := range strings.Split(string(page), "\n\n") {
		if !strings.HasPrefix(block, "    name = ") {
			continue
		}
		found++
		if _, err := description.Parse("plugins.md", []byte(strings.ReplaceAll(block, "\n    ", "\n"))); err != nil {
			t.Errorf("%v\n%s", err, block)
		}
	}
	if found != 3 {
		t.Errorf("%d descriptions were found, want 3", found)
	}
}
