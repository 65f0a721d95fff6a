package stats

import (
	"math/bits"
	"time"
)

// Times are how long things took, in milliseconds. Up to 63 ms each value is kept as it
// is; above, in 32 classes for each doubling, so that the median is off by 1.6 % at most.
// The slowest is exact.
type Times struct {
	classes []uint32 // by class, as many as were needed
	number  uint64
	slowest int64
}

const (
	exact  = 64
	double = 32 // classes of a doubling
	// maxMS bounds what is believed of a log: a hundred years.
	maxMS = 100 * 366 * 24 * 3600 * 1000
)

// class is the class of a time.
func class(ms int64) int {
	if ms < exact {
		return int(ms)
	}
	shift := bits.Len64(uint64(ms)) - 6 // so that 32 to 63 is left
	return exact + (shift-1)*double + int(ms>>shift) - double
}

// middle is the time in the middle of a class.
func middle(class int) int64 {
	if class < exact {
		return int64(class)
	}
	shift := (class-exact)/double + 1
	first := int64((class-exact)%double+double) << shift
	return first + int64(1)<<shift/2
}

func (t *Times) add(ms int64) {
	ms = min(max(ms, 0), maxMS)
	of := class(ms)
	for len(t.classes) <= of {
		t.classes = append(t.classes, 0)
	}
	t.classes[of]++
	t.number++
	t.slowest = max(t.slowest, ms)
}

// Number is how many times there are.
func (t *Times) Number() uint64 { return t.number }

// Slowest is the longest time; 0 if there is none.
func (t *Times) Slowest() time.Duration { return time.Duration(t.slowest) * time.Millisecond }

// Median is the time that half of them did not exceed; 0 if there is none.
func (t *Times) Median() time.Duration {
	var seen uint64
	for class, n := range t.classes {
		if seen += uint64(n); seen > 0 && 2*seen >= t.number {
			return time.Duration(min(middle(class), t.slowest)) * time.Millisecond
		}
	}
	return 0
}
