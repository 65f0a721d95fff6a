package main

import (
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/sdk/go/nearest"
)

// nearby returns at most three of the candidates that name may be a mistake
// for, the likeliest first.
func nearby(name string, candidates []string) []string {
	const most, tooLong = 3, 128
	if name == "" || len(name) > tooLong {
		return nil // nobody mistypes that; the comparison is quadratic
	}
	type scored struct {
		name  string
		score int
	}
	var found []scored
	lower := strings.ToLower(name)
	for _, c := range candidates {
		if len(c) > tooLong {
			continue
		}
		other := strings.ToLower(c)
		score := nearest.Distance(lower, other)
		if score > max(1, len(name)/3) {
			// A forgotten or a wrong extension is far away in letters.
			stem, _, _ := strings.Cut(lower, ".")
			otherStem, _, _ := strings.Cut(other, ".")
			if stem == "" || stem != otherStem {
				continue
			}
			score = len(name)
		}
		found = append(found, scored{c, score})
	}
	slices.SortStableFunc(found, func(a, b scored) int { return a.score - b.score })
	var names []string
	for _, s := range found[:min(most, len(found))] {
		names = append(names, s.name)
	}
	return names
}
