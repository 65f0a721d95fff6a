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

// Options holds the resources of a guest.
type Options struct {
	FS *wasi.FS // files of the preopens, which the world closes; nil: no files
	// Stdout and Stderr receive the output of the guest, in pieces and on its goroutine. If
	// they return an error, the guest's write fails with EIO. Nil: output is dropped.
	Stdout, Stderr io.Writer
	Random         io.Reader // source of random_get; nil: crypto/rand
	// Wall and Monotonic are the clocks; nil: those of the system. The guest sees them rounded
	// down to a millisecond, and never going backwards.
	Wall      func() time.Time
	Monotonic func() time.Duration
	// Charge is called with the price of each operation, in units of fuel, on the guest's
	// goroutine. Nil: operations are free. The FS charges for files by its own limits.
	Charge func(units uint64)
	// WithoutTurn calls wait while a guest sleeps, so that other guests can run. Nil: wait is
	// called directly.
	WithoutTurn func(wait func())
	// MustEnd returns the reason why the guest has to end, or nil. It is called during every
	// operation that can take long. Nil: the guest never has to end.
	MustEnd func() error
}

// World holds everything that one guest can reach through WASI in one call. It is used
// from one goroutine; only Close may be called from others.
type World struct {
	opts Options // fixed at creation, without nil fields

	fds       []*descriptor
	args, env stringList
	lastWall  uint64   // time of Wall that the guest has seen, in nanoseconds
	lastMono  uint64   // time of Monotonic that the guest has seen, in nanoseconds
	buffers   [][]byte // reused from call to call
	events    []event  // reused from call to call

	closeOnce sync.Once
	closed    chan struct{}
	err       error // error of closing the FS
}

// New returns a world, which the caller must Close. It opens nothing before the guest does.
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

// clockEpoch is the zero of the monotonic clock: a second before the start of the program,
// because some guests take a clock at zero for a broken one.
var clockEpoch = time.Now().Add(-time.Second)

// Close closes the FS and everything the guest has open. It may be called at any time. A
// sleeping guest is ended at once, and a running one at its next call of WASI. The error is
// that of closing the FS; each further Close returns the same.
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

// worldFrom returns the world of the call; nil: there is none.
func worldFrom(ctx context.Context) *World {
	w, _ := ctx.Value(worldKey{}).(*World)
	return w
}

// stop is the panic value that ends a guest on purpose. Any other panic is a bug of the host.
type stop struct{ err error }

// checkpoint ends the guest if it has to end. Long operations call it between pieces.
func (w *World) checkpoint() {
	if err := w.opts.MustEnd(); err != nil {
		panic(stop{err})
	}
}
