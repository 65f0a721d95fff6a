//go:build unix

package preview1_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
)

var oldTrampoline = sync.OnceValue(func() []byte { return trampolineTo(preview1.UnstableName, "memory") })

// newUnstableGuest is a guest built for the snapshot before preview 1. The methods stat
// and poll of a test guest know the records of preview 1 only.
func newUnstableGuest(t *testing.T, opts *preview1.Options) *guest {
	t.Helper()
	world := preview1.New(opts)
	t.Cleanup(func() { world.Close() })
	return guestOf(t, oldTrampoline(), world)
}

const oldFilestatBytes, oldSubscriptionBytes = 56, 56

// oldFilestat decodes the filestat record of wasi_unstable.
func (g *guest) oldFilestat() filestat {
	b := g.bytes(resultAt, oldFilestatBytes)
	u := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }
	return filestat{u(0), u(8), int(b[16]), uint64(binary.LittleEndian.Uint32(b[20:])), u(24), u(32), u(40), u(48)}
}

// unstableSubscription turns a subscription into the form of wasi_unstable.
func unstableSubscription(sub []byte) []byte {
	out := slices.Concat(sub[:16], sub[16:], make([]byte, 8))
	if sub[8] == evClock {
		out = slices.Concat(sub[:16], bytes.Repeat([]byte{0xee}, 8), sub[16:])
	}
	return out
}

func (g *guest) oldPoll(subs ...[]byte) []event {
	g.t.Helper()
	var in []byte
	for _, s := range subs {
		in = append(in, unstableSubscription(s)...)
	}
	at := g.put(in)
	g.must("poll_oneoff", at, at, len(subs), resultAt) // the answers over the questions
	var events []event
	for i := range int(g.u32(resultAt)) {
		b := g.bytes(at+i*32, 32)
		le := binary.LittleEndian
		events = append(events, event{le.Uint64(b), wasi.Errno(le.Uint16(b[8:])), b[10], le.Uint64(b[16:]), le.Uint16(b[24:])})
	}
	return events
}

func TestWhenceOfTheSnapshotBefore(t *testing.T) {
	h := newHost(t)
	opts := h.options(nil, h.rw("ws"))
	g := newUnstableGuest(t, opts)
	fd := g.opened(g.directory(h, "ws"), "f.txt", openOptions{base: rAll}) // "inside"
	for _, s := range []struct {
		off    int64
		whence int
		want   uint64
		errno  wasi.Errno
	}{
		{2, 2, 2, 0}, {3, 0, 5, 0}, {0, 0, 5, 0}, {-1, 0, 4, 0}, {0, 1, 6, 0}, {-5, 1, 1, 0}, {100, 1, 106, 0}, {0, 2, 0, 0},
		{-1, 2, 0, wasi.EINVAL}, {-1, 0, 0, wasi.EINVAL}, {-7, 1, 0, wasi.EINVAL}, {0, 3, 0, wasi.EINVAL}, {0, -1, 0, wasi.EINVAL}, {0, 1 << 8, 0, wasi.EINVAL},
	} {
		if at, errno := g.seek(fd, s.off, s.whence); errno != s.errno || errno == 0 && at != s.want {
			t.Errorf("seek %d by %d: %d, %v", s.off, s.whence, at, errno)
		}
	}
	// The right to tell is enough if nothing is moved.
	telling := g.opened(g.directory(h, "ws"), "f.txt", openOptions{base: rFDTell})
	for whence, want := range []wasi.Errno{0, wasi.ENOTCAPABLE, wasi.ENOTCAPABLE} {
		_, errno := g.seek(telling, 0, whence)
		wantErrno(t, "seek with the right to tell", errno, want)
	}
}

func TestFilestatOfTheSnapshotBefore(t *testing.T) {
	h := newHost(t)
	h.HardLink("ws/two", "ws/f.txt")
	opts := h.options(nil, h.rw("ws"))
	now, g := newGuest(t, opts), newUnstableGuest(t, opts)
	g.bytes(resultAt, 64)[oldFilestatBytes] = 0xaa
	for _, p := range []string{"ws/f.txt", "ws/d", "ws"} {
		want, errno := now.pathStat(preopen, 0, h.name(p))
		wantErrno(t, p, errno, 0)
		if p == "ws/f.txt" && want.nlink != 2 {
			t.Errorf("%+v", want)
		}
		g.must("path_filestat_get", preopen, 0, h.name(p), resultAt)
		if diff := cmp.Diff(want, g.oldFilestat(), cmp.AllowUnexported(filestat{})); diff != "" {
			t.Errorf("path_filestat_get %s: %s", p, diff)
		}
		fd := g.opened(preopen, h.name(p), openOptions{base: rFDFilestatGet})
		g.bytes(resultAt, oldFilestatBytes)[16] = 0xff
		g.must("fd_filestat_get", fd, resultAt)
		if diff := cmp.Diff(want, g.oldFilestat(), cmp.AllowUnexported(filestat{})); diff != "" {
			t.Errorf("fd_filestat_get %s: %s", p, diff)
		}
	}
	g.must("fd_filestat_get", 1, resultAt)
	if st := g.oldFilestat(); st != (filestat{nlink: 1}) {
		t.Errorf("the output is %+v", st)
	}
	if got := g.bytes(resultAt, 64)[oldFilestatBytes]; got != 0xaa {
		t.Error("something was written behind the record")
	}
}

