package stats

import (
	"math/bits"
	"time"
)

// Histogram are how long things took, in milliseconds. Up to 63 ms each value is kept as it
// is; above, in 32 classes for each doubling, so that the median is off by 1.6 % at most.
// The slowest is exact.
type Histogram struct {
	buckets []uint32 // by class, as many as were needed
	number  uint64
	slowest int64
}

const (
	exactBuckets       = 64
	bucketsPerDoubling = 32 // classes of a doubling
	// maxMS bounds what is believed of a log: a hundred years.
	maxMS = 100 * 366 * 24 * 3600 * 1000
)

// bucketOf is the class of a time.
func bucketOf(ms int64) int {
	if ms < exactBuckets {
		return int(ms)
	}
	shift := bits.Len64(uint64(ms)) - 6 // so that 32 to 63 is left
	return exactBuckets + (shift-1)*bucketsPerDoubling + int(ms>>shift) - bucketsPerDoubling
}

// bucketMiddle is the time in the middle of a class.
func bucketMiddle(class int) int64 {
	if class < exactBuckets {
		return int64(class)
	}
	shift := (class-exactBuckets)/bucketsPerDoubling + 1
	first := int64((class-exactBuckets)%bucketsPerDoubling+bucketsPerDoubling) << shift
	return first + int64(1)<<shift/2
}

func (t *Histogram) add(ms int64) {
	ms = min(max(ms, 0), maxMS)
	of := bucketOf(ms)
	for len(t.buckets) <= of {
		t.buckets = append(t.buckets, 0)
	}
	t.buckets[of]++
	t.number++
	t.slowest = max(t.slowest, ms)
}

// Number is how many times there are.
func (t *Histogram) Number() uint64 { return t.number }

// Slowest is the longest time; 0 if there is none.
func (t *Histogram) Slowest() time.Duration { return time.Duration(t.slowest) * time.Millisecond }

// Median is the time that half of them did not exceed; 0 if there is none.
func (t *Histogram) Median() time.Duration {
	var seen uint64
	for class, n := range t.buckets {
		if seen += uint64(n); seen > 0 && 2*seen >= t.number {
			return time.Duration(min(bucketMiddle(class), t.slowest)) * time.Millisecond
		}
	}
	return 0
}
