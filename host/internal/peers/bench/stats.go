package bench

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Number is what is measured.
type Number interface{ float64 | time.Duration }

// Median is the middle of the values, or between the two that are.
func Median[T Number](values []T) T {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// Quantile is the value that this part of the others is below of.
func Quantile[T cmp.Ordered](values []T, part float64) T {
	v := slices.Sorted(slices.Values(values))
	return v[int(part*float64(len(v)-1))]
}

// Geomean is the mean of ratios.
func Geomean(values []float64) float64 {
	var logs float64
	for _, v := range values {
		logs += math.Log(v)
	}
	return math.Exp(logs / float64(len(values)))
}

// MS is a time in milliseconds.
func MS(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// PairedRatio is the median of the ratios of times that were taken in turn.
func PairedRatio(times, of []time.Duration) float64 {
	var all []float64
	for i, t := range of {
		all = append(all, float64(times[i])/float64(t))
	}
	return Round(Median(all))
}
