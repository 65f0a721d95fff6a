package wasmtest

// The functions of WASI preview 1 that a command of [Command] can call.
const (
	CmdWrite     = iota // fd_write: (fd, buffers, number of buffers, address for the number of bytes) -> errno
	CmdRead             // fd_read, the same
	CmdArgsSizes        // args_sizes_get: (address for the number, address for the size) -> errno
	CmdArgs             // args_get: (address for pointers, address for texts) -> errno
	CmdExit             // proc_exit: (code)
)

// CmdBase is the start of the free memory of a command, and CmdEnd its end, in bytes.
const (
	CmdBase = 4096
	CmdEnd  = 2 << 16
)

// Command assembles a command for WASI preview 1 with the body of its _start. data should
// begin at CmdBase or later. edit can add more to the module; it may be nil.
func Command(body []byte, edit func(*Builder), data ...Segment) []byte {
	b := New()
	four := []ValType{I32, I32, I32, I32}
	for _, f := range []Import{
		{Name: "fd_write", Params: four, Results: four[:1]},
		{Name: "fd_read", Params: four, Results: four[:1]},
		{Name: "args_sizes_get", Params: four[:2], Results: four[:1]},
		{Name: "args_get", Params: four[:2], Results: four[:1]},
		{Name: "proc_exit", Params: four[:1]},
	} {
		b.ImportFunc("wasi_snapshot_preview1", f.Name, f.Params, f.Results)
	}
	b.Memory(CmdEnd>>16, -1)
	b.ExportMemory("memory")
	b.Func("_start", nil, nil, nil, body)
	for _, s := range data {
		b.Data(s.Offset, s.Bytes)
	}
	if edit != nil {
		edit(b)
	}
	return b.Bytes()
}

// CmdPrint returns a body that writes n bytes at an address of the memory to a
// descriptor. It uses 16 bytes at 0.
func CmdPrint(fd, at, n int32) []byte {
	return join(
		I32Const(0), I32Const(at), I32Store(0), I32Const(0), I32Const(n), I32Store(4),
		I32Const(fd), I32Const(0), I32Const(1), I32Const(8), Call(CmdWrite), Drop())
}

// CmdCopyInput returns a body that copies its standard input to its standard output.
func CmdCopyInput() []byte {
	const piece = 4096
	return Block(Loop(
		I32Const(0), I32Const(CmdBase), I32Store(0), I32Const(0), I32Const(piece), I32Store(4),
		I32Const(0), I32Const(0), I32Const(1), I32Const(8), Call(CmdRead), BrIf(1),
		I32Const(8), I32Load(0), I32Eqz(), BrIf(1),
		I32Const(0), I32Const(8), I32Load(0), I32Store(4),
		I32Const(1), I32Const(0), I32Const(1), I32Const(12), Call(CmdWrite), BrIf(1),
		Br(0)))
}

// CmdCopyArgs returns a body that writes its arguments to its standard output, each with
// a NUL byte at its end.
func CmdCopyArgs() []byte {
	return join(
		I32Const(16), I32Const(20), Call(CmdArgsSizes), Drop(),
		I32Const(CmdBase), I32Const(2*CmdBase), Call(CmdArgs), Drop(),
		I32Const(0), I32Const(2*CmdBase), I32Store(0), I32Const(0), I32Const(20), I32Load(0), I32Store(4),
		I32Const(1), I32Const(0), I32Const(1), I32Const(8), Call(CmdWrite), Drop())
}

// CmdExitWith returns a body that ends the command.
func CmdExitWith(code int32) []byte { return join(I32Const(code), Call(CmdExit)) }
