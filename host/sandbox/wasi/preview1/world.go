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
	// them rounded down to a millisecond, and never going backwards.
	Wall      func() time.Time
	Monotonic func() time.Duration
	// Charge takes what the guest has to pay for, in units of fuel, on the
	// guest's goroutine. Nil: nothing has a price. What the FS does is charged
	// by its own limits.
	Charge func(units uint64)
	// WithoutTurn carries out the wait of a guest that sleeps. Nil: it just waits.
	WithoutTurn func(wait func())
	// MustEnd says why the guest has to end, or nil. It is asked in everything
	// that can take long. Nil: never.
	MustEnd func() error
}

// World is what one guest can reach through WASI in one call. It is used from
// one goroutine; only Close may be called from others.
type World struct {
	opts Options // fixed at creation, without nil

	fds       []*descriptor
	args, env stringList
	lastWall  uint64
	lastMono  uint64
	buffers   [][]byte // of one call, kept for the next
	events    []event  // the same

	closeOnce sync.Once
	closed    chan struct{}
	err       error // of closing
}

// New returns a world. Nothing is opened before the guest asks for it. The
// caller must Close the result.
func New(opts *Options) *World {
	w := &World{closed: make(chan struct{})}
	if opts != nil {
		w.opts = *opts
	}
	o := &w.opts
	if o.Charge == nil {
		o.Charge = func(uint64) {}
	}
	if o.MustEnd == nil {
		o.MustEnd = func() error { return nil }
	}
	if o.WithoutTurn == nil {
		o.WithoutTurn = func(wait func()) { wait() }
	}
	if o.FS == nil {
		o.FS, _ = wasi.New(nil, nil, &wasi.Options{Limits: wasi.Limits{Charge: o.Charge}}) // opens nothing, so it cannot fail
	}
	if o.Stdout == nil {
		o.Stdout = io.Discard
	}
	if o.Stderr == nil {
		o.Stderr = io.Discard
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Monotonic == nil {
		o.Monotonic = func() time.Duration { return time.Since(clockEpoch) }
	}
	w.fds = []*descriptor{
		{kind: stream, base: streamRights | rightFDRead},
		{kind: stream, base: streamRights | rightFDWrite, out: o.Stdout},
		{kind: stream, base: streamRights | rightFDWrite, out: o.Stderr},
		{kind: directory, base: directoryRights, inheriting: allRights, name: rootPreopenName, preopen: rootPreopenName},
	}
	return w
}

// clockEpoch is a while before the program, because some guests take a clock that
// says zero for a broken one.
var clockEpoch = time.Now().Add(-time.Second)

// Close closes the FS and what the guest has open. It may be called at any
// time and more than once. A guest that sleeps is ended, and one that runs on
// ends at its next call.
func (w *World) Close() error {
	w.closeOnce.Do(func() {
		close(w.closed)
		w.err = w.opts.FS.Close()
	})
	return w.err
}

var (
	errNoWorld = errors.New("the guest runs without a WASI world")
	errClosed  = errors.New("the guest runs on after its WASI world was closed")
)

type worldKey struct{}

// WithWorld returns a context for calls into the guest of the world.
func WithWorld(ctx context.Context, w *World) context.Context {
	return context.WithValue(ctx, worldKey{}, w)
}

// worldFrom returns the world of the call, or nil.
func worldFrom(ctx context.Context) *World {
	w, _ := ctx.Value(worldKey{}).(*World)
	return w
}

// stop is what this package panics with to end a guest, so that it can be told
// from a mistake.
type stop struct{ err error }

// checkpoint ends the guest if there is a reason to. It is called between the
// parts of what takes long.
func (w *World) checkpoint() {
	if err := w.opts.MustEnd(); err != nil {
		panic(stop{err})
	}
}
