package machine

import w "github.com/stockade-dev/stockade/host/wasm/wasmtest"

// pluginFunctions are the functions of an Extism host, and those that hyper-mcp has
// added.
var pluginFunctions = []struct {
	module    string
	functions []pluginFunction
}{
	{"extism:host/env", []pluginFunction{
		{"alloc", i64x1, i64x1}, {"free", i64x1, nil},
		{"length", i64x1, i64x1}, {"length_unsafe", i64x1, i64x1}, {"memory_bytes", nil, i64x1}, {"reset", nil, nil},
		{"load_u8", i64x1, i32x1}, {"load_u64", i64x1, i64x1}, {"store_u8", []w.ValType{i64, i32}, nil}, {"store_u64", i64s(2), nil},
		{"input_length", nil, i64x1}, {"input_offset", nil, i64x1}, {"input_load_u8", i64x1, i32x1}, {"input_load_u64", i64x1, i64x1},
		{"output_set", i64s(2), nil}, {"output_length", nil, i64x1}, {"output_offset", nil, i64x1},
		{"error_set", i64x1, nil}, {"error_get", nil, i64x1},
		{"config_get", i64x1, i64x1}, {"var_get", i64x1, i64x1}, {"var_set", i64s(2), nil},
		{"http_request", i64s(2), i64x1}, {"http_status_code", nil, i32x1}, {"http_headers", nil, i64x1},
		{"log_info", i64x1, nil}, {"log_error", i64x1, nil}, {"get_log_level", nil, i32x1},
	}},
	{"extism:host/user", []pluginFunction{
		{"notify_progress", i64x1, nil}, {"notify_logging_message", i64x1, nil}, {"notify_tool_list_changed", nil, nil},
		{"create_elicitation", i64x1, i64x1}, {"create_message", i64x1, i64x1}, {"get_keyring_secret", i64x1, i64x1},
	}},
}

type pluginFunction struct {
	name            string
	params, results []w.ValType
}

var i64x1 = i64s(1)

func i64s(n int) (out []w.ValType) {
	for range n {
		out = append(out, i64)
	}
	return out
}

// blockFunctions copy between a block of a plugin's host and the memory. block.put takes
// the block, the address and the length, as does block.get. block makes a block from a
// range of the memory and returns its offset.
var blockFunctions = []function{
	{name: "block.put", kinds: []Kind{Plugin}, sig: []w.ValType{i64, i32, i32}, emit: func(m *Machine) []byte { return code(w.Call(m.base+addedPut), w.I32Const(0)) }},
	{name: "block", kinds: []Kind{Plugin}, sig: i32s(2), emit: func(m *Machine) []byte { return code(m.Block(), i32WrapI64) }},
	{name: "block.get", kinds: []Kind{Plugin}, sig: []w.ValType{i64, i32, i32}, emit: func(m *Machine) []byte { return code(w.Call(m.base+addedGet), w.I32Const(0)) }},
}

// frameTexts returns the text before and after the report in the answer of a kind.
func (m *Machine) frameTexts() (before, after string) {
	if m.kind == Native {
		return "", ""
	}
	return `{"output":"`, `"}`
}

// hexBase returns the address of the report as text.
func (m *Machine) hexBase() int32 {
	before, _ := m.frameTexts()
	return int32(outputBase + len(before))
}

// frameSegments returns the data of the answer, with room for the report.
func (m *Machine) frameSegments() []w.Segment {
	before, after := m.frameTexts()
	return []w.Segment{
		{Offset: outputBase, Bytes: []byte(before)}, {Offset: uint32(m.hexBase()) + 2*ReportSize, Bytes: []byte(after)},
		{Offset: schemaBase, Bytes: []byte(schema)},
	}
}

// answerBytes returns the size of an answer in bytes.
func (m *Machine) answerBytes() int32 {
	before, after := m.frameTexts()
	return int32(len(before) + 2*ReportSize + len(after))
}

// schemaBase is the address of a command's schema.
const schemaBase = outputBase + 0x5000

const schema = `{"name":"probe","description":"An attack.","parameters":{"asm":{"type":"string","description":"The script."}}}`

