package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stockade-dev/stockade/guests/gueststest"
	"github.com/stockade-dev/stockade/host/config/policyfile"
	"github.com/stockade-dev/stockade/host/jail/probe"
	"github.com/stockade-dev/stockade/host/llm/offline"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// TestMain lets scripts run the real program: this test binary under its name.
// Whatever its name, it is the program's child if it is started as that.
func TestMain(m *testing.M) {
	// The seams that a user of the program does not have: only this binary looks
	// at these variables.
	if dir := os.Getenv("TEST_ADMINISTRATOR"); dir != "" {
		adminPolicyPlace = func() policyfile.Place {
			return policyfile.Place{Path: filepath.Join(dir, "stockade", "policy.toml"), Root: dir, Owner: os.Getuid()}
		}
	}
	if home := os.Getenv("TEST_ACCOUNT_HOME"); home != "" {
		accountHome = func() string { return home }
	}
	if os.Getenv("TEST_NOTHING_PREBUILT") != "" {
		prebuilt = func(string) fs.FS { return nil }
	}
	if what := os.Getenv("TEST_WITHOUT"); what != "" {
		if err := without(what); err != nil {
			panic(err)
		}
	}
	if len(os.Args) > 1 && os.Args[1] == sandbox.ChildCommand {
		// Beside the cache of its home, so that scripts see which there were.
		_ = os.WriteFile("../../children", nil, 0o600)
		os.Exit(program(os.Args[1:]))
	}
	if len(os.Args) > 1 && os.Args[1] == probe.Command {
		os.Exit(program(os.Args[1:]))
	}
	testscript.Main(m, map[string]func(){
		"stockade": func() { os.Exit(program(os.Args[1:])) },
	})
}

// Without -whole, a test that repeats itself runs one round of each kind.
var whole = flag.Bool("whole", false, "run all of what make test runs a part of: make test-whole")

var scriptDir = flag.String("scripts", "testdata/script", "the directory with the scripts to run")

// TestScripts runs testdata/script. Each script has a home of its own; only
// the cache of compiled code is shared, so that the guests are compiled once.
func TestScripts(t *testing.T) { testscript.Run(t, inDirectory(t, *scriptDir)) }

// inDirectory returns the parameters for running the scripts of a directory.
func inDirectory(t *testing.T, dir string) testscript.Params {
	gueststest.Need(t)
	built, err := filepath.Abs("../../guests/wasm")
	if err != nil {
		t.Fatal(err)
	}
	sessions, err := filepath.Abs("testdata/sessions")
	if err != nil {
		t.Fatal(err)
	}
	goCache := os.Getenv("GOCACHE")
	if dir, err := os.UserCacheDir(); goCache == "" && err == nil {
		goCache = filepath.Join(dir, "go-build")
	}
	cache := t.TempDir()
	return testscript.Params{
		Dir: dir,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, ".home")
			env.Setenv("HOME", home)
			env.Setenv("TEST_ACCOUNT_HOME", home)
			env.Setenv("XDG_CACHE_HOME", cache)
			env.Setenv("PATH", os.Getenv("PATH"))
			env.Setenv("NO_COLOR", "1")
			env.Setenv("GUESTS", built)
			env.Setenv("SESSIONS", sessions)
			env.Setenv("GOCACHE", goCache) // to compile the standard library anew takes a minute
			env.Setenv("CARGO_HOME", os.Getenv("CARGO_HOME"))
			env.Setenv("RUSTUP_HOME", os.Getenv("RUSTUP_HOME"))
			// Not the machine's own: a script has the policy that it writes.
			env.Setenv("TEST_ADMINISTRATOR", filepath.Join(env.WorkDir, "etc"))
			return os.MkdirAll(filepath.Join(home, ".config", "stockade"), 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":      exits,
			"serve":      serveScript,
			"wasm":       writeWasm,
			"published":  published,
			"shape":      writeShape,
			"terminal":   dialogue,
			"rows":       rows,
			"standin":    standIn,
			"unserved":   unserved,
			"nowhere":    nowhere,
			"site":       serveSite,
			"asked":      asked,
			"proxy":      startProxy,
			"proxied":    proxied,
			"securesite": secureSite,
		},
		Condition: func(cond string) (bool, error) {
			if cond != "whole" {
				return false, fmt.Errorf("there is no condition %q", cond)
			}
			return *whole, nil
		},
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
	}
}

// exits runs a program that has to end with a code:
//
//	exits CODE PROGRAM ARGUMENT...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGUMENT...")
	}
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("%v", err)
	}
	code := 0
	if exit != nil {
		code = exit.ExitCode()
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("it ended with exit code %d, want %s", code, args[0])
	}
}

