package main

import (
	"slices"
	"strings"
)

// nearest returns at most three of the candidates that name may be a mistake
// for, the likeliest first.
func nearest(name string, candidates []string) []string {
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
		score := distance(lower, other)
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

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