// pluginSection is the manifest of a plugin.
const pluginSection = `{"abi":"extism:plugin","name":"probe","tools":[{"name":"probe","description":"An attack.","parameters":{"type":"object"},` +
	`"capabilities":{"files":"write","network":"http"},"run":{"function":"play"}}]}`

// native adds the front of a module of the native ABI.
func (m *Machine) native(o Options) []byte {
	options := w.ToolOptions{Imports: m.imports, MemoryMin: o.Pages, Data: o.Data}
	m.base = options.CallFunc() + 1
	if o.Initialize != nil {
		m.base++ // it comes before what the machine adds
		options.Initialize = o.Initialize(m)
	}
	const list = w.ScratchBase + 24
	options.Call = code(
		w.LocalGet(w.ParamArgs), w.Call(m.base+addedPlay), w.If(w.GlobalGet(globalResult), w.Return()),
		w.ReturnWords(w.ResultOK, list, 1, 0, 0, 0, w.ContentText, uint32(m.hexBase()), 2*ReportSize, 0, 0, 0, 0, 0, 0),
	)
	options.Edit = func(b *w.Builder) {
		b.ExportFunc("cabi_import_realloc", uint32(len(m.imports)))
		m.add(b, o)
	}
	return w.Tool(options)
}

// The addresses of the words with which a command reads and writes.
const (
	listBase = w.ScratchBase
	doneBase = w.ScratchBase + 8
	argsBase = ImageBase // pointers to its arguments, of which it reads one
)

// transfer is a call of fd_read or fd_write on the code of an address and a length; it
// leaves the number of bytes. at and n are locals to use.
func (m *Machine) transfer(function string, fd, at, n uint32, address, length []byte) []byte {
	return code(
		address, w.LocalSet(at), length, w.LocalSet(n),
		w.I32Const(listBase), w.LocalGet(at), w.I32Store(0), w.I32Const(listBase), w.LocalGet(n), w.I32Store(4),
		w.I32Const(int32(fd)), w.I32Const(listBase), w.I32Const(1), w.I32Const(doneBase), m.call(function), w.If(w.Unreachable()),
		w.I32Const(doneBase), w.I32Load(0),
	)
}

// schemaOption is the argument with which a command is asked for its schema.
const schemaOption = "--schema"

// command adds the front of a command: it prints its schema if asked, and else executes
// the script from standard input.
func (m *Machine) command(b *w.Builder) {
	const at, n, read = 0, 1, 2
	b.Func("_start", nil, nil, i32s(3),
		w.I32Const(listBase), w.I32Const(doneBase), m.call("args_sizes_get"), w.If(w.Unreachable()),
		w.I32Const(listBase), w.I32Load(0), w.I32Const(1), w.I32GtU(), w.If(
			w.I32Const(argsBase), w.I32Const(inputBase), m.call("args_get"), w.If(w.Unreachable()),
			w.I32Const(argsBase), w.I32Load(4), load64(0), w.I64Const(littleEndian(schemaOption)), i64Ne, w.I32Eqz(), w.If(
				m.transfer("fd_write", 1, at, n, w.I32Const(schemaBase), w.I32Const(int32(len(schema)))), w.Drop(), w.Return())),
		w.Loop(
			m.transfer("fd_read", 0, at, n, code(w.I32Const(inputBase), w.LocalGet(read), w.I32Add()), code(w.I32Const(ImageBase-inputBase), w.LocalGet(read), w.I32Sub())),
			w.LocalTee(n), w.LocalGet(read), w.I32Add(), w.LocalSet(read),
			w.LocalGet(n), w.BrIf(0),
		),
		w.I32Const(InputLength), w.LocalGet(read), w.I32Store(0),
		w.I32Const(inputBase-1), w.Call(m.base+addedPlay), w.If(w.Return()),
		m.transfer("fd_write", 1, at, n, w.I32Const(outputBase), w.I32Const(m.answerBytes())), w.Drop(),
	)
}

