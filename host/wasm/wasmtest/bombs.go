package wasmtest

import "fmt"

// Bomb is a tool module that makes a host which compiles it use far more time or memory
// than its size suggests.
type Bomb struct {
	Name   string        // a few words, fit for t.Run
	Kind   string        // name of the kind of bomb; bombs of one kind differ in size
	Want   Fate          // the worst fate that the bomb may have
	Module func() []byte // assembles the bomb, which can take a second and a few hundred megabytes
	Small  func() []byte // assembles a harmless size of the kind; nil: the module is broken, not large
}

// Fate is the outcome of compiling a bomb. Each fate as a worst fate permits those before it.
type Fate int

const (
	Malformed Fate = iota // wasm.Decode refuses the module
	Refused               // a limit or a validation refuses the module, at the latest that of the engine
	Killed                // the process that compiles it is killed at its limits: 5 s of CPU time, 1 GiB of memory
	Bounded               // the module may even compile, within these limits
)

// shape assembles a module of a size. The meaning of n and m depends on the shape. times is the
// number of times that the hostile part occurs.
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

// Bombs returns modules whose compilation is meant to overwhelm the host, and broken modules.
// Assemble them one at a time, because most are large.
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
