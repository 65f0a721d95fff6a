package wasmtest

// Spin returns a body that never returns.
func Spin() []byte { return join(Loop(Br(0)), I32Const(0)) }

// GrowForever returns a body that grows the memory by one page after another and writes
// to each; it traps when it gets no more.
func GrowForever() []byte {
	return join(
		Loop(
			I32Const(1), MemoryGrow(), I32Const(-1), I32Eq(), If(Unreachable()),
			MemorySize(), I32Const(1), I32Sub(), I32Const(16), I32Shl(), I32Const(1), I32Store(0),
			Br(0),
		),
		I32Const(0))
}

// Recurse returns a body of call that calls itself until the stack is full. function is
// ToolOptions.CallFunc.
func Recurse(function uint32) []byte {
	var code []byte
	for i := range uint32(len(CallParams())) {
		code = append(code, LocalGet(i)...)
	}
	// The result is stored after the call, so that no engine can turn the recursion into a loop.
	return join(I32Const(0), code, Call(function), I32Store(0), I32Const(0))
}

// ProcExit returns the import with which a tool module ends itself.
func ProcExit() Import {
	return Import{Module: "wasi_snapshot_preview1", Name: "proc_exit", Params: []ValType{I32}}
}

// Case is a named tool module.
type Case struct {
	Name    string // a few words, fit for t.Run
	Options ToolOptions
}

// Hostile returns modules that attack their host: all decode and validate, and
// none may do more harm than to fail its own call.
func Hostile() []Case {
	const far = 0xffff_fff0
	exec := Import{Module: "stockade:tool/exec@0.1.0", Name: "run", Params: []ValType{I32, I32, I32, I32, I32, I32, I32, I32, I32}}
	log := Import{Module: "stockade:tool/log@0.1.0", Name: "log", Params: []ValType{I32, I32, I32}}
	text := func(pointer, length uint32) []byte {
		const list = ScratchBase + resultBytes
		return ReturnWords(ResultOK, list, 1, 0, 0, 0, ContentText, pointer, length, 0, 0, 0, 0, 0, 0)
	}
	return []Case{
		{"call traps", ToolOptions{Call: Unreachable()}},
		{"call spins", ToolOptions{Call: Spin()}},
		{"call grows its memory forever", ToolOptions{Call: GrowForever()}},
		{"call recurses", ToolOptions{Call: Recurse(ToolOptions{}.CallFunc())}},
		{"describe traps", ToolOptions{Describe: Unreachable()}},
		{"describe spins", ToolOptions{Describe: Spin()}},
		{"describe returns a pointer out of bounds", ToolOptions{Describe: I32Const(-4)}},
		{"_initialize spins", ToolOptions{Initialize: Loop(Br(0))}},
		{"start function spins", ToolOptions{Edit: func(b *Builder) {
			b.Start(b.Func("", nil, nil, nil, Loop(Br(0))))
		}}},
		{"post-return traps", ToolOptions{PostCall: Unreachable()}},
		{"result pointer out of bounds", ToolOptions{Call: I32Const(-16)}},
		{"result pointer at the last byte", ToolOptions{Call: join(MemorySize(), I32Const(16), I32Shl(), I32Const(1), I32Sub())}},
		{"result pointer is not aligned", ToolOptions{Call: I32Const(ScratchBase + 1)}},
		{"result discriminant is invalid", ToolOptions{Call: ReturnWords(2, 0, 0, 0, 0, 0)}},
		{"error discriminant is invalid", ToolOptions{Call: ReturnWords(ResultErr, ErrorFailed+1, 0, 0, 0, 0)}},
		{"content discriminant is invalid", ToolOptions{Call: ReturnWords(ResultOK, ScratchBase+resultBytes, 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0)}},
		{"option discriminant is invalid", ToolOptions{Call: ReturnWords(ResultOK, ScratchBase, 0, 2, 0, 0)}},
		{"string length of 2^32-1", ToolOptions{Call: text(0, 0xffff_ffff)}},
		{"string out of bounds", ToolOptions{Call: text(far, 64)}},
		{"string that is not UTF-8", ToolOptions{Call: text(ScratchBase+256, 2), Data: []Segment{{ScratchBase + 256, []byte{0xff, 0xfe}}}}},
		{"structured length of 2^32-1", ToolOptions{Call: ReturnWords(ResultOK, ScratchBase, 0, 1, 0, 0xffff_ffff)}},
		{"structured value that is not JSON", ToolOptions{Call: ReturnStructured("", "{")}},
		{"list of 2^32-1 items", ToolOptions{Call: ReturnWords(ResultOK, ScratchBase, 0xffff_ffff, 0, 0, 0)}},
		{"list whose size overflows 32 bits", ToolOptions{Call: ReturnWords(ResultOK, ScratchBase, 0x0e38_e38f, 0, 0, 0)}},
		{"list that overlaps the result", ToolOptions{Call: ReturnWords(ResultOK, ScratchBase, 1, 0, 0, 0)}},
		{"list that is not aligned", ToolOptions{Call: ReturnWords(ResultOK, ScratchBase+1, 1, 0, 0, 0)}},
		{"error text of 2^32-1 bytes", ToolOptions{Call: ReturnWords(ResultErr, ErrorFailed, 0, 0xffff_ffff, 0, 0)}},
		{"realloc returns a pointer out of bounds", ToolOptions{Realloc: I32Const(-16)}},
		{"realloc returns zero", ToolOptions{Realloc: I32Const(0)}},
		{"realloc traps", ToolOptions{Realloc: Unreachable()}},
		{"realloc spins", ToolOptions{Realloc: Spin()}},
		{"proc_exit in call", ToolOptions{Imports: []Import{ProcExit()}, Call: join(I32Const(0), Call(0), I32Const(0))}},
		{"proc_exit in realloc", ToolOptions{Imports: []Import{ProcExit()}, Realloc: join(I32Const(3), Call(0), I32Const(0))}},
		{"log with a text out of bounds", ToolOptions{Imports: []Import{log},
			Call: join(I32Const(2), I32Const(-16), I32Const(64), Call(0), ReturnOK("logged"))}},
		{"log with an invalid level", ToolOptions{Imports: []Import{log},
			Call: join(I32Const(77), I32Const(0), I32Const(0), Call(0), ReturnOK("logged"))}},
		{"log in an endless loop", ToolOptions{Imports: []Import{log},
			Call: join(Loop(I32Const(2), I32Const(ManifestBase), I32Const(16), Call(0), Br(0)), I32Const(0))}},
		{"exec with an argument list out of bounds", ToolOptions{Imports: []Import{exec},
			Call: join(execCall(-16, 4, ScratchBase), ReturnOK("ran"))}},
		{"exec with 2^32-1 arguments", ToolOptions{Imports: []Import{exec},
			Call: join(execCall(0, -1, ScratchBase), ReturnOK("ran"))}},
		{"exec with a return pointer out of bounds", ToolOptions{Imports: []Import{exec},
			Call: join(execCall(0, 0, -4), ReturnOK("ran"))}},
	}
}

// execCall calls import 0, exec.run, with an argument list and a return pointer.
func execCall(argv, count, ret int32) []byte {
	return join(
		I32Const(argv), I32Const(count), // argv
		I32Const(0), I32Const(0), I32Const(0), // cwd
		I32Const(1000), I32Const(1000), I32Const(0), // timeout-ms, max-output, merge-stderr
		I32Const(ret), Call(0))
}
