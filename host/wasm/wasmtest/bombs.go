package wasmtest

import "fmt"

// Bomb is a tool module that makes a host which compiles it use far more time
// or memory than its size lets expect.
type Bomb struct {
	// Name is a few words, fit for t.Run.
	Name string
	// Kind is what kind of bomb it is. Several sizes have one row.
	Kind string
	// Want is the worst that may become of it.
	Want Fate
	// Module assembles it, which can take a second and a few hundred megabytes.
	Module func() []byte
	// Small assembles the same shape in a size that is harmless. It is nil when
	// the module is broken rather than large.
	Small func() []byte
}

// Fate is what may become of a bomb. Each includes those before it.
type Fate int

const (
	// Malformed: wasm.Decode refuses it.
	Malformed Fate = iota
	// Refused: it never becomes code, because a limit or a validation refuses
	// it, at the latest that of the engine.
	Refused
	// Killed: at the latest, the process that compiles it is killed. That one
	// has 5 s of CPU time and 1 GiB of memory.
	Killed
	// Bounded: it may even compile, within these limits.
	Bounded
)

// shape assembles a module of a size. What n and m count differs; the hostile
// part is there times times.
type shape func(n, m, times int) []byte

type size struct {
	n, m, times int
	want        Fate
}

type row struct {
	name  string
	shape shape
	sizes []size
}

// Bombs returns modules that are meant to overwhelm the host with their
// compilation. Most are cheap to assemble only one at a time.
func Bombs() []Bomb {
	var out []Bomb
	for _, r := range rows() {
		for _, s := range r.sizes {
			name := fmt.Sprintf("%s, %d", r.name, s.n)
			if s.m > 0 {
				name += fmt.Sprintf(" x %d", s.m)
			}
			if s.times > 1 {
				name += fmt.Sprintf(", %d times", s.times)
			}
			out = append(out, Bomb{
				Name: name, Kind: r.name, Want: s.want,
				Module: func() []byte { return r.shape(s.n, s.m, max(s.times, 1)) },
				Small:  func() []byte { return r.shape(min(s.n, 4), min(s.m, 3), 1) },
			})
		}
	}
	return append(out, brokenModules()...)
}
