package bench

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Number is a type of measurements.
type Number interface{ float64 | time.Duration }

// Median returns the middle of the values, or the mean of the two in the middle.
func Median[T Number](values []T) T {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// Quantile returns the value below which part of the values lie; part is between 0 and 1.
func Quantile[T cmp.Ordered](values []T, part float64) T {
	v := slices.Sorted(slices.Values(values))
	return v[int(part*float64(len(v)-1))]
}

// Geomean returns the geometric mean.
func Geomean(values []float64) float64 {
	var logs float64
	for _, v := range values {
		logs += math.Log(v)
	}
	return math.Exp(logs / float64(len(values)))
}

// MS returns a duration in milliseconds.
func MS(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// PairedRatio returns the median of the ratios of times taken in turn.
func PairedRatio(times, of []time.Duration) float64 {
	var all []float64
	for i, t := range of {
		all = append(all, float64(times[i])/float64(t))
	}
	return Round(Median(all))
}
