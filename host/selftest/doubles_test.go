package selftest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
	"github.com/stockade-dev/stockade/host/tool"

	"github.com/stockade-dev/stockade/host/selftest/machine"
)

// The targets of the counter-proofs: each lets attacks through.

// targetFunc is a Target made from a function.
type targetFunc func(context.Context, Guest) Outcome

func (f targetFunc) Run(ctx context.Context, g Guest) Outcome { return f(ctx, g) }

// weakTarget is the bare engine: all files of the host are mounted with write, nothing is
// counted or cut, every service is granted, and results are trusted.
type weakTarget struct {
	reuseInstances bool // one instance of a module serves all calls

	mu   sync.Mutex
	kept map[[32]byte]keptInstance
}

type keptInstance struct {
	mod    api.Module
	plugin *pluginHost
}

func (b *weakTarget) Run(ctx context.Context, g Guest) (o Outcome) {
	var mu sync.Mutex
	say := func(p tool.Progress) {
		mu.Lock()
		o.Transcript.add(p)
		mu.Unlock()
		if g.OnProgress != nil {
			g.OnProgress(p)
		}
	}
	var stdout, streams bytes.Buffer
	mod, plugin, closes, err := b.instance(ctx, g, say, &stdout, &streams)
	if err == nil {
		o.Result, err = trustResult(ctx, mod, g, plugin, &stdout)
	}
	if g.Kind != machine.Command {
		streams.Write(stdout.Bytes())
	}
	closes()
	switch {
	case ctx.Err() != nil:
		o.Result = tool.Failed(tool.CodeCancelled, tool.InternalError, "%s was cancelled", toolName)
	case err != nil:
		o.Result = tool.Failed(tool.CodeTrap, tool.InternalError, "%s crashed: %s", toolName, strings.SplitN(err.Error(), "\n", 2)[0])
		o.Result.Err.Stderr = streams.String()
	}
	if streams.Len() > 0 {
		say(tool.Progress{Level: "debug", Message: streams.String()})
	}
	return o
}

func (b *weakTarget) instance(ctx context.Context, g Guest, say func(tool.Progress), stdout, stderr io.Writer) (_ api.Module, plugin *pluginHost, closes func(), err error) {
	key := sha256.Sum256(g.Code)
	b.mu.Lock()
	kept, ok := b.kept[key]
	b.mu.Unlock()
	if ok {
		kept.plugin.again(g.Args)
		return kept.mod, kept.plugin, func() {}, nil
	}
	const typed = "typed by a person"
	plugin = &pluginHost{input: append(slices.Clone(g.Args), typed...), say: say}
	if b.reuseInstances {
		ctx = context.WithoutCancel(ctx)
	}
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCloseOnContextDone(true))
	closes = func() {}
	if !b.reuseInstances {
		closes = func() { _ = rt.Close(context.Background()) }
	}
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	if err := errors.Join(obligingServices(ctx, rt, say), plugin.instantiate(ctx, rt)); err != nil {
		return nil, plugin, closes, err
	}
	stdin := typed
	if g.Kind == machine.Command {
		stdin = string(g.Args) + typed
	}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize").
		WithFSConfig(wazero.NewFSConfig().WithDirMount("/", "/")).
		WithEnv("SECRET", "x").WithArgs("stockade").WithStdin(strings.NewReader(stdin)).
		WithStdout(stdout).WithStderr(stderr).WithRandSource(rand.Reader).
		WithSysWalltime().WithSysNanotime().WithSysNanosleep().WithOsyield(func() {})
	mod, err := rt.InstantiateWithConfig(ctx, g.Code, config)
	if err == nil && b.reuseInstances {
		b.mu.Lock()
		if b.kept == nil {
			b.kept = map[[32]byte]keptInstance{}
		}
		b.kept[key] = keptInstance{mod, plugin}
		b.mu.Unlock()
	}
	return mod, plugin, closes, err
}

// obligingServices adds the host's functions, all of which succeed.
func obligingServices(ctx context.Context, rt wazero.Runtime, say func(tool.Progress)) error {
	modules := map[string]wazero.HostModuleBuilder{}
	for _, f := range hostmod.Functions {
		name := abi.ImportModule(f.Interface)
		if modules[name] == nil {
			modules[name] = rt.NewHostModuleBuilder(name)
		}
		modules[name].NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, mod api.Module, stack []uint64) {
			switch f.Interface {
			case "log":
				text, _ := mod.Memory().Read(uint32(stack[1]), uint32(stack[2]))
				say(tool.Progress{Level: "info", Message: string(text)})
			case "progress":
				say(tool.Progress{Done: stack[0]})
			default:
				mod.Memory().Write(uint32(stack[len(f.Params)-1]), make([]byte, 8))
			}
		}), f.Params, f.Results).Export(f.Name)
	}
	for _, m := range modules {
		if _, err := m.Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}

