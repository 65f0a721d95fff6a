package selftest

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/selftest/machine"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// leftOver is an attack of two calls of the same module: the second must not see anything
// of the first.
type leftOver struct {
	name, description string
	leave             func(*script) *call // its last call shows that the data is there
	isLeft            func(uint32) bool
	read              func(*script) *call // its last call shows what the second call sees
	crash             bool                // the first call ends with a trap
	kinds             []Kind              // nil is all
	by                string
}

func (a leftOver) run(t *trial) (string, error) {
	first, second := &script{}, &script{}
	left := a.leave(first)
	if a.crash {
		first.add("trap")
	}
	seen := a.read(second)
	if a.crash {
		o, err := t.runScript(Guest{}, first)
		if err != nil {
			return "", err
		}
		if e := o.Result.Err; e == nil || e.Code != tool.CodeTrap || !strings.Contains(e.Message, "unreachable") {
			return "", newUntried("the first call did not crash")
		}
	} else {
		r, err := t.runReport(Guest{}, first)
		if err != nil {
			return "", err
		}
		if r.callCount(left) != 1 || !a.isLeft(r.resultOf(left)) {
			return "", newUntried("the first call did not leave anything")
		}
	}
	r, err := t.runReport(Guest{}, second)
	switch {
	case err != nil:
		return "", err
	case a.isLeft(r.resultOf(seen)):
		return "", errors.New("the second call sees what the first has left")
	}
	return "instance: " + a.by, nil
}

const mark = 0x5ec2e7

func stateAttacks() []Attack {
	const fresh = "a fresh one for each call"
	isMark := func(v uint32) bool { return v == mark }
	load := func(s *script) *call { return s.add("load", machine.StateAt) }
	var out []Attack
	for _, a := range []leftOver{
		{name: "memory-left", description: "Find in the memory what the call before has left.", isLeft: isMark, read: load, by: fresh,
			leave: func(s *script) *call { s.add("store", machine.StateAt, mark); return load(s) }},
		{name: "global-left", description: "Find in a global what the call before has left.", isLeft: isMark, by: fresh,
			leave: func(s *script) *call { s.add("state.set", mark); return s.add("state.get") },
			read:  func(s *script) *call { return s.add("state.get") }},
		{name: "table-left", description: "Find a table as large as the call before has made it.", by: fresh,
			isLeft: func(v uint32) bool { return v == 1001 },
			leave:  func(s *script) *call { s.add("table.grow", 1000); return s.add("table.size") },
			read:   func(s *script) *call { return s.add("table.size") }},
		{name: "memory-size-left", description: "Find the memory as large as the call before has made it, with what was there.", by: fresh,
			isLeft: func(v uint32) bool { return v != machine.Pages },
			leave:  func(s *script) *call { s.add("memory.grow", 10); return s.add("memory.size") },
			read:   func(s *script) *call { return s.add("memory.size") }},
		{name: "grown-memory-left", description: "Find in memory that is added what the call before has left there.", isLeft: isMark, by: "added memory is zero",
			leave: func(s *script) *call {
				s.add("memory.grow", 10)
				s.add("store", machine.Pages*page, mark)
				return s.add("load", machine.Pages*page)
			},
			read: func(s *script) *call { s.add("memory.grow", 10); return s.add("load", machine.Pages*page) }},
		{name: "variable-left", description: "Find a variable that the call before has set.", isLeft: func(v uint32) bool { return v != 0 }, kinds: plugin, by: fresh,
			leave: func(s *script) *call {
				s.add("extism.var_set", s.block("name"), s.block("value"))
				return s.add("extism.var_get", s.block("name"))
			},
			read: func(s *script) *call { return s.add("extism.var_get", s.block("name")) }},
		{name: "block-left", description: "Find in a new block what the call before has left in one.", isLeft: isMark, kinds: plugin, by: "blocks are zero",
			leave: func(s *script) *call {
				block := s.alloc(64 << 10)
				s.add("extism.store_u64", block, uint64(mark))
				return s.add("extism.load_u64", block)
			},
			read: func(s *script) *call { return s.add("extism.load_u64", s.alloc(64<<10)) }},
		{name: "crash-left", description: "Find in the memory what a call has left that crashed.", isLeft: isMark, read: load, crash: true, by: fresh,
			leave: func(s *script) *call { return s.add("store", machine.StateAt, mark) }},
	} {
		out = append(out, Attack{Name: a.name, Description: a.description, kinds: a.kinds, run: a.run})
	}
	return append(append(out,
		Attack{Name: "descriptor-left", Description: "Read from a file that the call before has left open.", run: descriptorLeft},
		Attack{Name: "file-left", Description: "Read, without a mount, a file that the call before has made with one.", run: fileLeft},
		Attack{Name: "running-call", kinds: reactors, Description: "Find in the memory what a call of the same module has there that still runs.", run: runningCall},
		Attack{Name: "descriptors-inherited", Description: "Read from every descriptor, for one that the host has open.", run: descriptorsInherited},
		Attack{Name: "environment", Description: "Read the environment and the arguments of the host.", run: environment},
		Attack{Name: "standard-input", Description: "Read what is typed or piped to the host.", run: standardInput},
		Attack{Name: "exit", Description: "End the host by ending itself.", run: exitAttack("code 3", func(s *script) { s.add("proc_exit", 3) }, nil)},
		Attack{Name: "exit-while-initializing", kinds: reactors, Description: "End the host before the tool is called.", run: exitAttack("exit code", nil,
			&machine.Options{Initialize: func(m *machine.Machine) []byte { return code(w.I32Const(3), w.Call(m.ImportIndex("proc_exit"))) }})},
		Attack{Name: "crash", Description: "Take the host along by crashing.", run: exitAttack("unreachable", func(s *script) { s.add("trap") }, nil)},
	), append(storeAttacks(), processAttacks()...)...)
}

