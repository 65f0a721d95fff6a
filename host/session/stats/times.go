package stats

import (
	"math/bits"
	"time"
)

// Histogram counts durations in milliseconds. Up to 63 ms each value has its own class. Above,
// each doubling has 32 classes, so that the median is off by at most 1.6 %. slowest is exact.
type Histogram struct {
	buckets []uint32 // number of durations by class, without empty classes at the end
	number  uint64   // number of all durations
	slowest int64    // the longest duration in milliseconds
}

const (
	exactBuckets       = 64 // classes of one millisecond each
	bucketsPerDoubling = 32 // number of classes in each doubling
	// maxMS is a hundred years; a longer duration from a log counts as this.
	maxMS = 100 * 366 * 24 * 3600 * 1000
)

// bucketOf returns the class of a duration.
func bucketOf(ms int64) int {
	if ms < exactBuckets {
		return int(ms)
	}
	shift := bits.Len64(uint64(ms)) - 6 // leaves 32 to 63
	return exactBuckets + (shift-1)*bucketsPerDoubling + int(ms>>shift) - bucketsPerDoubling
}

// bucketMiddle returns the duration in the middle of a class.
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
	class := bucketOf(ms)
	for len(t.buckets) <= class {
		t.buckets = append(t.buckets, 0)
	}
	t.buckets[class]++
	t.number++
	t.slowest = max(t.slowest, ms)
}

// Number returns the number of durations.
func (t *Histogram) Number() uint64 { return t.number }

// Slowest returns the longest duration; 0 if there is none.
func (t *Histogram) Slowest() time.Duration { return time.Duration(t.slowest) * time.Millisecond }

// Median returns the duration that half of the durations do not exceed; 0 if there is none.
func (t *Histogram) Median() time.Duration {
	var seen uint64
	for class, n := range t.buckets {
		if seen += uint64(n); seen > 0 && 2*seen >= t.number {
			return time.Duration(min(bucketMiddle(class), t.slowest)) * time.Millisecond
		}
	}
	return 0
}
