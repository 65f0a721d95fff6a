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

// snapshot is the state of a guest right after its initialisation: its memory and its
// globals. Every call of the module begins with it. Until then nothing was mounted, granted
// or readable, the clocks stood still, and the randomness was the same for everybody. See
// RATIONALE, "Why does every call begin with a snapshot?"
type snapshot struct {
	image           *linear.Image
	state           []uint64 // values of the globals that stateOf returns
	generatorOffset int      // offset of Go's random generator in the memory; 0: none was found
}

// SnapshotInfo describes the snapshot of a module.
type SnapshotInfo struct {
	// ImageBytes is the size of the memory after the initialisation, to which an instance is
	// reset after each call. 0: there is no snapshot, and each call initialises a new
	// instance.
	ImageBytes int64
	Why        string // reason why there is no snapshot, for people; "": there is one
	// Reseeded is set if the random generator of Go was found in the module, so that each call
	// gives it a fresh seed. Random numbers that a module drew during its initialisation are
	// the same in all calls.
	Reseeded bool
}

// Snapshot makes a module ready to run, like its first call, and describes its snapshot.
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

// initTimeout limits the time of a module's initialisation for a snapshot; beyond it there is
// no snapshot. Its fuel and its memory have the default limits of a call.
const initTimeout = 3 * time.Second

// initTime is the time that the clock shows while a module initialises.
var initTime = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// errNotReusable is wrapped by the reason why a module has no snapshot, if that reason will be
// the same next time.
var errNotReusable = errors.New("an instance of it cannot be put back to its beginning")

// newSnapshot initialises a module and returns its snapshot. code is admit.Module.Code.
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
			err = fmt.Errorf("%w: it fails: %w", errNotReusable, err) // it will fail next time as well
		}
		return nil, err
	}
	inst.account.Close() // sets the guest's counter to 0
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

// maxImage limits the bytes of an image; a module with more memory has no snapshot. An image
// stays in memory as long as its module does.
const maxImage = 64 << 20

// savedState is the JSON in the state file of a cache entry.
type savedState struct {
	traits
	Native  string   // name that the engine gives to the native code; "": the engine has its own file
	Globals []uint64 // snapshot.state
	Random  int      // snapshot.generatorOffset
	Plain   string   // reason why there is no snapshot; then there are no Globals and no image; "": there is one
}

// save copies the snapshot into state, and writes its image into dir.
func (s *snapshot) save(state *savedState, dir string) error {
	state.Globals, state.Random = s.state, s.generatorOffset
	f, err := os.OpenFile(filepath.Join(dir, codecache.ImageFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	// The image has no checksum, so a power failure must not leave an empty file.
	return errors.Join(s.image.Write(f), f.Sync(), f.Close())
}

// parseState parses the state file of a cache entry, and checks that it fits the image.
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

// snapshot returns the saved snapshot with its image; nil if the module has none.
func (s *savedState) snapshot(image *linear.Image) *snapshot {
	if s.Plain != "" {
		return nil
	}
	return &snapshot{image: image, state: s.Globals, generatorOffset: s.Random}
}

// whyNotReusable returns the reason why instances of a module have state that cannot be reset.
// code is admit.Module.Code.
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

// stateOf returns the globals that hold the state of an instance: the counters of fuel and
// depth, then the module's own. It returns nil if the state cannot be reset.
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

// initRandom is the source of randomness during an initialisation. first is its first answer.
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

// Layout of Go's generator in memory (internal/chacha8rand.State): 32 words of output, the
// seed, and three counters of 32 bits: the next word, the number of words, and the position
// in the stream.
const (
	generatorSeed = 32 * 8
	generatorNext = generatorSeed + 32
	generatorSize = generatorNext + 3*4
)

// maxSearched limits the bytes from the beginning of the memory that findGenerator searches.
const maxSearched = 16 << 20

// findGenerator returns the offset in the memory of the random generator of a Go program's
// first thread; 0: it finds none (Go stores nothing at 0). first holds the first random bytes
// that the program read. The generator can be found only until its first 32 words are used up.
//
// The runtime seeds a global generator with these bytes (runtime.randinit), uses four of its
// words for the hashes of maps (alginit), and the next four as the seed of the thread's
// generator (mrandinit).
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
	// The generator is a variable of the runtime; variables lie before the heap.
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

// forceReseed makes the generator in these bytes use its seed for the next number.
func forceReseed(generator []byte) {
	next := generator[generatorNext:generatorSize]
	copy(next, next[4:8]) // next = number of words: all are used
	clear(next[8:])
	clear(generator[:generatorNext])
}