func TestPollOfTheSnapshotBefore(t *testing.T) {
	h := newHost(t)
	opts := h.options(nil, h.rw("ws"))
	if _, err := engine(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		opts := *opts
		opts.Monotonic = func() time.Duration { return time.Since(start) + time.Hour }
		g := newUnstableGuest(t, &opts)
		fd := uint32(g.opened(g.directory(h, "ws"), "f.txt", openOptions{base: rAll}))
		const sec = uint64(time.Second)
		for name, c := range map[string]struct {
			subs  [][]byte
			want  []event
			slept time.Duration
		}{
			"a clock":             {[][]byte{clockSub(7, 1, 3*sec, 0)}, []event{{7, 0, evClock, 0, 0}}, 3 * time.Second},
			"the sooner of two":   {[][]byte{clockSub(1, 1, 9*sec, 0), clockSub(2, 0, 5*sec, 0)}, []event{{2, 0, evClock, 0, 0}}, 5 * time.Second},
			"a time that is past": {[][]byte{clockSub(1, 1, 60*sec, 1)}, []event{{1, 0, evClock, 0, 0}}, 0},
			"files behind clocks": {[][]byte{clockSub(1, 1, sec, 0), fdSub(2, evRead, fd), fdSub(3, evWrite, 1)}, []event{{2, 0, evRead, 6, 0}, {3, 0, evWrite, 0, 0}}, 0},
			"what is wrong":       {[][]byte{fdSub(1, evRead, 99), clockSub(2, 2, sec, 0), clockSub(3, 1, sec, 2)}, []event{{1, wasi.EBADF, evRead, 0, 0}, {2, wasi.EINVAL, evClock, 0, 0}, {3, wasi.EINVAL, evClock, 0, 0}}, 0},
		} {
			before := time.Now()
			if got := g.oldPoll(c.subs...); !slices.Equal(got, c.want) {
				t.Errorf("%s: got %+v, want %+v", name, got, c.want)
			}
			if got := time.Since(before); got != c.slept {
				t.Errorf("%s: it slept %v", name, got)
			}
		}
		g.want(wasi.EINVAL, "poll_oneoff", g.put(unstableSubscription(fdSub(1, 3, 1))), 8192, 1, resultAt)
	})
}

// A record is in the memory as a whole, or nothing is done.
func TestFaultsOfTheSnapshotBefore(t *testing.T) {
	h := newHost(t)
	g := newUnstableGuest(t, h.options(nil, h.rw("ws")))
	ws := g.directory(h, "ws")
	fd := g.opened(ws, "f.txt", openOptions{base: rAll})
	whole := g.bytes(0, memoryBytes)
	subs := 8192
	copy(whole[subs:], slices.Concat(unstableSubscription(clockSub(1, 1, 0, 0)), unstableSubscription(fdSub(2, evWrite, 1))))
	copy(whole[memoryBytes-2*oldSubscriptionBytes:], whole[subs:subs+2*oldSubscriptionBytes])
	copy(whole[1024:], "f.txt")
	for name, c := range map[string]struct {
		size int
		call func(at int) wasi.Errno
	}{
		"fd_seek":                 {8, func(at int) wasi.Errno { return g.call("fd_seek", fd, 5, 2, at) }},
		"fd_filestat_get":         {oldFilestatBytes, func(at int) wasi.Errno { return g.call("fd_filestat_get", fd, at) }},
		"path_filestat_get":       {oldFilestatBytes, func(at int) wasi.Errno { return g.call("path_filestat_get", ws, 0, 1024, 5, at) }},
		"path_filestat_get, name": {5, func(at int) wasi.Errno { return g.call("path_filestat_get", ws, 0, at, 5, 2048) }},
		"poll_oneoff":             {2 * oldSubscriptionBytes, func(at int) wasi.Errno { return g.call("poll_oneoff", at, 16384, 2, 2048) }},
		"poll_oneoff, events":     {2 * 32, func(at int) wasi.Errno { return g.call("poll_oneoff", subs, at, 2, 2048) }},
		"poll_oneoff, count":      {4, func(at int) wasi.Errno { return g.call("poll_oneoff", subs, 16384, 2, at) }},
	} {
		before := bytes.Clone(whole)
		for _, at := range []int{memoryBytes - c.size + 1, memoryBytes, 1 << 31, -1, -c.size} {
			wantErrno(t, name, c.call(at), wasi.EFAULT)
		}
		if !bytes.Equal(whole, before) {
			t.Errorf("%s: something was written", name)
		}
		if name != "path_filestat_get, name" { // which has no name
			wantErrno(t, name+" at the end", c.call(memoryBytes-c.size), 0)
		}
		copy(whole, before)
	}
	g.must("fd_tell", fd, resultAt)
	if at := g.u64(resultAt); at != 5 { // from the one call that succeeded
		t.Errorf("the position is %d", at)
	}
}
