//go:build unix

package selftest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// cacheCases concern compiled code that was changed on disk.
func cacheCases() []testCase {
	return []testCase{{
		id: "R27", title: "compiled code that was changed on disk",
		attacks: "compiled-code-changed compiled-code-of-others", also: try(poisonings),
		open: "who has the rights of the user and writes the sums anew, with the time and number of the inode, is believed: " +
			"the directory has to be private, and one that is not is refused as a whole, so there is no key that would tell",
	}}
}

// bufferLow is in the memory of every tool, beyond the part that its allocator uses.
const bufferLow = 0x8000

// entry is the cache's entry of a module.
type entry struct{ dir, native string }

func (t *trial) entry(cache string) (entry, error) {
	natives, err := filepath.Glob(filepath.Join(cache, "*", "native"))
	if err != nil || len(natives) != 1 {
		return entry{}, newUntried("the cache holds %q, %v", natives, err)
	}
	return entry{filepath.Dir(natives[0]), natives[0]}, nil
}

// poisonings has a module compiled, changes its entry in the cache, and runs it again:
// the changed code must never run. Files that others could have written are tested in
// package sandbox.
func poisonings(t *trial) error {
	if err := t.noteState("."); err != nil { // changes are checked one by one
		return err
	}
	// The texts are constants in the code, which are in the instructions unchanged. With
	// so many functions before it, the constant is beyond the hashed part.
	newModule := func(text string, functions int) []byte {
		o := w.ToolOptions{}
		o.Call = code(w.I32Const(bufferLow), w.Call(o.CallFunc()+1+uint32(functions)), w.I32Store(0),
			w.ReturnWords(w.ResultOK, w.ScratchBase+24, 1, 0, 0, 0, w.ContentText, bufferLow, 4, 0, 0, 0, 0, 0, 0))
		o.Edit = func(b *w.Builder) {
			for range functions {
				b.Func("", i32x1, nil, nil, bytes.Repeat(code(w.LocalGet(0), w.I32Const(1), w.I32Store(0)), 1000))
			}
			b.Func("", nil, i32x1, nil, w.I32Const(int32(binary.LittleEndian.Uint32([]byte(text)))))
		}
		return w.Tool(o)
	}
	small, large, evil := newModule("good", 0), newModule("good", 200), newModule("evil", 0)
	n := 0
	compiled := func(code []byte) (Guest, entry, error) {
		n++
		g := Guest{Code: code, CacheDir: t.hostPath(fmt.Sprint("cache", n))}
		if err := os.Mkdir(g.CacheDir, 0o700); err != nil {
			return g, entry{}, newUntried("%v", err)
		}
		o, err := t.run(g)
		if err == nil && o.Result.Err != nil {
			err = newUntried("%s", o.Result.Summary())
		}
		if err != nil {
			return g, entry{}, err
		}
		e, err := t.entry(g.CacheDir)
		return g, e, err
	}
	_, other, err := compiled(evil)
	if err != nil {
		return err
	}
	for _, p := range []struct {
		name  string
		spoil func(e entry) error
		large bool // more code than is hashed
	}{
		{"the middle of much code, with the engine's sum of it", func(e entry) error {
			if fi, err := os.Lstat(e.native); err != nil || fi.Size() < 1<<20 {
				return fmt.Errorf("the code has %d bytes, %w", fi.Size(), err)
			}
			return inPlace(e.native, poison)
		}, true},
		{"the offset of a function", func(e entry) error { return inPlace(e.native, flipOffset) }, false},
		{"the number of functions", func(e entry) error {
			return inPlace(e.native, func(b []byte) []byte { b[headerEnd(b)-4] ^= 1; return b })
		}, false},
		{"the version", func(e entry) error { return inPlace(e.native, func(b []byte) []byte { b[8] ^= 1; return b }) }, false},
		{"the code, with the engine's sum of it", func(e entry) error { return inPlace(e.native, poison) }, false},
		{"the code, without", func(e entry) error {
			return inPlace(e.native, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
		}, false},
		{"the code, in a file that takes its place", func(e entry) error { return replaced(e.native, poison) }, false},
		{"the image", func(e entry) error { return inPlace(filepath.Join(e.dir, "image"), flipMiddle) }, false},
		{"the state", func(e entry) error { return inPlace(filepath.Join(e.dir, "state"), flipMiddle) }, false},
		{"the sums", func(e entry) error { return inPlace(filepath.Join(e.dir, "sums"), flipMiddle) }, false},
		{"the module", func(e entry) error { return inPlace(filepath.Join(e.dir, "module.wasm"), flipMiddle) }, false},
		{"the code of another module", func(e entry) error {
			return replaced(e.native, func([]byte) []byte { return must(os.ReadFile(other.native)) })
		}, false},
		{"the code of another module, in place", func(e entry) error {
			return inPlace(e.native, func([]byte) []byte { return must(os.ReadFile(other.native)) })
		}, false},
		{"all of another module", func(e entry) error {
			return errors.Join(os.RemoveAll(e.dir), os.CopyFS(e.dir, os.DirFS(other.dir)), private(e.dir))
		}, false},
	} {
		err := func() error {
			module := small
			if p.large {
				module = large
			}
			g, e, err := compiled(module)
			if err != nil {
				return err
			}
			before, err := os.ReadFile(e.native)
			if err == nil {
				err = p.spoil(e)
			}
			if err != nil {
				return newUntried("%v", err)
			}
			g.Args = []byte("{}")
			o := t.target.Run(t.ctx, g)
			switch {
			case bytes.Contains(o.Result.Output, []byte("evil")):
				return errors.New("what was changed has run")
			case o.Err != nil || !bytes.Contains(o.Result.Output, []byte("good")):
				return fmt.Errorf("%w, %s", o.Err, o.Result.Summary())
			}
			// It was compiled again, and no changed byte is left.
			now, err := t.entry(g.CacheDir)
			if err != nil {
				return err
			}
			if content, err := os.ReadFile(now.native); err != nil || !bytes.Equal(content, before) {
				return errors.Join(errors.New("it stays in the cache"), err)
			}
			return nil
		}()
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// inPlace changes a file and keeps its size, its inode and its time.
func inPlace(name string, change func([]byte) []byte) error {
	st, err := os.Lstat(name)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	b = change(b)
	if len(b) != int(st.Size()) {
		b = append(b, make([]byte, max(0, int(st.Size())-len(b)))...)[:st.Size()]
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	return errors.Join(err, f.Close(), os.Chtimes(name, st.ModTime(), st.ModTime()))
}

// replaced replaces a file by a changed copy with the same size and time.
func replaced(name string, change func([]byte) []byte) error {
	st, err := os.Lstat(name)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	aside := filepath.Dir(filepath.Dir(name)) + ".aside"
	return errors.Join(os.WriteFile(aside, change(slices.Clone(b)), 0o600), os.Chtimes(aside, st.ModTime(), st.ModTime()), os.Rename(aside, name))
}

// headerEnd returns the position of the function offsets in native code.
func headerEnd(b []byte) int {
	const magic = len("WAZEVO")
	return magic + 1 + int(b[magic]) + 4
}

func flipOffset(b []byte) []byte { b[headerEnd(b)] ^= 0x10; return b }
func flipMiddle(b []byte) []byte { b[len(b)/2] ^= 1; return b }

// poison changes a text in the code, and corrects the engine's checksum. If the text is
// not found, it only breaks the checksum.
func poison(b []byte) []byte {
	at := headerEnd(b)
	at += 8 * int(binary.LittleEndian.Uint32(b[at-4:]))
	n := int(binary.LittleEndian.Uint64(b[at:]))
	at = (at + 8 + 64<<10 - 1) &^ (64<<10 - 1) // the start of a page
	executable, sum := b[at:at+n], b[at+n:]
	if i := bytes.Index(executable, []byte("good")); i >= 0 {
		copy(executable[i:], "evil")
	} else if runtime.GOARCH == "amd64" {
		panic("the text is not in the code")
	}
	binary.LittleEndian.PutUint32(sum, crc32.Checksum(executable, crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// private removes the permissions that copying has given to others.
func private(dir string) error {
	return filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(name, 0o700)
		}
		return os.Chmod(name, 0o600)
	})
}
