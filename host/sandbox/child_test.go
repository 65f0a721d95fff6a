package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// TestTheLimitsOfAChild: the limits grow with the code, up to a point.
func TestTheLimitsOfAChild(t *testing.T) {
	const miB = 1 << 20
	for _, c := range []struct {
		bytes  int
		cpu    time.Duration
		memory uint64
		file   uint64
	}{
		{0, 5 * time.Second, 1024 * miB, 64 * miB},
		{miB, 5 * time.Second, 1024 * miB, 64 * miB},
		{6 * miB, 20 * time.Second, (1024 + 5*64) * miB, (64 + 5*16) * miB},
		{16 * miB, 50 * time.Second, (1024 + 15*64) * miB, (64 + 15*16) * miB},
		{64 * miB, 60 * time.Second, 4096 * miB, (64 + 63*16) * miB},
		{1 << 40, 60 * time.Second, 4096 * miB, (64<<20 + (1<<40-miB)*16)},
	} {
		cpu, memory, file := sandbox.Limits(c.bytes)
		if cpu != c.cpu || memory != c.memory || file != c.file {
			t.Errorf("%d bytes: %s, %d and %d MiB; want %s, %d and %d", c.bytes, cpu, memory/miB, file/miB, c.cpu, c.memory/miB, c.file/miB)
		}
	}
}

// TestAChildThatIsToldNonsense: it reports an error and compiles nothing.
func TestAChildThatIsToldNonsense(t *testing.T) {
	good := []string{"2", "5000000000", "1073741824", "67108864"}
	change := func(i int, arg string) []string {
		args := slices.Clone(good)
		args[i] = arg
		return args
	}
	for name, args := range map[string][]string{
		"nothing":            {},
		"too little":         good[:3],
		"too much":           append(slices.Clone(good), "1"),
		"no number":          change(1, "5s"),
		"a negative number":  change(2, "-1"),
		"a huge number":      change(2, "99999999999999999999"),
		"no workers":         change(0, "0"),
		"no processor time":  change(1, "0"),
		"no memory":          change(2, "0"),
		"no room for a file": change(3, "0"),
		"no module":          good,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if name != "no module" {
				mustWrite(t, filepath.Join(dir, "module.wasm"), string(branches(1)))
			}
			end, err := jail.RunHelper(t.Context(), dir, append([]string{sandbox.ChildCommand}, args...)...)
			if err != nil || end.Code == nil || *end.Code != 74 || len(end.Stdout) == 0 {
				t.Errorf("got %+v, %v", end, err)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "*", "*")); err != nil || len(left) > 0 {
				t.Errorf("it left %v, %v", left, err)
			}
		})
	}
}

// TestThisProcessCannotCompile: without native code it fails instead of compiling.
func TestThisProcessCannotCompile(t *testing.T) {
	code, err := sandbox.Rewritten(probe(w.ToolOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	for name, code := range map[string][]byte{"a tool": code, "what takes long": nestedLoops(300)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			start := time.Now()
			if err := sandbox.Link(dir, code); err == nil || !strings.Contains(err.Error(), "no native code") {
				t.Errorf("it is loaded from nothing: %v", err)
			}
			if d := time.Since(start); d > 2*time.Second {
				t.Errorf("it took %s", d)
			}
			if files, err := filepath.Glob(filepath.Join(dir, "*", "*")); err != nil || len(files) > 0 {
				t.Errorf("now there is %v, %v", files, err)
			}
		})
	}
}

// TestAnotherBuildUsesNoCodeOfThisOne: another build may refuse modules that this one admits.
func TestAnotherBuildUsesNoCodeOfThisOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	var compiled []string
	for _, build := range []string{"1", "2", "1", "2"} {
		box := newBox(t, sandbox.Options{CacheDir: dir, Build: build, OnCompile: func(*tool.Module) { compiled = append(compiled, build) }})
		output(t, granted(t, probe(w.ToolOptions{}), ask{}).mustRun(t, box))
	}
	if !slices.Equal(compiled, []string{"1", "2"}) {
		t.Errorf("it was compiled by %v", compiled)
	}
}

// TestWhatNobodyUsesIsRemoved: entries are removed after a month, and leftovers of a crash
// after an hour.
func TestWhatNobodyUsesIsRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	now := time.Now()
	key := func(digest string) string { return sandbox.CacheKey(digest, "") }
	const hour = time.Hour
	for _, c := range []struct {
		name  string
		file  string
		age   time.Duration // age of usedFile, or of the directory if it has none
		stays bool
	}{
		{key("fresh"), "used", hour, true},
		{key("a month old"), "used", 29 * 24 * hour, true},
		{key("older"), "used", 31 * 24 * hour, false},
		{key("from before there were marks"), "", 31 * 24 * hour, false},
		{key("fresh, without a mark"), "", hour, true},
		{"stockade-new-1", "", 59 * time.Minute, true},
		{"stockade-new-2", "", 61 * time.Minute, false},
		{"stockade-old-3", "", 61 * time.Minute, false},
		{"of somebody else", "", 999 * 24 * hour, true},
	} {
		file := filepath.Join(dir, c.name, c.file)
		if c.file != "" {
			mustWrite(t, file, "")
		} else if err := os.MkdirAll(file, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, now.Add(-c.age), now.Add(-c.age)); err != nil {
			t.Fatal(err)
		}
		if err := sandbox.Sweep(dir, now); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, c.name)); (err == nil) != c.stays {
			t.Errorf("%s, %s old: %v", c.name, c.age, err)
		}
	}

	t.Run("by whoever compiles", func(t *testing.T) {
		stray := filepath.Join(dir, "stockade-new-4")
		if err := os.Mkdir(stray, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(stray, now.Add(-2*hour), now.Add(-2*hour)); err != nil {
			t.Fatal(err)
		}
		output(t, granted(t, probe(w.ToolOptions{}), ask{}).mustRun(t, newBox(t, sandbox.Options{CacheDir: dir})))
		missing(t, stray)
	})
	t.Run("an entry that is used is not", func(t *testing.T) {
		used, err := filepath.Glob(filepath.Join(dir, "*", "sums"))
		if err != nil || len(used) != 1 {
			t.Fatalf("%v, %v", used, err)
		}
		mark := filepath.Join(filepath.Dir(used[0]), "used")
		if err := os.Chtimes(mark, now.Add(-29*24*hour), now.Add(-29*24*hour)); err != nil {
			t.Fatal(err)
		}
		output(t, granted(t, probe(w.ToolOptions{}), ask{}).mustRun(t, newBox(t, sandbox.Options{CacheDir: dir})))
		if err := sandbox.Sweep(dir, now.Add(29*24*hour)); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(mark); err != nil {
			t.Error(err)
		}
	})
}