// plugin adds the front of a plugin: a function that reads its input and sets its output.
// With lists, the plugin exports list_tools, which is not called here.
func (m *Machine) plugin(b *w.Builder, lists bool) {
	const n, at = 0, 1
	name := "play"
	if lists {
		name = "call_tool"
		b.Func("list_tools", nil, i32x1, nil, w.I32Const(1))
	}
	b.Func(name, nil, i32x1, i32s(2),
		m.call("extism.input_length"), i32WrapI64, w.LocalSet(n),
		w.I32Const(InputLength), w.LocalGet(n), w.I32Store(0),
		w.Loop(
			w.LocalGet(at), w.I32Const(8), w.I32Add(), w.LocalGet(n), w.I32GtU(), w.I32Eqz(), w.If(
				w.LocalGet(at), w.LocalGet(at), i64ExtendI32, m.call("extism.input_load_u64"), store64(inputBase),
				w.LocalGet(at), w.I32Const(8), w.I32Add(), w.LocalSet(at), w.Br(1)),
		),
		w.Loop(
			w.LocalGet(at), w.LocalGet(n), w.I32LtU(), w.If(
				w.LocalGet(at), w.LocalGet(at), i64ExtendI32, m.call("extism.input_load_u8"), w.I32Store8(inputBase),
				w.LocalGet(at), w.I32Const(1), w.I32Add(), w.LocalSet(at), w.Br(1)),
		),
		w.I32Const(inputBase-1), w.Call(m.base+addedPlay), w.If(w.GlobalGet(globalResult), w.Return()),
		w.I32Const(outputBase), w.I32Const(m.answerBytes()), m.Block(), w.I64Const(int64(m.answerBytes())), m.call("extism.output_set"),
		w.I32Const(0),
	)
}

// say is the body of the function that sends a text to the host: its address and length.
// The output of a command is only seen when it has ended.
func (m *Machine) say() []byte {
	const at, n = 0, 1
	switch m.kind {
	case Native:
		return code(w.I32Const(2), w.LocalGet(at), w.LocalGet(n), m.call("log.log"))
	case Command:
		return code(m.transfer("fd_write", 2, at, n, w.LocalGet(at), w.LocalGet(n)), w.Drop())
	}
	return code(w.LocalGet(at), w.LocalGet(n), m.Block(), m.call("extism.log_info")) // the call frees the block
}

// addBlocks adds the functions that copy between a block and the memory, eight bytes at a
// time, and the one that makes a block. Without blocks they do nothing.
func (m *Machine) addBlocks(b *w.Builder) {
	const block, at, n = 0, 1, 2
	copying := func(eight, one []byte) (body []byte) {
		for _, step := range []struct {
			size int32
			copy []byte
		}{{8, eight}, {1, one}} {
			body = append(body, w.Loop(
				w.LocalGet(n), w.I32Const(step.size), w.I32GeU(), w.If(
					step.copy,
					w.LocalGet(block), w.I64Const(int64(step.size)), i64Add, w.LocalSet(block),
					w.LocalGet(at), w.I32Const(step.size), w.I32Add(), w.LocalSet(at),
					w.LocalGet(n), w.I32Const(step.size), w.I32Sub(), w.LocalSet(n), w.Br(1)))...)
		}
		return body
	}
	var put, get []byte
	make := code(w.I64Const(0))
	if m.kind == Plugin {
		const from, length, made = 0, 1, 2
		make = code(w.LocalGet(length), i64ExtendI32, m.call("extism.alloc"), w.LocalTee(made), w.LocalGet(from), w.LocalGet(length), w.Call(m.base+addedPut), w.LocalGet(made))
		put = copying(
			code(w.LocalGet(block), w.LocalGet(at), load64(0), m.call("extism.store_u64")),
			code(w.LocalGet(block), w.LocalGet(at), w.I32Load8U(0), m.call("extism.store_u8")))
		get = copying(
			code(w.LocalGet(at), w.LocalGet(block), m.call("extism.load_u64"), store64(0)),
			code(w.LocalGet(at), w.LocalGet(block), m.call("extism.load_u8"), w.I32Store8(0)))
	}
	params := []w.ValType{i64, i32, i32}
	b.Func("", params, nil, nil, put) // addedPut
	b.Func("", params, nil, nil, get) // addedGet
	b.Func("", i32s(2), i64x1, i64x1, make)
}
