package main

import (
	"strings"

	"github.com/stockade-dev/stockade/sdk/go/nearest"
)

// nearby returns a few candidates that a misspelled file name may mean, the nearest first.
func nearby(name string, candidates []string) []string {
	lower := strings.ToLower(name)
	return nearest.Few(name, candidates, func(candidate string) (int, bool) {
		other := strings.ToLower(candidate)
		if far := nearest.Distance(lower, other); far <= max(1, len(name)/3) {
			return far, true
		}
		// A forgotten or a wrong extension makes the distance large.
		stem, _, _ := strings.Cut(lower, ".")
		otherStem, _, _ := strings.Cut(other, ".")
		return len(name), stem != "" && stem == otherStem
	})
}
