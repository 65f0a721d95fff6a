package fueltest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
)

// A suite is a folder of scripts.
type suite struct {
	name     string
	features api.CoreFeatures
	least    count // smallest counts, in each way
}

var suites = []suite{
	{"v1", api.CoreFeaturesV1, count{scripts: 73, commands: 18840, assertions: 18008, text: 430}},
	{"v2", api.CoreFeaturesV2, count{scripts: 148, commands: 52915, assertions: 51139, text: 1091}},
	{"tail-call", api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall, count{scripts: 2, commands: 108, assertions: 102, text: 11}},
	{"threads", api.CoreFeaturesV2 | experimental.CoreFeaturesThreads, count{scripts: 1, commands: 327, assertions: 257, text: 0}},
	{"extended-const", api.CoreFeaturesV2 | experimental.CoreFeaturesExtendedConst, count{scripts: 3, commands: 114, assertions: 101, text: 3}},
	{"exception-handling", api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling |
		experimental.CoreFeaturesTailCall | experimental.CoreFeaturesTypedFunctionReferences, count{scripts: 4, commands: 98, assertions: 83, text: 2}},
}

// A way is one of the configurations in which each script is executed.
type way struct {
	name   string
	config func() wazero.RuntimeConfig
	// Units of fuel in each slice; 0: the code is not metered. With 1 the guest asks for
	// more at each check, with 1000 now and then.
	slice   uint64
	options fuel.Options
}

var ways = []way{
	{"plain compiler", wazero.NewRuntimeConfigCompiler, 0, fuel.Options{}},
	{"plain interpreter", wazero.NewRuntimeConfigInterpreter, 0, fuel.Options{}},
	{"metered compiler", wazero.NewRuntimeConfigCompiler, 1, fuel.Options{}},
	{"metered interpreter", wazero.NewRuntimeConfigInterpreter, 1000, fuel.Options{}},
	{"limited compiler", wazero.NewRuntimeConfigCompiler, 1000, fuel.Options{MaxDepth: depth, MaxTableElements: tables}},
	{"limited interpreter", wazero.NewRuntimeConfigInterpreter, 1, fuel.Options{MaxDepth: depth, MaxTableElements: tables}},
}

// tooTyped lists the valid modules that fuel refuses when the depth is limited: results
// of a function with calls go through locals, which a reference that is never null
// cannot.
var tooTyped = []string{"exception-handling/try_table.13.wasm"}

// toleratedFailures lists the invalid modules that wazero 1.12.0 accepts: an initial
// value or an offset reads an imported global that is mutable. Its own tests do not
// notice, because nothing provides the imports of these modules.
//
// The other tolerances are in [machine.run]: wazero instantiates a module whose table
// elements are out of bounds, because the functions in the part that fits have to go on
// working, and has fewer words for traps ([trapOf]).
var toleratedFailures = []string{
	"v2/global.22.wasm", "v2/elem.47.wasm", "v2/elem.50.wasm", "v2/data.57.wasm", "v2/data.60.wasm",
	"extended-const/global.19.wasm",
}

// count holds the numbers of executed parts of a suite.
type count struct {
	scripts    int
	commands   int
	assertions int // among the commands
	text       int // commands not executed, because their module is in the text format
	fuel       uint64
}

func (c *count) add(n count) {
	c.scripts += n.scripts
	c.commands += n.commands
	c.assertions += n.assertions
	c.text += n.text
	c.fuel += n.fuel
}

// suitesDir returns the directory of the suites, in the module of the engine.
func suitesDir(tb testing.TB) string {
	tb.Helper()
	dir, err := exec.CommandContext(tb.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		tb.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "internal", "integration_test", "spectest")
}

// TestSuitesPass runs all commands but those on modules in the text format. The counts
// keep a suite that was not found from passing.
func TestSuitesPass(t *testing.T) {
	root := suitesDir(t)
	var mu sync.Mutex
	sums := map[string]*count{} // by the names of suite and way
	t.Run("suites", func(t *testing.T) {
		for _, s := range suites {
			files, err := filepath.Glob(filepath.Join(root, s.name, "testdata", "*.json"))
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range ways {
				sums[s.name+" "+w.name] = new(count)
			}
			for _, file := range files {
				t.Run(s.name+"/"+strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
					t.Parallel()
					counts := runScript(t, s, file)
					mu.Lock()
					defer mu.Unlock()
					for i, w := range ways {
						sums[s.name+" "+w.name].add(counts[i])
					}
				})
			}
		}
	})
	for _, s := range suites {
		for _, w := range ways {
			n, least := *sums[s.name+" "+w.name], s.least
			t.Logf("%s, %s: %+v", s.name, w.name, n)
			if n.scripts < least.scripts || n.commands < least.commands || n.assertions < least.assertions || n.text < least.text {
				t.Errorf("%s, %s: want at least %+v, got %+v", s.name, w.name, least, n)
			}
			if (n.fuel > 0) != (w.slice > 0) {
				t.Errorf("%s, %s: used %d fuel", s.name, w.name, n.fuel)
			}
		}
	}
}

// TestVersionNamesWhatIsWritten: native code that is part of a program, or in a cache, is
// used only by a program with the same fuel.Version. So the version has to change when
// the output changes for any module of the suite.
func TestVersionNamesWhatIsWritten(t *testing.T) {
	const want = "4 8e52bc736d448f41"
	files, err := filepath.Glob(filepath.Join(suitesDir(t), "v2", "testdata", "*.wasm"))
	if err != nil || len(files) < 1000 {
		t.Fatalf("%d modules, %v", len(files), err)
	}
	sum := sha256.New()
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := wasm.Decode(data)
		if err != nil {
			continue
		}
		code, err := fuel.Rewrite(m, fuel.Options{MaxDepth: depth, MaxTableElements: tables, MergeData: true})
		fmt.Fprintf(sum, "%s %x %v\n", filepath.Base(file), code, err != nil)
	}
	if got := fmt.Sprintf("%d %x", fuel.Version, sum.Sum(nil)[:8]); got != want {
		t.Errorf("the rewriting writes something else than it did: raise fuel.Version if it is still %.1s, and then put %q here", want, got)
	}
}

// runScript executes a script in all ways.
func runScript(t *testing.T, s suite, file string) []count {
	script, err := readScript(file)
	if err != nil {
		t.Fatal(err)
	}
	counts := make([]count, len(ways))
	var used map[int]uint64
	for i, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			m, err := newMachine(t.Context(), w, s, filepath.Dir(file))
			if err != nil {
				t.Fatal(err)
			}
			defer m.runtime.Close(t.Context())
			n := &counts[i]
			n.scripts = 1
			for at, c := range script.Commands {
				if c.text() {
					n.text++
					continue
				}
				m.at = at
				err := m.run(c)
				if errors.Is(err, errNoModule) {
					continue // the reason is known
				}
				if err != nil {
					t.Errorf("%s:%d: %s %s %s: %v", filepath.Base(script.Source), c.Line, c.Type, c.Filename, c.Action.Field, err)
				}
				n.commands++
				if strings.HasPrefix(c.Type, "assert_") {
					n.assertions++
				}
				n.fuel += m.used[at]
			}
			// The count depends on the program only: not on the engine, the size of the
			// slices, or other limits.
			for at, n := range m.used {
				if want, ok := used[at]; ok && n != want {
					t.Errorf("%s:%d: used %d fuel, but %d in another way", filepath.Base(script.Source), script.Commands[at].Line, n, want)
				}
			}
			if w.slice > 0 {
				used = m.used
			}
		})
	}
	return counts
}
