package sandbox

import (
	"context"

	"github.com/stockade-dev/stockade/host/tool"
)

// Beginning says what calls of a module begin with.
type Beginning struct {
	// ImageBytes is the size of the snapshot: what the module has in memory when
	// it is initialised, to which an instance is put back after each call. 0:
	// each call makes an instance and initialises it.
	ImageBytes int64
	// Why there is no snapshot.
	Why string
	// Reseeded says that the generator of random numbers was found that the
	// module's runtime has seeded when it was initialised, so that each call has
	// a fresh one. What the module itself has drawn then is the same in all.
	Reseeded bool
}

// Beginning makes a module ready to run, as its first call would, and says what
// its calls begin with.
func (s *Sandbox) Beginning(ctx context.Context, mod *tool.Module) (Beginning, error) {
	c, err := s.load(ctx, mod)
	switch {
	case err != nil:
		return Beginning{}, err
	case c.snap == nil:
		return Beginning{Why: c.plain}, nil
	}
	return Beginning{ImageBytes: int64(len(c.snap.image.Bytes())), Reseeded: c.snap.random != 0}, nil
}
