//go:build unix

package preview1_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
)

func TestClocksAreCoarseAndDoNotGoBack(t *testing.T) {
	wall, mono := time.Unix(1_000_000_000, 123_456_789), 5*time.Second+987_654_321
	now, since := wall, mono
	g := newGuest(t, &preview1.Options{
		Wall:      func() time.Time { return now },
		Monotonic: func() time.Duration { return since },
	})
	read := func(id int) uint64 {
		t.Helper()
		g.must("clock_time_get", id, uint64(0), resultAt)
		return g.u64(resultAt)
	}
	const ms = int64(time.Millisecond)
	for id, exact := range []int64{wall.UnixNano(), int64(mono)} {
		g.must("clock_res_get", id, resultAt)
		if got := g.u64(resultAt); got != uint64(ms) {
			t.Errorf("resolution %d of clock %d, want %d", got, id, ms)
		}
		if got := read(id); got != uint64(exact-exact%ms) {
			t.Errorf("clock %d says %d, it is %d", id, got, exact)
		}
	}
	a, b := read(0), read(1)
	now, since = wall.Add(-time.Hour), mono-time.Second
	if read(0) != a || read(1) != b {
		t.Error("a clock went back")
	}
	now, since = wall.Add(time.Hour), mono+time.Hour
	if read(0) <= a || read(1) <= b {
		t.Error("a clock stopped")
	}
	now, since = time.Unix(-5, 0), -time.Second
	read(0)
	read(1)
	for _, id := range []int{2, 3, 4, -1} {
		g.want(wasi.EINVAL, "clock_res_get", id, resultAt)
		g.want(wasi.EINVAL, "clock_time_get", id, uint64(0), resultAt)
	}
	before := time.Now()
	g = newGuest(t, nil)
	g.must("clock_time_get", 0, uint64(0), resultAt)
	if got := time.Unix(0, int64(g.u64(resultAt))); got.Before(before.Add(-time.Millisecond)) || got.After(time.Now()) {
		t.Errorf("the system's clock says %v at %v", got, before)
	}
	g.must("clock_time_get", 1, uint64(0), resultAt)
	if g.u64(resultAt) == 0 {
		t.Error("the monotonic clock says zero")
	}
}

// inSyncBubble runs a test with a guest in a synctest bubble, where sleeping takes no
// time.
func inSyncBubble(t *testing.T, test func(g *guest, start time.Time)) {
	if _, err := engine(); err != nil { // outside: it outlives the bubble
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		test(newGuest(t, &preview1.Options{
			Monotonic: func() time.Duration { return time.Since(start) + time.Hour },
		}), start)
	})
}

func TestPollSleeps(t *testing.T) {
	const ms, sec = uint64(time.Millisecond), uint64(time.Second)
	inSyncBubble(t, func(g *guest, start time.Time) {
		slept := func(want time.Duration) {
			g.t.Helper()
			if got := time.Since(start); got != want {
				g.t.Errorf("slept %v, want %v", got, want)
			}
			start = time.Now()
		}
		events := g.poll(clockSub(7, 1, 3*sec, 0))
		if len(events) != 1 || events[0] != (event{7, 0, evClock, 0, 0}) {
			g.t.Errorf("%+v", events)
		}
		slept(3 * time.Second)
		// The soonest, and the clocks that go off at the same time.
		events = g.poll(clockSub(1, 1, 20*sec, 0), clockSub(2, 0, 5*sec, 0), clockSub(3, 1, 5*sec, 0), clockSub(4, 1, 5*sec+1, 0))
		if len(events) != 2 || events[0].userdata != 2 || events[1].userdata != 3 {
			g.t.Errorf("%+v", events)
		}
		slept(5 * time.Second)
		// Absolute times, in the future and in the past.
		g.must("clock_time_get", 1, uint64(0), resultAt)
		now := g.u64(resultAt)
		g.poll(clockSub(1, 1, now+7*sec, 1))
		slept(7 * time.Second)
		g.poll(clockSub(1, 1, now, 1))
		g.poll(clockSub(1, 1, 0, 1))
		g.poll(clockSub(1, 0, 0, 1))
		g.poll(clockSub(1, 1, 0, 0))
		slept(0)
		g.must("clock_time_get", 0, uint64(0), resultAt)
		g.poll(clockSub(1, 0, g.u64(resultAt)+2*sec, 1))
		slept(2 * time.Second)
		// Ready events are returned at once, without the clocks that have not gone off.
		events = g.poll(clockSub(1, 1, sec, 0), fdSub(2, evWrite, 1), clockSub(3, 1, 0, 0))
		if len(events) != 2 || events[0].userdata != 2 || events[1].userdata != 3 {
			g.t.Errorf("%+v", events)
		}
		slept(0)
		// An event that is an error has happened.
		events = g.poll(clockSub(1, 1, sec, 0), clockSub(2, 2, sec, 0), clockSub(3, 1, sec, 2))
		if len(events) != 2 || events[0].userdata != 2 || events[0].errno != wasi.EINVAL || events[1].errno != wasi.EINVAL {
			g.t.Errorf("%+v", events)
		}
		slept(0)
		g.poll(clockSub(1, 1, 1*ms, 0))
		slept(time.Millisecond)
	})
}