func descriptorLeft(t *trial) (string, error) {
	first, second := &script{}, newHarmlessScript()
	f := first.open(first.place(t.guestPath("ws/inside")), 0, rightsRead, 0)
	f.mustSucceed("open a file")
	fd := first.add("load", uint32(f.fd))
	read, _ := first.read(f.fd, 4)
	read.mustSucceed("read from the file")
	r, _, err := t.runChecked(t.workspaceGuest(true), first)
	if err != nil {
		return "", err
	}
	read, _ = second.read(r.resultOf(fd), 48)
	read.mustBeRefused("read from the descriptor", "EBADF")
	second.add("fd_filestat_get", r.resultOf(fd), second.reserve(64).at).mustBeRefused("look at the descriptor", "EBADF")
	return t.runRefused(t.workspaceGuest(true), second, "instance: descriptors of its own")
}

func fileLeft(t *trial) (string, error) {
	if err := t.noteState("ws"); err != nil {
		return "", newUntried("%v", err)
	}
	first, second := &script{}, newHarmlessScript()
	f := first.open(first.place(t.guestPath("ws/left")), oCreate, rightsRead|rightsWrite, 0)
	f.mustSucceed("create a file")
	first.writeText(f.fd, t.canary).mustSucceed("write to the file")
	if _, _, err := t.runChecked(t.workspaceGuest(true), first); err != nil {
		return "", err
	}
	if content, readErr := os.ReadFile(t.hostPath("ws/left")); readErr != nil || string(content) != t.canary {
		return "", newUntried("the file is not there")
	}
	second.steal(second.place(t.guestPath("ws/left")), "open the file")
	second.stat(second.place(t.guestPath("ws/left")), followLinks).mustBeRefused("look for the file")
	return t.runRefused(Guest{}, second, "files: every call sees its own mounts")
}

func runningCall(t *trial) (string, error) {
	first, second := &script{}, &script{}
	first.add("store", machine.StateAt, mark)
	first.log("stored")
	kept := first.add("load", machine.StateAt)
	seen := second.add("load", machine.StateAt)
	r, other, err := t.reportBoth(Guest{}, first, second)
	switch {
	case err != nil:
		return "", err
	case r.resultOf(kept) != mark:
		return "", fmt.Errorf("another call has changed the memory")
	case other.resultOf(seen) == mark:
		return "", errors.New("another call sees the memory")
	}
	return "instance: a fresh one for each call", nil
}

func descriptorsInherited(t *trial) (string, error) {
	s := newHarmlessScript()
	for fd := rootFD + 1; fd < 64; fd++ {
		into := s.words(machine.BufferBase, 64)
		s.add("fd_read", fd, into.at, 1, s.words(0).at).mustBeRefused(fmt.Sprintf("read from %d", fd), "EBADF")
	}
	if t.kind != machine.Command { // a command has one more descriptor, for its working directory
		s.add("fd_prestat_get", rootFD+1, s.words(0, 0).at).mustBeRefused("a second directory of the host", "EBADF")
	}
	return t.runRefused(Guest{}, s, "instance: descriptors of its own")
}

// environment reads the arguments and variables of a process. A command must find its
// name and its directory there, all other kinds nothing.
func environment(t *trial) (string, error) {
	s := &script{}
	lists := s.readProcess()
	r, _, err := t.runChecked(Guest{}, s)
	if err != nil {
		return "", err
	}
	env, args := lists(r)
	want, by := "", "instance: no environment, no arguments"
	if t.kind == machine.Command {
		want, by = "PWD=/\x00"+toolName+"\x00", "instance: its name and its directory"
	}
	switch {
	case len(os.Environ()) == 0:
		return "", newUntried("the host has no environment")
	case env+args != want:
		return "", fmt.Errorf("it sees %q and %q", env, args)
	}
	return by, nil
}

func standardInput(t *trial) (string, error) {
	s := &script{}
	into, n := s.reserve(64), s.reserve(4)
	list := s.words(into.at, into.n)
	read := s.add("fd_read", 0, list.at, 1, n.at)
	r, err := t.runReport(Guest{}, s)
	switch {
	case err != nil:
		return "", err
	case r.callCount(read) != 1 || r.errno(read) == wasi.ENOSYS:
		return "", newUntried("the guest did not read")
	case r.errno(read) == 0 && r.u32(n.at) > 0:
		return "", fmt.Errorf("it reads %d bytes", r.u32(n.at))
	}
	if e := r.errno(read); e != 0 {
		return fmt.Sprintf("instance: no standard input (%s)", e), nil
	}
	return "instance: standard input is empty", nil
}

// exitAttack is a guest that ends with a failure, after which another one must run.
func exitAttack(wantMessage string, do func(*script), own *machine.Options) func(*trial) (string, error) {
	return func(t *trial) (string, error) {
		s := &script{}
		if do != nil {
			do(s)
		}
		by, err := t.runStopped(Guest{machineOptions: own}.withScript(s), wantMessage, tool.CodeTrap, tool.CodeFailed)
		if err != nil {
			return "", err
		}
		if _, _, err := t.runChecked(Guest{}, newHarmlessScript()); err != nil {
			return "", fmt.Errorf("no other guest runs afterwards: %w", err)
		}
		return by, nil
	}
}
