// Package nearest finds the known word that a mistyped one most likely meant.
package nearest

import (
	"fmt"
	"slices"
)

// maxWordLen limits the length of words that are compared, in bytes. A longer word is near to
// none: nobody mistypes such words, and the comparison takes quadratic time.
const maxWordLen = 128

// Find returns the candidate with the smallest edit distance to word, or "" if none is close:
// at most a third of the word's length, but two in a short word, and one in a word of up to
// three letters.
func Find(word string, candidates []string) string {
	limit := max(2, len(word)/3)
	if len(word) < 4 {
		limit = 1
	}
	best, bestDistance := "", limit+1
	if len(word) > maxWordLen {
		return ""
	}
	for _, c := range candidates {
		if d := Distance(word, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// Hint returns ` (did you mean "x"?)`, or "" when no candidate is close.
func Hint(word string, candidates []string) string {
	if near := Find(word, candidates); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// Few returns at most three of the candidates that word may be a mistake for, the nearest
// first. distance returns the distance of a candidate, and whether it is near.
func Few(word string, candidates []string, distance func(candidate string) (far int, near bool)) []string {
	const limit = 3
	if word == "" || len(word) > maxWordLen {
		return nil
	}
	type scored struct {
		name string
		far  int
	}
	var found []scored
	for _, c := range candidates {
		if len(c) > maxWordLen {
			continue
		}
		if far, near := distance(c); near {
			found = append(found, scored{c, far})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return a.far - b.far })
	var names []string
	for _, s := range found[:min(limit, len(found))] {
		names = append(names, s.name)
	}
	return names
}

// Distance returns the Levenshtein distance in bytes.
func Distance(a, b string) int {
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
