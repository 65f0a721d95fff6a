package table

import "slices"

// Fit returns how wide columns become that together may take so many terminal
// columns: those that are narrow stay, and the wide ones share what is left. It is
// not ok if one would be narrower than least and than its text.
func Fit(natural []int, least, columns int) (widths []int, ok bool) {
	widths = slices.Clone(natural)
	sum := 0
	for _, w := range natural {
		sum += w
	}
	if sum <= columns {
		return widths, true
	}
	sorted := slices.Sorted(slices.Values(natural))
	left, limit := columns, 0
	for i, w := range sorted {
		if limit = left / (len(sorted) - i); w > limit {
			break
		}
		left -= w
	}
	if limit < least {
		return nil, false
	}
	for i, w := range widths {
		widths[i] = min(w, limit)
	}
	return widths, true
}