func TestPollFiles(t *testing.T) {
	h := newHost(t)
	g := h.mounted(h.rw("ws"))
	ws := g.directory(h, "ws")
	fd := g.opened(ws, "f.txt", openOptions{base: rAll})
	g.read(fd, 2)
	noPoll := g.opened(ws, "f.txt", openOptions{base: rAll &^ rPollFDReadwrite})
	onlyRead := g.opened(ws, "f.txt", openOptions{base: rFDRead | rPollFDReadwrite})
	events := g.poll(
		fdSub(0, evRead, uint32(fd)), fdSub(1, evWrite, uint32(fd)), fdSub(2, evRead, 0), fdSub(3, evWrite, 2),
		fdSub(4, evRead, 99), fdSub(5, evWrite, math.MaxUint32), fdSub(6, evRead, uint32(ws)), fdSub(7, evRead, uint32(noPoll)),
		fdSub(8, evWrite, uint32(onlyRead)), fdSub(9, evRead, uint32(onlyRead)), fdSub(10, evRead, preopen),
	)
	want := []event{
		{0, 0, evRead, 4, 0}, {1, 0, evWrite, 0, 0}, {2, 0, evRead, 0, 1}, {3, 0, evWrite, 0, 0},
		{4, wasi.EBADF, evRead, 0, 0}, {5, wasi.EBADF, evWrite, 0, 0}, {6, wasi.ENOTCAPABLE, evRead, 0, 0}, {7, wasi.ENOTCAPABLE, evRead, 0, 0},
		{8, wasi.ENOTCAPABLE, evWrite, 0, 0}, {9, 0, evRead, 6, 0}, {10, wasi.ENOTCAPABLE, evRead, 0, 0},
	}
	if !slices.Equal(events, want) {
		t.Errorf("got %+v\nwant %+v", events, want)
	}
}

func TestPollRefuses(t *testing.T) {
	g := newGuest(t, nil)
	for _, n := range []int{0, 4097, 1 << 20, 1 << 28, -1} {
		g.want(wasi.EINVAL, "poll_oneoff", 4096, 8192, n, resultAt)
	}
	g.want(wasi.EFAULT, "poll_oneoff", memoryBytes-47, 8192, 1, resultAt)
	g.want(wasi.EFAULT, "poll_oneoff", 4096, memoryBytes-31, 1, resultAt)
	g.want(wasi.EFAULT, "poll_oneoff", 4096, 8192, 1, memoryBytes-3)
	bad := fdSub(1, 3, 1)
	at := g.put(bad)
	g.want(wasi.EINVAL, "poll_oneoff", at, 8192, 1, resultAt)
	// The maximum number of subscriptions, with the answers written over the questions.
	var subs [][]byte
	for i := range 4096 {
		subs = append(subs, fdSub(uint64(i), evWrite, 1))
	}
	in := slices.Concat(subs...)
	g.at = scratchAt
	at = g.put(in)
	g.must("poll_oneoff", at, at, 4096, resultAt)
	if n := g.u32(resultAt); n != 4096 {
		t.Errorf("%d events", n)
	}
	for i := range 4096 {
		if got := g.u64(at + 32*i); got != uint64(i) {
			t.Fatalf("event %d is that of %d", i, got)
		}
	}
}

// A guest that sleeps for a year ends like any other guest.
func TestSleepEnds(t *testing.T) {
	year := uint64(365 * 24 * time.Hour)
	for _, timeout := range []uint64{year, math.MaxInt64, math.MaxUint64} {
		for _, flags := range []uint16{0, 1} {
			inSyncBubble(t, func(g *guest, start time.Time) {
				ctx, cancel := context.WithTimeout(g.ctx, 300*time.Millisecond)
				defer cancel()
				g.ctx = ctx
				_, err := g.try("poll_oneoff", g.put(clockSub(1, 1, timeout, flags)), 8192, 1, resultAt)
				if !errors.Is(err, context.DeadlineExceeded) {
					g.t.Errorf("it ended with %v", err)
				}
				if got := time.Since(start); got != 300*time.Millisecond {
					g.t.Errorf("after %v", got)
				}
			})
		}
	}
	if _, err := engine(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		world := preview1.New(nil)
		g := guestIn(t, world)
		time.AfterFunc(time.Second, func() { world.Close() })
		start := time.Now()
		if _, err := g.try("poll_oneoff", g.put(clockSub(1, 1, year, 0)), 8192, 1, resultAt); err == nil {
			t.Error("it slept on after the world was closed")
		}
		if got := time.Since(start); got != time.Second {
			t.Errorf("it ended after %v", got)
		}
	})
	// A guest whose time is up does not start to sleep.
	ends := &endAfter{}
	g := newGuest(t, &preview1.Options{MustEnd: ends.check})
	_, err := g.try("poll_oneoff", g.put(clockSub(1, 1, year, 0)), 8192, 1, resultAt)
	ends.want(t, err)
}
