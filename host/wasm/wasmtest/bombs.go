package wasmtest

import "fmt"

// Bomb is a tool module that makes a host which compiles it use far more time or memory
// than its size suggests.
type Bomb struct {
	// Name is a few words, fit for t.Run.
	Name string
	// Kind names the kind of bomb. Bombs of one kind differ in size.
	Kind string
	// Want is the worst fate that the bomb may have.
	Want Fate
	// Module assembles the bomb, which can take a second and a few hundred megabytes.
	Module func() []byte
	// Small assembles the same shape in a harmless size. It is nil if the module is
	// broken rather than large.
	Small func() []byte
}

// Fate is the outcome of compiling a bomb. Each fate includes those before it.
type Fate int

const (
	// Malformed: wasm.Decode refuses the module.
	Malformed Fate = iota
	// Refused: the module never becomes code, because a limit or a validation refuses it,
	// at the latest that of the engine.
	Refused
	// Killed: at the latest, the process that compiles the module is killed. It has 5 s
	// of CPU time and 1 GiB of memory.
	Killed
	// Bounded: the module may even compile, within these limits.
	Bounded
)

// shape assembles a module of a size. The meaning of n and m depends on the shape; the
// hostile part is repeated times times.
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

// Bombs returns modules whose compilation is meant to overwhelm the host. Most are cheap to
// assemble only one at a time.
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
