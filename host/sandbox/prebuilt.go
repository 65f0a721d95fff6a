package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"

	"github.com/stockade-dev/stockade/host/sandbox/codecache"
	"github.com/stockade-dev/stockade/host/sandbox/linear"
	"github.com/stockade-dev/stockade/host/sandbox/native"
	"github.com/stockade-dev/stockade/host/tool"
)

// Names of the two files of a prebuilt module.
const (
	packIndexFile   = "index"   // a packIndex in JSON
	packContentFile = "content" // the compressed pieces
)

type packIndex struct {
	Fit   string             // fitKey of the programs and machines that can use the code
	Files map[string][]piece // pieces of each file, in order
}

// Names of the parts of a [native.File], which are packed as files. Other packed files have
// the names that they have in a cache entry: codecache.ModuleFile, StateFile and ImageFile.
const (
	packedHead = "head"
	packedCode = "code"
	packedTail = "tail"
)

// piece is a part of a file that is compressed by itself, so that all processors can unpack.
type piece struct {
	At     int64  // offset in packContentFile
	Packed int    // packed size in bytes; equal to Bytes: not compressed; 0: the piece is all zeros
	Bytes  int    // unpacked size in bytes, at most pieceBytes
	Sum    uint32 // CRC-32C of the packed bytes
}

const (
	pieceBytes = 1 << 20
	zeroBytes  = 1 << 16 // size of the parts of a file that are checked for being all zeros
)

// pieces divides a file into pieces. Long runs of zeros, in steps of zeroBytes, are pieces of
// their own, which are neither stored nor unpacked: half of a memory image is zeros.
func pieces(data []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(data) > 0 {
			n := min(zeroBytes, len(data))
			for zero := isZero(data[:n]); n < min(pieceBytes, len(data)); {
				next := min(n+zeroBytes, len(data))
				if isZero(data[n:next]) != zero {
					break
				}
				n = next
			}
			if !yield(data[:n]) {
				return
			}
			data = data[n:]
		}
	}
}

func isZero(data []byte) bool { return len(bytes.TrimLeft(data, "\x00")) == 0 }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// fitKey returns the things that prebuilt code of a module depends on, as one text. The key of
// the cache has more: it covers the whole processor, not only the features that the engine
// uses, and the build. See RATIONALE, "Why is native code part of the program?"
func fitKey(digest string) (string, error) {
	machine, err := engineTarget()
	return fmt.Sprintf("%q", append(codeKeyParts(digest), machine)), err
}

// engineTarget returns the processor features that the engine relies on, in the engine's
// words. Only a running engine reveals them.
var engineTarget = sync.OnceValues(func() (string, error) {
	return nameOf([]byte("\x00asm\x01\x00\x00\x00")) // an empty module
})

// Pack compiles a module like Compile and writes the result into an existing directory, for
// [Options.Prebuilt]. The sandbox needs a cache. A module without a snapshot is an error. On
// the same kind of machine, the same module always gives the same bytes.
func (s *Sandbox) Pack(ctx context.Context, mod *tool.Module, dir string) error {
	if err := s.Compile(ctx, mod); err != nil {
		return err
	}
	place, err := codecache.Open(s.opts.CacheDir, cacheKey(mod.Digest, s.opts.Build))
	if err != nil {
		return err
	}
	defer place.Close()
	entry, err := place.Get()
	if err != nil {
		return err
	}
	defer entry.Close()
	if entry.Native == nil || entry.Image == nil {
		return errors.New("it has no snapshot, or its native code is in the engine's own files")
	}
	fit, err := fitKey(mod.Digest)
	if err != nil {
		return err
	}
	head, tail, code := entry.Native.Parts()
	all, err := io.ReadAll(code)
	if err != nil {
		return err
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		return err
	}
	index := packIndex{Fit: fit, Files: map[string][]piece{}}
	var content []byte
	for _, file := range []struct {
		name string
		data []byte
	}{
		{codecache.ModuleFile, entry.Code}, {codecache.StateFile, entry.State}, {codecache.ImageFile, entry.Image.Bytes()},
		{packedHead, head}, {packedCode, all}, {packedTail, tail},
	} {
		for data := range pieces(file.data) {
			c := piece{Bytes: len(data)}
			if !isZero(data) {
				packed := encoder.EncodeAll(data, nil)
				if len(packed) >= len(data) {
					packed = data
				}
				c.At, c.Packed, c.Sum = int64(len(content)), len(packed), crc32.Checksum(packed, castagnoli)
				content = append(content, packed...)
			}
			index.Files[file.name] = append(index.Files[file.name], c)
		}
	}
	data, err := json.Marshal(index)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, packIndexFile), data, 0o644),
		os.WriteFile(filepath.Join(dir, packContentFile), content, 0o644))
}