// trustResult calls a tool and trusts its result.
func trustResult(ctx context.Context, mod api.Module, g Guest, plugin *pluginHost, stdout *bytes.Buffer) (tool.Result, error) {
	switch g.Kind {
	case machine.Command:
		_, err := mod.ExportedFunction("_start").Call(ctx)
		if exit, ok := errors.AsType[*sys.ExitError](err); ok && exit.ExitCode() == 0 {
			err = nil
		}
		return tool.Result{Output: stdout.Bytes()}, err
	case machine.Plugin:
		function := mod.ExportedFunction("call_tool")
		if function == nil {
			function = mod.ExportedFunction("play")
		}
		code, err := function.Call(ctx)
		if err == nil && code[0] != 0 {
			return tool.Failed(tool.CodeFailed, tool.InternalError, "%s", plugin.text(plugin.failed)), nil
		}
		return tool.Result{Output: plugin.output}, err
	}
	out, err := mod.ExportedFunction(abi.ExportRealloc[0]).Call(ctx, 0, 0, 1, uint64(len(g.Args)))
	if err != nil {
		return tool.Result{}, err
	}
	mod.Memory().Write(uint32(out[0]), g.Args)
	out, err = mod.ExportedFunction(abi.ExportCall).Call(ctx, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, out[0], uint64(len(g.Args)))
	if err != nil {
		return tool.Result{}, err
	}
	word := func(at uint32) uint32 { v, _ := mod.Memory().ReadUint32Le(at); return v }
	text := func(at uint32) string { b, _ := mod.Memory().Read(word(at), word(at+4)); return string(b) }
	at := uint32(out[0])
	switch {
	case word(at) == resultError:
		return tool.Failed(tool.CodeFailed, tool.InternalError, "%s", text(at+8)), nil
	case word(at+12) == 1:
		return tool.Result{Output: json.RawMessage(text(at + 16))}, nil
	}
	return tool.Result{Output: json.RawMessage(`{"output":"` + text(word(at+4)+4) + `"}`)}, nil
}

// obligingTarget does nothing, and reports that everything in a script was done, and that
// every other module ran.
var obligingTarget = targetFunc(func(_ context.Context, g Guest) Outcome {
	var args struct {
		Asm string `json:"asm"`
	}
	if json.Unmarshal(g.Args, &args) != nil || args.Asm == "" {
		return Outcome{Result: tool.Result{Output: tool.Text("ok")}}
	}
	image, err := hex.DecodeString(args.Asm)
	if err != nil {
		return Outcome{Err: err}
	}
	word := func(at uint32) uint32 {
		if at < machine.ImageBase || at+4 > machine.ImageBase+uint32(len(image)) {
			return 0 // part of an attack
		}
		return binary.LittleEndian.Uint32(image[at-machine.ImageBase:])
	}
	r := make(report, machine.ReportSize)
	again := uint32(machine.FunctionNumbers()["again"])
	read := uint32(machine.FunctionNumbers()["fd_read"])
	for at := word(machine.ImageBase); word(at) != 0; at += word(at + 8) {
		result := word(at+4) - machine.ReportBase
		times := uint32(1)
		if word(at) == again { // that is how often the repeated call was made
			n := word(at + machine.OpSize + machine.OperandSize + 8)
			for from := word(at + machine.OpSize + 8); from != at; from += word(from + 8) {
				copy(r[word(from+4)-machine.ReportBase+4:], le32(n+1))
			}
		}
		copy(r[result+4:], le32(times))
		if word(at) == read { // the content of the guest's own file
			list := word(at + machine.OpSize + machine.OperandSize + 8)
			if to, n := word(list), word(list+4); to >= machine.ReportBase && to < machine.ReportBase+machine.ReportSize {
				copy(r[to-machine.ReportBase:][:min(n, uint32(len(insideText)))], insideText)
			}
		}
	}
	return Outcome{Result: tool.Result{Output: tool.Text(hex.EncodeToString(r))}}
})

// weakened is the real sandbox with a guest changed from the one that the attack asked
// for.
func weakened(real Target, change func(*Guest)) Target {
	return targetFunc(func(ctx context.Context, g Guest) Outcome {
		g.Mounts = slices.Clone(g.Mounts)
		change(&g)
		return real.Run(ctx, g)
	})
}

// parentMounted mounts the directory above the workspace, with write.
func parentMounted(g *Guest) {
	if len(g.Mounts) > 0 {
		g.Mounts = []policy.Mount{{Host: filepath.Dir(g.Mounts[0].Host), Write: true}}
		g.Files = tool.FilesWrite
	}
}

// allWritable makes every mount writable.
func allWritable(g *Guest) {
	for i := range g.Mounts {
		g.Mounts[i].Write = true
		g.Files = tool.FilesWrite
	}
}

func unmasked(g *Guest) { g.Masked = nil }

// unlimited lifts every limit of a grant.
func unlimited(g *Guest) {
	const most = 1 << 40
	g.Limits = policy.Limits{
		Timeout: time.Hour, MemoryBytes: 1 << 30, Fuel: most << 20, ToolFuel: most << 20, SessionFuel: most << 20,
		OutputBytes: most, LogBytes: most, HostCalls: most, StoreBytes: most, SessionStoreBytes: most,
	}
	g.SharedMemoryBytes = 0
}

// approvesAll approves the command that makes a file, instead of the attack's own.
func approvesAll(g *Guest) {
	var args map[string]string
	if json.Unmarshal(g.Args, &args) != nil {
		return
	}
	image, _ := hex.DecodeString(args["asm"])
	command := regexp.MustCompile(`echo x > '[^']*'`).Find(append(image, g.Code...))
	if command == nil {
		return
	}
	g.Command, args["command"] = string(command), string(command)
	g.Args, _ = json.Marshal(args)
}
