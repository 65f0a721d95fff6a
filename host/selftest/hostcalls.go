package selftest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/selftest/machine"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// approvedCommand is the command that is approved in the attacks on exec.
const approvedCommand = "true"

// exec adds a call of exec.run that must be denied. An empty dir is not passed.
func (s *script) exec(dir string, args ...string) denial {
	var words []uint32
	for _, a := range args {
		t := s.text(a)
		words = append(words, t.at, t.n)
	}
	argv := s.words(words...)
	result, cwd, given := s.reserve(44), span{}, 0
	if dir != "" {
		cwd, given = s.text(dir), 1
	}
	return denial{s.add("exec.run", argv.at, len(args), given, cwd.at, cwd.n, 1000, 1000, 0, result.at), result, execError}
}

// denial is a call whose result must be the error "denied".
type denial struct {
	*call
	result span
	error  int // offset of the error's case in the result
}

// runDenied runs a script whose calls must be denied.
func (t *trial) runDenied(g Guest, s *script, denials ...denial) error {
	r, err := t.runReport(g, s)
	if err != nil {
		return err
	}
	for _, d := range denials {
		switch b := r.span(d.result); {
		case b[0] == 0:
			return fmt.Errorf("it worked: %s", d.function)
		case b[0] != 1 || b[d.error] != 0:
			return newUntried("%s says %x", d.function, b)
		}
	}
	return nil
}

// execError is the offset of the error's case in the result of exec.run.
const execError = 4

// touchCommand returns a command that makes a file, if a jail lets it.
func (t *trial) touchCommand() []string {
	return []string{"bash", "-c", "echo x > '" + t.hostPath("ws/made") + "'"}
}

// commandGuest returns a guest for which a command is approved in the workspace.
func (t *trial) commandGuest(command string) Guest {
	return Guest{Command: command, Cwd: t.hostPath("ws"), Mounts: []policy.Mount{{Host: t.hostPath("ws"), Write: true}}}
}

// abiFault returns a script with one call of a host function that breaks the ABI.
func abiFault(function string, operands ...any) func(*script) {
	return func(s *script) { s.add(function, operands...) }
}

func hostCallAttacks() []Attack {
	const end = machine.Pages * page
	some := func(n int) []any { return slices.Repeat([]any{0}, n) }
	return append([]Attack{
		limitAttack("log-overflow", "Log a text whose address and length overflow.", Guest{}, abiFault("log.log", 2, uint32(0xffff_fff0), 64), tool.CodeBadABI, "message").forKinds(native),
		limitAttack("log-length", "Log a text of four billion bytes.", Guest{}, abiFault("log.log", 2, 0, minusOne), tool.CodeBadABI, "message").forKinds(native),
		limitAttack("log-level", "Log at a level that there is not.", Guest{}, abiFault("log.log", 77, 0, 0), tool.CodeBadABI, "level").forKinds(native),
		limitAttack("progress-variant", "Report progress with an option that is neither there nor not.", Guest{}, abiFault("progress.report", 1, 7, 1, 0, 0), tool.CodeBadABI, "total").forKinds(native),
		limitAttack("digest-outside", "Have the host hash four billion bytes, most of them behind the end of the memory.", Guest{},
			abiFault("digest.sha256", 0, minusOne, machine.StateAt), tool.CodeBadABI, "data").forKinds(native),
		limitAttack("exec-arguments-outside", "Start a process with a list of arguments at the end of the address space.", Guest{},
			abiFault("exec.run", append([]any{uint32(0xffff_fff0), 4}, some(7)...)...), tool.CodeBadABI, "argv").forKinds(native),
		limitAttack("exec-arguments-bomb", "Start a process with four billion arguments.", Guest{},
			abiFault("exec.run", append([]any{0, minusOne}, some(7)...)...), tool.CodeBadABI, "argv").forKinds(native),
		limitAttack("exec-argument-overflow", "Start a process with an argument whose address and length overflow.", Guest{}, func(s *script) {
			list := s.words(0xffff_fff0, 64)
			s.add("exec.run", append([]any{list.at, 1}, some(7)...)...)
		}, tool.CodeBadABI, "argv").forKinds(native),
		limitAttack("result-pointer-outside", "Have the host write its answer behind the end of the memory.", Guest{}, abiFault("kv.get", 0, 0, end-8), tool.CodeBadABI, "result").forKinds(native),
		limitAttack("result-pointer-overflow", "Have the host write its answer at the end of the address space.", Guest{},
			abiFault("http.fetch", append(some(13), uint32(0xffff_fff8))...), tool.CodeBadABI, "result").forKinds(native),
		limitAttack("result-pointer-misaligned", "Have the host write its answer at an odd address.", Guest{}, abiFault("secrets.placeholder", 0, 0, machine.StateAt+1), tool.CodeBadABI, "result").forKinds(native),
		limitAttack("allocator-recursion", "Call the host again from the function by which the host allocates, without end.", Guest{Code: allocatesByHost()}, nil,
			tool.CodeBadABI, "allocator").forKinds(native),
		{Name: "wasi-pointers", Description: "Give WASI addresses and lengths that overflow or lie outside the memory.", run: wasiPointers},
		{Name: "socket-accept", Description: "Accept a connection on every descriptor.", run: socketAccept},
		{Name: "exec-not-granted", kinds: native, Description: "Start a process as a tool that did not ask for one.", run: execNotGranted},
		{Name: "exec-other-command", kinds: native, Description: "Run another command than the one that was approved.", run: execOther},
		{Name: "exec-other-directory", kinds: native, Description: "Run the approved command in another directory.", run: execElsewhere},
		{Name: "exec-while-initializing", kinds: native, Description: "Run the approved command before the tool is called.", run: execInitializing},
		{Name: "http-not-granted", kinds: native, Description: "Fetch from the network.", run: serviceNotGranted("http.fetch", 13, 40, 8, "the network")},
		{Name: "kv-not-granted", kinds: native, Description: "Read the key-value store.", run: serviceNotGranted("kv.get", 2, 24, 8, "the key-value store")},
		{Name: "kv-write-not-granted", kinds: native, Description: "Write to the key-value store.", run: serviceNotGranted("kv.set", 6, 24, 8, "the key-value store")},
		{Name: "search-not-granted", kinds: native, Description: "Look files up as a tool that sees none.", run: serviceNotGranted("search.stat", 2, 16, 4, "files")},
		{Name: "secret-not-granted", kinds: native, Description: "Ask for a secret.", run: serviceNotGranted("secrets.placeholder", 2, 16, 4, "secrets")},
	}, pluginHostAttacks()...)
}

