package preview1

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

const (
	eventBytes       = 32   // size of an event
	maxSubscriptions = 4096 // subscriptions in one call; more are EINVAL
	costSubscription = 50   // units of fuel
)

const (
	eventClock = iota
	eventRead
	eventWrite
)

const (
	clockAbsolute = 1 // flag of a clock subscription
	eventHangup   = 1 // flag of an event
)

// event is the answer to a subscription.
type event struct {
	userdata  uint64
	errno     wasi.Errno
	typ       byte
	bytes     uint64 // number of bytes that can be read
	flags     uint16
	remaining time.Duration // time until a clock goes off; 0 for any other event
}

// pollOneoff waits for the first of several events. Files and streams are always ready, so it
// sleeps for clocks only. The sleep ends with the context of the call.
func pollOneoff(g guest) wasi.Errno {
	n := g.u32(2)
	if n == 0 || n > maxSubscriptions {
		return wasi.EINVAL
	}
	g.w.opts.Charge(uint64(n) * costSubscription)
	in, errno := g.view(g.u32(0), uint64(n)*g.e.subscriptionBytes)
	if errno != 0 {
		return errno
	}
	out, errno := g.view(g.u32(1), uint64(n)*eventBytes)
	if errno != 0 {
		return errno
	}
	count, errno := g.result(3, 4)
	if errno != 0 {
		return errno
	}
	// All is read before anything is written, because the two may overlap.
	g.w.events = slices.Grow(g.w.events[:0], int(n))
	events := g.w.events[:n]
	soonest := time.Duration(math.MaxInt64)
	for i := range events {
		if i%256 == 255 {
			g.w.checkpoint()
		}
		e, errno := g.w.subscribe(in[:g.e.subscriptionBytes])
		in = in[g.e.subscriptionBytes:]
		if errno != 0 {
			return errno
		}
		events[i] = e
		soonest = min(soonest, e.remaining)
	}
	if soonest > 0 {
		g.w.sleep(g.ctx, soonest)
	}
	happened := uint32(0)
	for _, e := range events {
		if e.remaining > soonest {
			continue
		}
		b := out[happened*eventBytes:][:eventBytes]
		clear(b)
		le.PutUint64(b, e.userdata)
		le.PutUint16(b[8:], uint16(e.errno))
		b[10] = e.typ
		le.PutUint64(b[16:], e.bytes)
		le.PutUint16(b[24:], e.flags)
		happened++
	}
	le.PutUint32(count, happened)
	return 0
}

// subscribe decodes a subscription into its event. The error is that of the whole call; an
// error of the subscription alone is in the event.
func (w *World) subscribe(in []byte) (event, wasi.Errno) {
	e := event{userdata: le.Uint64(in), typ: in[8]}
	switch e.typ {
	case eventClock:
		clock := in[len(in)-32:]
		e.remaining, e.errno = w.timeUntil(le.Uint32(clock), le.Uint64(clock[8:]), le.Uint16(clock[24:]))
	case eventRead:
		w.pollRead(&e, le.Uint32(in[16:]))
	case eventWrite:
		_, e.errno = w.checkedFD(le.Uint32(in[16:]), anyKind, rightPollFDReadwrite|rightFDWrite)
	default:
		return e, wasi.EINVAL
	}
	return e, 0
}

// pollRead sets the number of bytes that can be read from a descriptor, or e.errno.
func (w *World) pollRead(e *event, fd uint32) {
	d, errno := w.checkedFD(fd, anyKind, rightPollFDReadwrite|rightFDRead)
	switch {
	case errno != 0:
		e.errno = errno
	case d.kind == stream && d.in != nil && d.in.Len() > 0:
		e.bytes = uint64(d.in.Len())
	case d.kind == stream:
		e.flags = eventHangup // at the end of the stream
	default:
		var st wasi.Stat
		if st, e.errno = d.file.Stat(); e.errno != 0 {
			return
		}
		if at, _ := d.file.SeekTo(0, wasi.FromCurrent); uint64(at) < st.Size {
			e.bytes = st.Size - uint64(at)
		}
	}
}

// timeUntil returns the time until a clock goes off.
func (w *World) timeUntil(clock uint32, timeout uint64, flags uint16) (time.Duration, wasi.Errno) {
	if flags > clockAbsolute {
		return 0, wasi.EINVAL
	}
	now, errno := w.clock(clock)
	if errno != 0 {
		return 0, errno
	}
	if flags == clockAbsolute {
		timeout -= min(timeout, now)
	}
	return time.Duration(min(timeout, math.MaxInt64)), 0
}

// sleep waits for d. It ends the guest when ctx ends or the world is closed.
func (w *World) sleep(ctx context.Context, d time.Duration) {
	w.checkpoint()
	t := time.NewTimer(d)
	defer t.Stop()
	w.opts.WithoutTurn(func() {
		select {
		case <-t.C:
		case <-ctx.Done():
			panic(stop{ctx.Err()})
		case <-w.closed:
			panic(stop{errClosed})
		}
	})
	w.checkpoint()
}