type pack struct {
	packIndex
	content io.ReaderAt
}

// prebuilt opens the prebuilt files of a module; nil if there are none. It fails if they are
// for another version of the program or another kind of processor.
func (s *Sandbox) prebuilt(mod *tool.Module) (*pack, error) {
	if s.opts.Prebuilt == nil {
		return nil, nil
	}
	dir := s.opts.Prebuilt(mod.Digest)
	if dir == nil {
		return nil, nil
	}
	want, err := fitKey(mod.Digest)
	if err != nil {
		return nil, err
	}
	data, err := fs.ReadFile(dir, packIndexFile)
	if err != nil {
		return nil, err
	}
	p := &pack{}
	if err := json.Unmarshal(data, &p.packIndex); err != nil {
		return nil, err
	}
	if p.Fit != want {
		return nil, errors.New("it is for another processor or another version of this program")
	}
	f, err := dir.Open(packContentFile)
	if err != nil {
		return nil, err
	}
	p.content, _ = f.(io.ReaderAt) // embedded files implement it
	if p.content == nil {
		return nil, fmt.Errorf("%s cannot be read", packContentFile)
	}
	return p, nil
}

// bytes returns the unpacked size of a packed file.
func (p *pack) bytes(name string) int {
	n := 0
	for _, c := range p.Files[name] {
		n += c.Bytes
	}
	return n
}

// check returns an error if a size in the index is impossible.
func (p *pack) check() error {
	for name, pieces := range p.Files {
		for _, c := range pieces {
			if c.Bytes <= 0 || c.Bytes > pieceBytes || c.Packed < 0 || c.Packed > c.Bytes {
				return fmt.Errorf("%s: a piece of %d bytes that unpacks to %d", name, c.Packed, c.Bytes)
			}
		}
	}
	if p.bytes(codecache.ImageFile) > maxImage {
		return fmt.Errorf("%s has %d bytes", codecache.ImageFile, p.bytes(codecache.ImageFile))
	}
	return nil
}

// each yields the pieces of a file that are not zeros, with their offsets in the file.
func (p *pack) each(name string) iter.Seq2[int, piece] {
	return func(yield func(int, piece) bool) {
		at := 0
		for _, c := range p.Files[name] {
			if c.Packed > 0 && !yield(at, c) {
				return
			}
			at += c.Bytes
		}
	}
}

// unpack unpacks the piece c into to, which has its size. spare has room for any packed piece.
func (p *pack) unpack(c piece, to, spare []byte) error {
	packed := spare[:c.Packed]
	if _, err := p.content.ReadAt(packed, c.At); err != nil {
		return errors.New(err.Error()) // not an fs.PathError, after which the call would be tried again without a cache
	}
	if crc32.Checksum(packed, castagnoli) != c.Sum {
		return errors.New("its checksum is wrong")
	}
	if c.Packed == c.Bytes {
		copy(to, packed)
		return nil
	}
	out, err := decoder().DecodeAll(packed, to[:0:c.Bytes]) // which is in place, as it fits
	if err == nil && len(out) != c.Bytes {
		err = fmt.Errorf("it has %d bytes, want %d", len(out), c.Bytes)
	}
	return err
}

var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(pieceBytes))
	if err != nil {
		panic(err) // the options are constant
	}
	return d
})

