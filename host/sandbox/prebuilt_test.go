package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/sandbox/native"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// packed returns the files that Pack writes for a module.
func packed(t testing.TB, mod *tool.Module) fstest.MapFS {
	t.Helper()
	out := t.TempDir()
	box := newBox(t, sandbox.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	if err := box.Pack(t.Context(), mod, out); err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, name := range []string{"index", "content"} {
		data, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: data}
	}
	return files
}

// prebuilt is a program that was built with these files of every module. It records the
// answer of a call, the number of compiling processes, and the operator's log.
type prebuilt struct {
	cache   string
	pack    fs.FS
	started int
}

func (p *prebuilt) run(t *testing.T, mod *tool.Module) (answer, log string) {
	t.Helper()
	logger, said := logBuffer()
	opts := sandbox.Options{
		CacheDir: p.cache, Logger: logger,
		Spawn: func(ctx context.Context, dir string, args ...string) (services.CommandResult, error) {
			p.started++
			return jail.RunHelper(ctx, dir, args...)
		},
	}
	if p.pack != nil {
		opts.Prebuilt = func(string) fs.FS { return p.pack }
	}
	box := sandbox.New(opts)
	answer = output(t, granted(t, mod, ask{}).mustRun(t, box))
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	return answer, said.String()
}

// TestPrebuiltCodeIsNotCompiled: the first call in a new home starts no process, and leaves a
// complete entry in the cache.
func TestPrebuiltCodeIsNotCompiled(t *testing.T) {
	mod := probe(w.ToolOptions{})
	pack := packed(t, mod)
	for name, p := range map[string]*prebuilt{
		"with a cache":    {cache: filepath.Join(t.TempDir(), "a", "cache"), pack: pack},
		"without a cache": {pack: pack},
	} {
		t.Run(name, func(t *testing.T) {
			tmp := t.TempDir()
			t.Setenv("TMPDIR", tmp)
			if answer, log := p.run(t, mod); answer != "ok" || p.started != 0 || log != "" {
				t.Errorf("answer %q, %d processes, log %q", answer, p.started, log)
			}
			if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
				t.Errorf("it left %v, %v", left, err)
			}
			if p.cache == "" {
				return
			}
			if left, err := os.ReadDir(p.cache); err != nil || len(left) != 1 {
				t.Errorf("the cache holds %v, %v", left, err)
			}
			p.pack = nil
			if answer, log := p.run(t, mod); answer != "ok" || p.started != 0 || log != "" {
				t.Errorf("from the cache: answer %q, %d processes, log %q", answer, p.started, log)
			}
		})
	}
	t.Run("the same module gives the same bytes", func(t *testing.T) {
		for name, f := range packed(t, mod) {
			if !bytes.Equal(f.Data, pack[name].Data) {
				t.Errorf("%s differs", name)
			}
		}
	})
	t.Run("what cannot be put back is not packed", func(t *testing.T) {
		box := newBox(t, sandbox.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
		if err := box.Pack(t.Context(), probe(plain(w.ToolOptions{})), t.TempDir()); err == nil {
			t.Error("it is")
		}
	})
}

// packIndex as JSON, for tests that damage it.
type (
	packIndex struct {
		Fit   string
		Files map[string][]piece
	}
	piece struct {
		At            int64
		Packed, Bytes int
		Sum           uint32
	}
)

// respelled returns a pack with another index, and maybe more content.
func respelled(t testing.TB, pack fstest.MapFS, change func(*packIndex, *[]byte)) fstest.MapFS {
	t.Helper()
	var index packIndex
	if err := json.Unmarshal(pack["index"].Data, &index); err != nil {
		t.Fatal(err)
	}
	content := bytes.Clone(pack["content"].Data)
	change(&index, &content)
	data, err := json.Marshal(index)
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{"index": {Data: data}, "content": {Data: content}}
}