// allocatesByHost returns a module whose allocator for results calls the host, which
// needs the allocator for the result.
func allocatesByHost() []byte {
	get := w.Import{Module: abi.ImportModule("kv"), Name: "get", Params: i32s(3)}
	ask := code(w.I32Const(0), w.I32Const(0), w.I32Const(4096), w.Call(0))
	return w.Tool(w.ToolOptions{Imports: []w.Import{get}, Call: code(ask, w.ReturnOK("asked")), Edit: func(b *w.Builder) {
		b.ExportFunc("cabi_import_realloc", b.Func("", i32s(4), i32x1, nil, ask, w.I32Const(8192)))
	}})
}

// wasiPointers tries each pointer in a call of its own: ending the guest is as good as a
// refusal.
func wasiPointers(t *trial) (string, error) {
	const wrap = uint32(0xffff_fff0)
	var refusals []wasi.Errno
	ended := ""
	for i := 0; ; i++ {
		s := &script{}
		s.control(t)
		f := s.open(s.place(t.guestPath("ws/inside")), 0, rightsRead, 0)
		f.mustSucceed("open a file")
		list := s.words(wrap, 64).at
		out := s.words(0).at
		all := [][]any{
			{"fd_write", 1, list, 1, out},
			{"fd_write", 1, wrap, 2, out},
			{"fd_write", 1, list, minusOne, out},
			{"fd_read", f.fd, list, 1, out},
			{"fd_read", f.fd, wrap, 1, out},
			{"random_get", wrap, 64},
			{"random_get", 1, minusOne},
			{"path_open", rootFD, 0, wrap, 64, 0, rightsRead, 0, 0, out},
			{"path_open", rootFD, 0, machine.ImageBase, minusOne, 0, rightsRead, 0, 0, out},
			{"path_filestat_get", rootFD, 0, f.operands[2], f.operands[3], wrap},
			{"path_readlink", rootFD, wrap, 64, out, 4, out},
			{"fd_filestat_get", f.fd, wrap},
			{"environ_sizes_get", wrap, wrap},
			{"clock_time_get", 1, 1, wrap + 12},
			{"poll_oneoff", wrap, out, 1, out},
		}
		if i == len(all) {
			break
		}
		function := all[i][0].(string)
		s.add(function, all[i][1:]...).mustBeRefused(function+" with an address outside", "EFAULT")
		o, err := t.runScript(t.workspaceGuest(true), s)
		if err != nil {
			return "", err
		}
		if o.Result.Err != nil {
			if ended, err = stoppedBy(o, "", tool.CodeTrap, tool.CodeBadABI); err != nil {
				return "", err
			}
			continue
		}
		r, err := readReport(o.Result.Output)
		if err != nil {
			return "", err
		}
		refused, err := r.check(s)
		if err != nil {
			return "", err
		}
		refusals = append(refusals, refused...)
	}
	slices.Sort(refusals)
	by := "wasi: bounds of the memory (" + joinErrnos(slices.Compact(refusals)) + ")"
	if ended != "" {
		by += "; " + ended
	}
	return by, nil
}

