package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/codecache"
	"github.com/stockade-dev/stockade/host/sandbox/dialect"
	"github.com/stockade-dev/stockade/host/sandbox/linear"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
)

// snapshot is what a guest knows right after its initialisation: its memory
// and its globals. Every call of the module begins with it. Nothing was
// mounted, granted or readable until then, the clocks stood still, and the
// randomness was the same for everybody. See RATIONALE, "Why does every call
// begin with a snapshot?"
type snapshot struct {
	image           *linear.Image
	state           []uint64 // of the globals, see stateOf
	generatorOffset int      // where in memory Go's generator of random numbers is; 0: not found
}

// SnapshotInfo says whether calls of a module begin with a snapshot.
type SnapshotInfo struct {
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

// Snapshot makes a module ready to run, as its first call would, and says what its
// calls begin with.
func (s *Sandbox) Snapshot(ctx context.Context, mod *tool.Module) (SnapshotInfo, error) {
	c, err := s.load(ctx, mod)
	switch {
	case err != nil:
		return SnapshotInfo{}, err
	case c.snap == nil:
		return SnapshotInfo{Why: c.whyNoSnapshot}, nil
	}
	return SnapshotInfo{ImageBytes: int64(len(c.snap.image.Bytes())), Reseeded: c.snap.generatorOffset != 0}, nil
}

// initTimeout is what a module gets to initialise. Its fuel and its memory are
// limited like those of a call.
const initTimeout = 3 * time.Second

// The time at which every module initialises.
var initTime = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// errNotReusable is wrapped by the reason for which a module has no snapshot,
// if it would have none the next time either.
var errNotReusable = errors.New("an instance of it cannot be put back to its beginning")

// newSnapshot initialises a module, of which code is what was compiled.
func (s *Sandbox) newSnapshot(c *compiledModule, code []byte) (*snapshot, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.initTimeout)
	defer cancel()
	limits := policy.DefaultLimits()
	snap := &snapshot{}
	draw := &initRandom{source: rand.NewChaCha8([32]byte([]byte("stockade: initialises its guests")))}
	inst := s.newInstance(ctx, policy.Grant{}, limits)
	defer inst.close()
	// Go seeds the generator of its first thread a little before or after it
	// looks at the clock for the first time.
	tries := 8
	inst.world = inst.initWorld(draw, func() {
		if tries--; tries >= 0 && snap.generatorOffset == 0 {
			snap.generatorOffset = findGenerator(inst.mod, draw.first)
			inst.account.Charge(maxSearched >> fuel.CostBulkShift)
		}
	})
	if err := s.instantiate(ctx, c, inst, limits.MemoryBytes); err != nil {
		return nil, err
	}
	state := stateOf(inst.mod)
	if state == nil {
		return nil, whyNotReusable(code)
	}
	if err := inst.initialize(ctx, append(c.dialect.Starts(inst.mod), dialect.Start{Export: abi.ExportWarm})); err != nil {
		if inst.account.Check() == nil && !inst.memory.overQuota {
			err = fmt.Errorf("%w: it fails: %w", errNotReusable, err) // and will again
		}
		return nil, err
	}
	inst.account.Close() // the counter is 0 now
	for _, g := range state {
		snap.state = append(snap.state, g.Get())
	}
	mem := inst.memory.mapped.Bytes()[:inst.memory.peak]
	if snap.generatorOffset != 0 {
		forceReseed(mem[snap.generatorOffset:])
	}
	if len(mem) == 0 || len(mem) > maxImage {
		return nil, fmt.Errorf("%w: it has %d KiB of memory", errNotReusable, len(mem)>>10)
	}
	var err error
	if snap.image, err = linear.NewImage(mem); err != nil {
		return nil, err
	}
	return snap, nil
}

// maxImage is the size of the largest image, each of which stays in memory as
// long as its module does.
const maxImage = 64 << 20

// savedState is the state file of a cache entry, as JSON.
type savedState struct {
	traits
	Native  string // what the engine calls the native code; "" where that is its own file
	Globals []uint64
	Random  int
	Plain   string // why there is no snapshot; Globals and an image are not there then
}