// serveScript starts a real server on loopback that answers with the lines of
// a file, and points the program at it:
//
//	serve FILE
func serveScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serve FILE")
	}
	f, err := os.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	defer f.Close()
	script, err := offline.ParseScript(args[0], f)
	ts.Check(err)
	server := offline.NewServer(script, "key-of-the-test")
	url, err := server.Start("127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = server.Close(context.Background()) })
	ts.Setenv("OPENAI_BASE_URL", url)
	ts.Setenv("OPENAI_API_KEY", "key-of-the-test")
	ts.Setenv("STOCKADE_MODEL_NAME", "scripted")
	scripts.Store(ts, script)
}

// scripts maps a test to the model scripts that serve has started for it. Tests run in
// parallel.
var scripts sync.Map

// unserved fails unless so many lines of the served script were not used:
//
//	unserved N
func unserved(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: unserved N")
	}
	script, ok := scripts.Load(ts)
	if !ok {
		ts.Fatalf("unserved without serve")
	}
	if got := fmt.Sprint(script.(*offline.Script).Remaining()); got != args[0] {
		ts.Fatalf("%s lines of the script were not used, want %s", got, args[0])
	}
}

// writeWasm writes a module that was assembled for a test, with a manifest of its own
// or with that of a file:
//
//	wasm NAME FILE [MANIFEST]
func writeWasm(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: wasm NAME FILE [MANIFEST]")
	}
	if module := foreignModules()[args[0]]; module != nil {
		ts.Check(os.WriteFile(ts.MkAbs(args[1]), module(ts.Getenv("CODE")), 0o644))
		return
	}
	manifest := strings.Join(args[2:], "")
	for _, b := range wasmtest.Bombs() {
		if b.Name == args[0] {
			ts.Check(os.WriteFile(ts.MkAbs(args[1]), b.Module(), 0o644))
			return
		}
	}
	modules := map[string]wasmtest.ToolOptions{
		"large": {MemoryMin: 512, Data: []wasmtest.Segment{{Offset: 1 << 16, Bytes: bytes.Repeat([]byte{1}, 17<<20)}}},
		"echo":  {Call: wasmtest.EchoArgs()},
		// One function of 400 KiB, and one that calls another in its place.
		"sprawling": {Call: append(bytes.Repeat([]byte{0x01}, 400<<10), wasmtest.EchoArgs()...)},
		"tail":      {Call: append(append(wasmtest.I32Const(0), wasmtest.If([]byte{0x12, 0})...), wasmtest.EchoArgs()...)},
		"deep":      {MemoryMin: 8, Call: wasmtest.ReturnStructured("", strings.Repeat("[", 9999)+strings.Repeat("]", 9999))},
		"error":     {Call: wasmtest.ReturnError(wasmtest.ErrorNotFound, "nothing of that name")},
		// It may start a process, under a name of its own; it only says ran.
		"starts": {Call: wasmtest.ReturnOK("ran"), Manifest: `{"abi":"stockade:tool@0.1.0","name":"probe","tools":[{"name":"start","description":"A tool made for a test.",` +
			`"parameters":{"type":"object","properties":{"command":{"type":"string"}}},"capabilities":{"exec":"command"}}]}`},
	}
	// The manifests of tools, as they are before a module has run.
	for name, says := range map[string]string{
		"mistyped": `"parameters":{"type":"object"},"capabilities":{"file":"read"}`,
		"patterns": `"parameters":{"type":"object","properties":{"a":{"pattern":"` + strings.Repeat("(x{0,1000})", 1400) + `"}}}`,
		"slow":     `"parameters":{"type":"object","properties":{"a":{"items":{"pattern":"(x?){900}"}}}}`,
	} {
		modules[name] = wasmtest.ToolOptions{Call: wasmtest.EchoArgs(), Manifest: `{"abi":"stockade:tool@0.1.0","name":"probe","tools":[{"name":"probe","description":"A tool made for a test.",` + says + `}]}`}
	}
	maps.Copy(modules, secretive())
	maps.Copy(modules, added())
	maps.Copy(modules, fetching(ts.Getenv("SITE"), ts.Getenv("SITE_HOST")))
	for _, c := range wasmtest.Hostile() {
		modules[c.Name] = c.Options
	}
	options, ok := modules[args[0]]
	if !ok {
		ts.Fatalf("no module %q", args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), wasmtest.Tool(manifested(ts, options, manifest)), 0o644))
}