// TestPrebuiltCodeThatDoesNotFit: such code never runs. The module is compiled, and the log
// has the reason.
func TestPrebuiltCodeThatDoesNotFit(t *testing.T) {
	mod := probe(w.ToolOptions{})
	pack := packed(t, mod)
	var good packIndex
	if err := json.Unmarshal(pack["index"].Data, &good); err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{mod.Digest, fmt.Sprint(fuel.Version), native.LinkedVersion(), runtime.GOOS, runtime.GOARCH} {
		if !strings.Contains(good.Fit, says) {
			t.Errorf("what it depends on is %s, without %s", good.Fit, says)
		}
	}

	cases := map[string]fstest.MapFS{
		"of another module": packed(t, probe(w.ToolOptions{Call: w.ReturnOK("other")})),
		"nothing":           {},
		"no content":        {"index": pack["index"]},
		"no index":          {"content": pack["content"]},
		"an empty index":    {"index": {}, "content": pack["content"]},
		"an empty content":  {"index": pack["index"], "content": {}},
		"a content cut off": {"index": pack["index"], "content": {Data: pack["content"].Data[:len(pack["content"].Data)-1]}},
	}
	// Each thing that it depends on: the processor, as the engine sees it, is the last.
	parts := strings.Split(strings.Trim(good.Fit, `["]`), `" "`)
	if len(parts) < 8 {
		t.Fatalf("it depends on %q", parts)
	}
	for _, part := range parts {
		cases["of another "+part] = respelled(t, pack, func(x *packIndex, _ *[]byte) {
			x.Fit = strings.Replace(x.Fit, part, part+"0", 1)
		})
	}
	// Whatever bit has changed of the content.
	content := pack["content"].Data
	for i := range 16 {
		at := i * (len(content) - 1) / 15
		spoiled := bytes.Clone(content)
		spoiled[at] ^= 1 << (i % 8)
		cases[fmt.Sprintf("a flipped bit at %d", at)] = fstest.MapFS{"index": pack["index"], "content": {Data: spoiled}}
	}
	// With sums that fit.
	replace := func(file string, data []byte) fstest.MapFS {
		return respelled(t, pack, func(x *packIndex, content *[]byte) {
			x.Files[file] = nil
			if len(data) > 0 {
				x.Files[file] = []piece{{int64(len(*content)), len(data), len(data), crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))}}
				*content = append(*content, data...)
			}
		})
	}
	for file := range good.Files {
		cases["no "+file] = replace(file, nil)
		cases["text as "+file] = replace(file, bytes.Repeat([]byte("x"), 4096))
		cases["a huge "+file] = respelled(t, pack, func(x *packIndex, _ *[]byte) { x.Files[file][0].Bytes = 1 << 40 })
		cases["a negative "+file] = respelled(t, pack, func(x *packIndex, _ *[]byte) { x.Files[file][0].Packed = -1 })
		cases["endless "+file] = respelled(t, pack, func(x *packIndex, _ *[]byte) {
			for range 100 {
				x.Files[file] = append(x.Files[file], piece{0, 1 << 20, 1 << 20, 0})
			}
		})
		cases["elsewhere "+file] = respelled(t, pack, func(x *packIndex, _ *[]byte) { x.Files[file][0].At = -1 })
	}
	// What the engine would not find on this processor, if the rest was right.
	cases["another processor's name for the code"] = replace("state", []byte(`{"Native":"`+strings.Repeat("0", 64)+`","Globals":[0,0],"Random":0}`))
	delete(cases, "text as image") // an image is what a guest's memory may hold

	for name, pack := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &prebuilt{cache: filepath.Join(t.TempDir(), "cache"), pack: pack}
			if answer, log := p.run(t, mod); answer != "ok" || p.started != 1 || !strings.Contains(log, "cannot be used and is made again") {
				t.Errorf("answer %q, %d processes, log %q", answer, p.started, log)
			}
			if left, err := os.ReadDir(p.cache); err != nil || len(left) != 1 {
				t.Errorf("the cache holds %v, %v", left, err)
			}
			if answer, log := p.run(t, mod); answer != "ok" || p.started != 1 || log != "" {
				t.Errorf("again: answer %q, %d processes, log %q", answer, p.started, log)
			}
		})
	}
	t.Run("where the engine has its own files", func(t *testing.T) {
		defer sandbox.WithoutOurFiles()()
		p := &prebuilt{cache: filepath.Join(t.TempDir(), "cache"), pack: pack}
		if answer, log := p.run(t, mod); answer != "ok" || p.started != 1 || !strings.Contains(log, "made again") {
			t.Errorf("answer %q, %d processes, log %q", answer, p.started, log)
		}
	})
	t.Run("a bit of the index", func(t *testing.T) {
		for i := 0; i < len(pack["index"].Data); i += 29 {
			spoiled := bytes.Clone(pack["index"].Data)
			spoiled[i] ^= 1 << (i % 8)
			p := &prebuilt{pack: fstest.MapFS{"index": {Data: spoiled}, "content": pack["content"]}}
			if answer, _ := p.run(t, mod); answer != "ok" {
				t.Errorf("bit %d: answer %q", i, answer)
			}
		}
	})
}

// TestWhatIsExpectedIsLoadedAndNotRun: a module of the program is loaded before its call,
// other modules are not touched, and neither keeps the sandbox from closing.
func TestWhatIsExpectedIsLoadedAndNotRun(t *testing.T) {
	pack := packed(t, probe(w.ToolOptions{}))
	for origin, want := range map[tool.Origin]bool{tool.OriginBuiltin: true, tool.OriginFile: false, tool.OriginAdded: false} {
		mod := probe(w.ToolOptions{})
		mod.Origin = origin
		cache := filepath.Join(t.TempDir(), "cache")
		box := sandbox.New(sandbox.Options{CacheDir: cache, Prebuilt: func(string) fs.FS { return pack }, Spawn: jail.RunHelper})
		box.Preload(mod)
		box.Preload(mod)
		if err := box.Close(); err != nil { // which waits
			t.Error(err)
		}
		box.Preload(mod)
		if left, err := os.ReadDir(cache); (err == nil && len(left) == 1) != want {
			t.Errorf("%s: the cache holds %v, %v", origin, left, err)
		}
	}
}
