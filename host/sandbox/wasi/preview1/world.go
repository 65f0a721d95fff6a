package preview1

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

// DefaultResolution is the resolution of the clocks. It is too coarse to time
// what a guest does to the caches of the processor.
const DefaultResolution = time.Millisecond

// Options is what a guest gets. The zero value of a field gives it nothing, or
// what the field says.
type Options struct {
	// FS is what the preopen shows. The world closes it. Nil is an empty tree.
	FS *wasi.FS
	// Stdout and Stderr take what the guest writes there, in pieces and on its
	// goroutine. An error ends the guest's call with EIO. Nil discards.
	Stdout, Stderr io.Writer
	// Random is where random_get reads. Nil is crypto/rand.
	Random io.Reader
	// Wall and Monotonic are the clocks; nil are the system's. The guest sees
	// them rounded down to a multiple of Resolution, and never going backwards.
	Wall      func() time.Time
	Monotonic func() time.Duration
	// Resolution of the clocks; zero is DefaultResolution.
	Resolution time.Duration
	// Charge takes what the guest has to pay for, in units of fuel, on the
	// guest's goroutine. Nil: nothing has a price. What the FS does is charged
	// by its own limits.
	Charge func(units uint64)
	// Away carries out the wait of a guest that sleeps. Nil: it just waits.
	Away func(wait func())
	// Check says why the guest has to end, or nil. It is asked in everything
	// that can take long. Nil: never.
	Check func() error
}

// World is what one guest can reach through WASI in one call. It is used from
// one goroutine; only Close may be called from others.
type World struct {
	// Fixed at creation.
	fs             *wasi.FS
	stdout, stderr io.Writer
	random         io.Reader
	wall           func() time.Time
	monotonic      func() time.Duration
	resolution     time.Duration
	charge         func(units uint64)
	check          func() error
	away           func(wait func())

	fds       []*descriptor
	lastWall  uint64
	lastMono  uint64
	transfers [][]byte // of one call, kept for the next

	closing sync.Once
	closed  chan struct{}
	err     error // of closing
}

// New returns a world. Nothing is opened before the guest asks for it. The
// caller must Close the result.
func New(opts *Options) *World {
	if opts == nil {
		opts = &Options{}
	}
	w := &World{
		fs:         opts.FS,
		stdout:     opts.Stdout,
		stderr:     opts.Stderr,
		random:     opts.Random,
		wall:       opts.Wall,
		monotonic:  opts.Monotonic,
		resolution: opts.Resolution,
		charge:     opts.Charge,
		check:      opts.Check,
		away:       opts.Away,
		closed:     make(chan struct{}),
	}
	if w.charge == nil {
		w.charge = func(uint64) {}
	}
	if w.check == nil {
		w.check = func() error { return nil }
	}
	if w.away == nil {
		w.away = func(wait func()) { wait() }
	}
	if w.fs == nil {
		w.fs = wasi.Empty(wasi.Limits{Fuel: w.charge})
	}
	if w.stdout == nil {
		w.stdout = io.Discard
	}
	if w.stderr == nil {
		w.stderr = io.Discard
	}
	if w.random == nil {
		w.random = rand.Reader
	}
	if w.wall == nil {
		w.wall = time.Now
	}
	if w.monotonic == nil {
		w.monotonic = sinceStart
	}
	if w.resolution <= 0 {
		w.resolution = DefaultResolution
	}
	w.fds = []*descriptor{
		{kind: stream, base: streamRights | rightFDRead},
		{kind: stream, base: streamRights | rightFDWrite, out: w.stdout},
		{kind: stream, base: streamRights | rightFDWrite, out: w.stderr},
		{kind: directory, base: directoryRights, inheriting: allRights, name: preopenName, preopen: true},
	}
	return w
}

// start is a while before the program, because some guests take a clock that
// says zero for a broken one.
var start = time.Now().Add(-time.Second)

func sinceStart() time.Duration { return time.Since(start) }

// Close closes the FS and what the guest has open. It may be called at any
// time and more than once. A guest that sleeps is ended, and one that runs on
// ends at its next call.
func (w *World) Close() error {
	w.closing.Do(func() {
		close(w.closed)
		w.err = w.fs.Close()
	})
	return w.err
}

var (
	errNoWorld = errors.New("the guest runs without a WASI world")
	errClosed  = errors.New("the guest runs on after its WASI world was closed")
)

type worldKey struct{}

// With returns a context for calls into the guest of the world.
func With(ctx context.Context, w *World) context.Context {
	return context.WithValue(ctx, worldKey{}, w)
}

// from returns the world of the call, or nil.
func from(ctx context.Context) *World {
	w, _ := ctx.Value(worldKey{}).(*World)
	return w
}

// stop is what this package panics with to end a guest, so that it can be told
// from a mistake.
type stop struct{ err error }

// checkpoint ends the guest if there is a reason to. It is called between the
// parts of what takes long.
func (w *World) checkpoint() {
	if err := w.check(); err != nil {
		panic(stop{err})
	}
}