// save puts the snapshot into what is saved, and its image into a directory.
func (s *snapshot) save(state *savedState, dir string) error {
	state.Globals, state.Random = s.state, s.generatorOffset
	f, err := os.OpenFile(filepath.Join(dir, codecache.ImageFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	// Nothing sums up its content, so a loss of power must not leave it empty.
	return errors.Join(s.image.Write(f), f.Sync(), f.Close())
}

// parseState reads what was saved of a snapshot beside the image.
func parseState(c *codecache.Contents) (*savedState, error) {
	state := &savedState{}
	if err := json.Unmarshal(c.State, state); err != nil {
		return nil, fmt.Errorf("read %s: %w", codecache.StateFile, err)
	}
	if state.Plain != "" && c.Image == nil {
		return state, nil
	}
	if c.Image == nil || state.Random < 0 || state.Random > len(c.Image.Bytes())-generatorSize {
		return nil, fmt.Errorf("read %s: it does not fit the image", codecache.StateFile)
	}
	return state, nil
}

// snapshot is the one that was saved with this image; nil if there is none.
func (s *savedState) snapshot(image *linear.Image) *snapshot {
	if s.Plain != "" {
		return nil
	}
	return &snapshot{image: image, state: s.Globals, generatorOffset: s.Random}
}

// whyNotReusable says why an instance of a module has state that cannot be put
// back. code is what was compiled of it.
func whyNotReusable(code []byte) error {
	m, err := wasm.Decode(code)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotReusable, err)
	}
	why, err := fuel.WhyNotReusable(m)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotReusable, err)
	}
	return fmt.Errorf("%w: %s", errNotReusable, why)
}

// stateOf returns the globals that hold the state of an instance, nil if they
// do not.
func stateOf(mod api.Module) []api.MutableGlobal {
	if mod.ExportedGlobal(fuel.ExportReusable) == nil {
		return nil
	}
	var state []api.MutableGlobal
	add := func(name string) bool {
		g, ok := mod.ExportedGlobal(name).(api.MutableGlobal)
		if ok {
			state = append(state, g)
		}
		return ok
	}
	if !add(fuel.ExportFuel) || !add(fuel.ExportDepth) {
		return nil
	}
	for i := 0; add(fuel.ExportGlobal(i)); i++ {
	}
	return state
}

// initRandom is the randomness of an initialisation. It keeps the first
// answer.
type initRandom struct {
	source io.Reader
	first  []byte
}

func (r *initRandom) Read(p []byte) (int, error) {
	n, err := r.source.Read(p)
	if r.first == nil {
		r.first = bytes.Clone(p[:n])
	}
	return n, err
}

// Go's generator as it lies in memory (internal/chacha8rand.State): 32 words
// of output, the seed, and three counters of 32 bits: the next word, how many
// there are, and the position in the stream.
const (
	generatorSeed = 32 * 8
	generatorNext = generatorSeed + 32
	generatorSize = generatorNext + 3*4
)

// maxSearched is how much of a memory is searched.
const maxSearched = 16 << 20

// findGenerator looks for the generator of the first thread of a Go program
// that got these first random bytes, and has used some of that generator or
// nothing of it. It returns 0 if there is none; nothing of Go's lies there.
//
// The runtime seeds a generator with the bytes (runtime.randinit), takes four
// words of it for the hashes of maps (alginit), and the next four to seed the
// one of the thread (mrandinit).
func findGenerator(mod api.Module, first []byte) int {
	if len(first) != 32 {
		return 0
	}
	global := rand.NewChaCha8([32]byte(first))
	for range 4 {
		global.Uint64()
	}
	var seed [32]byte
	for i := range 4 {
		binary.LittleEndian.PutUint64(seed[i*8:], global.Uint64())
	}
	var words [32 * 8]byte
	thread := rand.NewChaCha8(seed)
	for i := range 32 {
		binary.LittleEndian.PutUint64(words[i*8:], thread.Uint64())
	}
	// It is a variable of the runtime, and these come before the heap.
	mem, ok := mod.Memory().Read(0, min(mod.Memory().Size(), maxSearched))
	if !ok {
		return 0
	}
	for at := 0; ; {
		i := bytes.Index(mem[at:], seed[:])
		if i < 0 {
			return 0
		}
		at += i
		if from := at - generatorSeed; from > 0 && len(mem)-from >= generatorSize && bytes.Equal(mem[from:at], words[:]) {
			return from
		}
		at++
	}
}

// forceReseed makes a generator take its seed at the next number.
func forceReseed(generator []byte) {
	next := generator[generatorNext:generatorSize]
	copy(next, next[4:8]) // as many as there are
	clear(next[8:])
	clear(generator[:generatorNext])
}