// unpack loads a prebuilt module. If place is not nil it also writes the module, in the
// background, into that entry of the cache, from which it loads faster and shares memory with
// other processes.
func (s *Sandbox) unpack(mod *tool.Module, p *pack, place *codecache.Entry) (*compiledModule, error) {
	dir, err := place.NewDir()
	if err != nil {
		return nil, err
	}
	c, state, err := p.load(dir)
	if err != nil || place == nil {
		_ = os.RemoveAll(dir)
		return c, err
	}
	// Caching continues in the background, so that the call does not wait for the disk.
	c.storing.Go(func() {
		defer os.RemoveAll(dir) // does nothing once the directory is in the cache
		place, err := place.Reopen()
		if err == nil {
			defer place.Close()
			err = c.store(dir, state, place)
		}
		if err != nil {
			s.warnNotCached(mod, err)
		}
	})
	return c, nil
}

// load unpacks the module into a directory and loads it from there.
func (p *pack) load(dir string) (_ *compiledModule, _ *savedState, err error) {
	found, err := p.unpackInto(dir)
	if err != nil {
		return nil, nil, err
	}
	defer found.CloseNative()
	defer func() {
		if err != nil {
			found.Image.Close()
		}
	}()
	state, err := parseState(found)
	if err != nil {
		return nil, nil, err
	}
	c, err := loadNative(dir, found, state.traits, state.Native)
	if err != nil {
		return nil, nil, err
	}
	c.snap = state.snapshot(found.Image)
	return c, state, nil
}

// unpackInto writes the module and its native code into a directory, like an entry of the
// cache. It returns their contents, with the image.
func (p *pack) unpackInto(dir string) (*codecache.Contents, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	small := map[string][]byte{codecache.ModuleFile: nil, codecache.StateFile: nil, packedHead: nil, packedTail: nil}
	spare := make([]byte, pieceBytes)
	for name := range small {
		data := make([]byte, p.bytes(name))
		small[name] = data
		for at, c := range p.each(name) {
			if err := p.unpack(c, data[at:][:c.Bytes], spare); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	head, offset, size, err := native.RebuildHead(small[packedHead])
	if err != nil {
		return nil, err
	}
	if int64(p.bytes(packedCode)) != size {
		return nil, fmt.Errorf("%s has %d bytes, want %d", packedCode, p.bytes(packedCode), size)
	}
	if err := os.WriteFile(filepath.Join(dir, codecache.ModuleFile), small[codecache.ModuleFile], 0o600); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, codecache.NativeFile), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, errHead := f.WriteAt(head, 0)
	_, errTail := f.WriteAt(small[packedTail], offset+size)
	image := make([]byte, p.bytes(codecache.ImageFile))
	var jobs []func(buf, spare []byte) error
	for at, c := range p.each(codecache.ImageFile) {
		jobs = append(jobs, func(_, spare []byte) error { return p.unpack(c, image[at:][:c.Bytes], spare) })
	}
	for at, c := range p.each(packedCode) {
		jobs = append(jobs, func(buf, spare []byte) error {
			if err := p.unpack(c, buf[:c.Bytes], spare); err != nil {
				return err
			}
			_, err := f.WriteAt(buf[:c.Bytes], offset+int64(at))
			return err
		})
	}
	if err := errors.Join(errHead, errTail, runParallel(jobs)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	c := &codecache.Contents{Code: small[codecache.ModuleFile], State: small[codecache.StateFile]}
	if c.Native, err = native.Open(f); err != nil {
		return nil, err
	}
	if c.Image, err = linear.NewImage(image); err != nil {
		c.CloseNative()
		return nil, err
	}
	return c, nil
}

// runParallel runs jobs on all processors. Each gets two buffers of pieceBytes for its time.
func runParallel(jobs []func(buf, spare []byte) error) error {
	var next atomic.Int64
	errs := make([]error, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			buf, spare := make([]byte, pieceBytes), make([]byte, pieceBytes)
			for errs[w] == nil {
				i := int(next.Add(1)) - 1
				if i >= len(jobs) {
					return
				}
				errs[w] = jobs[i](buf, spare)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
