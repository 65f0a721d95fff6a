package selftest

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"

	"github.com/stockade-dev/stockade/host/tool"
)

// pluginHost implements the functions of an Extism host that trusts its plugin: blocks
// have the size that the plugin claims, nothing is counted, every request is answered,
// and configuration is given unchanged.
type pluginHost struct {
	input  []byte
	output []byte
	failed uint64 // offset of its error
	say    func(tool.Progress)

	blocks []byte // one after the other, each after its length
	vars   map[string]uint64
}

const blockHeader = 8

func (p *pluginHost) alloc(n uint64) uint64 {
	at := uint64(len(p.blocks)) + blockHeader
	p.blocks = binary.LittleEndian.AppendUint64(p.blocks, n)
	p.blocks = slices.Grow(p.blocks, int(n))[:at+n]
	return at
}

// again prepares another call of the same plugin, without clearing its blocks.
func (p *pluginHost) again(input []byte) { p.input, p.output, p.blocks = input, nil, p.blocks[:0] }

func (p *pluginHost) put(text string) uint64 {
	at := p.alloc(uint64(len(text)))
	copy(p.blocks[at:], text)
	return at
}

func (p *pluginHost) length(at uint64) uint64 {
	if at < blockHeader || at > uint64(len(p.blocks)) {
		return 0
	}
	return binary.LittleEndian.Uint64(p.blocks[at-blockHeader:])
}

func (p *pluginHost) text(at uint64) string { return string(p.blocks[at:][:p.length(at)]) }

func (p *pluginHost) instantiate(ctx context.Context, rt wazero.Runtime) error {
	added := rt.NewHostModuleBuilder("extism:host/user")
	for name, f := range map[string]any{
		"notify_progress":          func(uint64) { p.say(tool.Progress{Done: 1}) },
		"notify_logging_message":   func(at uint64) { p.say(tool.Progress{Level: "info", Message: p.text(at)}) },
		"notify_tool_list_changed": func() {},
		"create_elicitation":       func(uint64) uint64 { return p.put("answered") },
		"create_message":           func(uint64) uint64 { return p.put("answered") },
		"get_keyring_secret":       func(uint64) uint64 { return p.put(secretValue) },
	} {
		added.NewFunctionBuilder().WithFunc(f).Export(name)
	}
	if _, err := added.Instantiate(ctx); err != nil {
		return err
	}
	module := rt.NewHostModuleBuilder("extism:host/env")
	for name, f := range map[string]any{
		"alloc":          p.alloc,
		"free":           func(uint64) {},
		"length":         p.length,
		"length_unsafe":  p.length,
		"memory_bytes":   func() uint64 { return uint64(len(p.blocks)) },
		"reset":          func() { p.blocks = nil },
		"load_u8":        func(at uint64) uint32 { return uint32(p.blocks[at]) },
		"load_u64":       func(at uint64) uint64 { return binary.LittleEndian.Uint64(p.blocks[at:]) },
		"store_u8":       func(at uint64, v uint32) { p.blocks[at] = byte(v) },
		"store_u64":      func(at, v uint64) { binary.LittleEndian.PutUint64(p.blocks[at:], v) },
		"input_length":   func() uint64 { return uint64(len(p.input)) },
		"input_offset":   func() uint64 { return p.put(string(p.input)) },
		"input_load_u8":  func(at uint64) uint32 { return uint32(p.behind(at)[0]) },
		"input_load_u64": func(at uint64) uint64 { return binary.LittleEndian.Uint64(p.behind(at)) },
		"output_set": func(at, n uint64) {
			p.output = slices.Clone(p.blocks[at:][:n])
		},
		"output_length":    func() uint64 { return uint64(len(p.output)) },
		"output_offset":    func() uint64 { return 0 },
		"error_set":        func(at uint64) { p.failed = at },
		"error_get":        func() uint64 { return 0 },
		"config_get":       func(uint64) uint64 { return p.put(secretValue) },
		"var_get":          func(name uint64) uint64 { return p.vars[p.text(name)] },
		"var_set":          p.setVar,
		"http_request":     func(_, _ uint64) uint64 { return p.put("answered") },
		"http_status_code": func() uint32 { return 200 },
		"http_headers":     func() uint64 { return p.put("{}") },
		"log_info":         func(at uint64) { p.say(tool.Progress{Level: "info", Message: p.text(at)}) },
		"log_error":        func(at uint64) { p.say(tool.Progress{Level: "error", Message: p.text(at)}) },
		"get_log_level":    func() uint32 { return 0 },
	} {
		module.NewFunctionBuilder().WithFunc(f).Export(name)
	}
	_, err := module.Instantiate(ctx)
	return err
}

// behind returns 8 bytes of the input from any offset on; after its end the input begins
// again.
func (p *pluginHost) behind(at uint64) []byte {
	return slices.Concat(p.input, p.input)[at%uint64(len(p.input)):][:8]
}

func (p *pluginHost) setVar(name, value uint64) {
	if p.vars == nil {
		p.vars = map[string]uint64{}
	}
	p.vars[strings.Clone(p.text(name))] = value
}
