package table

import "slices"

// Fit returns widths of columns that together take at most columns terminal columns: narrow
// columns keep their natural width, and wide ones share the rest. ok is false if a column
// would become narrower than both least and its natural width.
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