func socketAccept(t *trial) (string, error) {
	s := &script{}
	s.control(t)
	for fd := range 16 {
		s.add("sock_accept", fd, 0, s.words(0).at).mustBeRefused(fmt.Sprintf("accept on %d", fd), "EBADF", "ENOSYS")
	}
	return t.runRefused(t.workspaceGuest(true), s, "wasi: no descriptor is a socket")
}

func execNotGranted(t *trial) (string, error) {
	s := &script{}
	return "exec: not granted to this call", t.runDenied(t.commandGuest(""), s, s.exec("", t.touchCommand()...), s.exec("", "/bin/sh", "-c", t.touchCommand()[2]))
}

func execOther(t *trial) (string, error) {
	s := &script{}
	var all []denial
	for _, argv := range [][]string{t.touchCommand(), {"bash", "-c", approvedCommand + "; " + t.touchCommand()[2]}, {"bash", "-lc", approvedCommand}, {"sh", "-c", approvedCommand}, {approvedCommand}, {}} {
		all = append(all, s.exec("", argv...))
	}
	return "exec: not the command that was approved", t.runDenied(t.commandGuest(approvedCommand), s, all...)
}

func execElsewhere(t *trial) (string, error) {
	s := &script{}
	var all []denial
	for _, dir := range []string{t.hostPath("out"), "..", t.hostPath("ws/d"), "../out"} {
		all = append(all, s.exec(dir, "bash", "-c", approvedCommand))
	}
	return "exec: not the directory that was approved", t.runDenied(t.commandGuest(approvedCommand), s, all...)
}

// execInitializing has a command approved that makes a file, and tries to run it in
// _initialize, whose result stays in the memory.
func execInitializing(t *trial) (string, error) {
	command := t.touchCommand()[2]
	argv := []string{"bash", "-c", command}
	var list, texts []byte
	for _, a := range argv {
		list = append(list, le32(machine.BufferBase+uint32(8*len(argv)+len(texts)), uint32(len(a)))...)
		texts = append(texts, a...)
	}
	cwd := t.hostPath("ws")
	at := int32(machine.BufferBase + len(list) + len(texts))
	texts = append(texts, cwd...)
	initializing := func(m *machine.Machine) []byte {
		return code(
			w.I32Const(machine.BufferBase), w.I32Const(int32(len(argv))), w.I32Const(1), w.I32Const(at), w.I32Const(int32(len(cwd))),
			w.I32Const(1000), w.I32Const(1000), w.I32Const(0), w.I32Const(machine.StateAt), w.Call(m.ImportIndex("exec.run")))
	}
	s := &script{}
	result, which := s.add("load", machine.StateAt), s.add("load", machine.StateAt+execError)
	g := t.commandGuest(command)
	g.machineOptions = &machine.Options{Initialize: initializing, Data: []w.Segment{{Offset: machine.BufferBase, Bytes: append(list, texts...)}}}
	r, err := t.runReport(g, s)
	if err != nil {
		return "", err
	}
	_, made := os.Lstat(t.hostPath("ws/made"))
	switch answer := r.resultOf(result) & 0xff; {
	case made == nil:
		return "", errors.New("it worked: the command ran")
	case answer == 0:
		return "", errors.New("it worked: the command is said to have run")
	case answer != 1 || r.resultOf(which)&0xff != 0:
		return "", newUntried("exec.run says %d, %d", answer, r.resultOf(which)&0xff)
	}
	return "exec: not available while a module initialises", nil
}

// serviceNotGranted calls a function that must be denied. All its operands are zero
// except the address of the result, which has size bytes and the error's case at offset
// errorCase.
func serviceNotGranted(function string, operand, size, errorCase int, what string) func(t *trial) (string, error) {
	return func(t *trial) (string, error) {
		s := &script{}
		result := s.reserve(size)
		operands := slices.Repeat([]any{0}, machine.OperandCounts()[function])
		operands[operand] = result.at
		service, _, _ := strings.Cut(function, ".")
		return fmt.Sprintf("%s: nothing grants %s", service, what), t.runDenied(Guest{}, s, denial{s.add(function, operands...), result, errorCase})
	}
}
