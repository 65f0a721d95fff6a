package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestTimes(t *testing.T) {
	for name, c := range map[string]struct {
		ms              []int64
		median, slowest time.Duration
	}{
		"none":                         {nil, 0, 0},
		"one":                          {[]int64{12}, 12 * time.Millisecond, 12 * time.Millisecond},
		"an even number has the lower": {[]int64{10, 20}, 10 * time.Millisecond, 20 * time.Millisecond},
		"small ones are exact":         {[]int64{63, 1, 62, 63, 62}, 62 * time.Millisecond, 63 * time.Millisecond},
		"no median is above all":       {[]int64{1000}, time.Second, time.Second},
		"out of reason":                {[]int64{-5, math.MaxInt64, math.MaxInt64}, maxMS * time.Millisecond, maxMS * time.Millisecond},
	} {
		var times Histogram
		for _, ms := range c.ms {
			times.add(ms)
		}
		near := func(a, b time.Duration) bool { return math.Abs(float64(a-b)) <= float64(b)/64 }
		if !near(times.Median(), c.median) || times.Slowest() != c.slowest || times.Number() != uint64(len(c.ms)) {
			t.Errorf("%s: median %v, slowest %v, %d", name, times.Median(), times.Slowest(), times.Number())
		}
	}
}

// TestTheMedianIsNear checks that the median is off by at most 1/64 for any durations, in
// limited memory.
func TestTheMedianIsNear(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var times Histogram
		var all []int64
		scale := math.Pow(10, rnd.Float64()*9)
		for range 1 + rnd.IntN(500) {
			ms := int64(rnd.ExpFloat64() * scale)
			all = append(all, ms)
			times.add(ms)
		}
		slices.Sort(all)
		want, got := float64(all[(len(all)-1)/2]), float64(times.Median().Milliseconds())
		if math.Abs(got-want) > want/64 {
			t.Fatalf("of %d times about %.0f the median is %.0f, want %.0f", len(all), scale, got, want)
		}
		if len(times.buckets) > 1200 {
			t.Fatalf("%d classes", len(times.buckets))
		}
	}
}

func TestClassesAreInOrder(t *testing.T) {
	last := int64(-1)
	for c := range bucketOf(maxMS) + 1 {
		m := bucketMiddle(c)
		if m <= last || bucketOf(m) != c {
			t.Fatalf("class %d has its middle at %d, which is of class %d; before it %d", c, m, bucketOf(m), last)
		}
		last = m
	}
}
