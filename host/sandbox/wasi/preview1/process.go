package preview1

import (
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/sys"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

// Process holds the settings of a guest that is a program. The zero value stands for no
// arguments, no environment and an empty input.
type Process struct {
	// Args are the arguments, beginning with the name of the program. Env are NAME=VALUE,
	// without PWD. Neither holds a NUL byte; together they are less than 4 GiB.
	Args, Env []string
	Stdin     string // content of the standard input
	// Stdout and Stderr receive the output of the program. Nil: those of the world do.
	Stdout, Stderr io.Writer
	// Cwd is the absolute name of the working directory; "": none. If the guest cannot see the
	// directory, "/" is used: programs that ask for their directory first do not run without
	// an answer. C libraries take relative paths for absolute ones, and for both use the
	// preopen with the longest matching name, so the working directory is one more preopen,
	// called ".", after one for each mount. The Go library, and shells, use the variable PWD.
	// The Zig library takes the first preopen for the working directory, and passes it
	// absolute paths, too.
	Cwd string
}

// SetProcess makes the guest of the world a program. Call it before the guest runs.
func (w *World) SetProcess(p Process) {
	if p.Cwd != "" {
		if !w.opts.FS.Shows(p.Cwd) {
			p.Cwd = rootPreopenName
		}
		p.Env = append(slices.Clip(p.Env), "PWD="+p.Cwd)
	}
	w.args, w.env = newStringList(p.Args), newStringList(p.Env)
	w.fds[0].in = strings.NewReader(p.Stdin)
	if p.Stdout != nil {
		w.fds[1].out = p.Stdout
	}
	if p.Stderr != nil {
		w.fds[2].out = p.Stderr
	}
	if p.Cwd == "" {
		return
	}
	insertPreopen := func(at int, name, preopen string) {
		w.fds = slices.Insert(w.fds, at, &descriptor{kind: directory, base: directoryRights, inheriting: allRights, name: name, preopen: preopen})
	}
	insertPreopen(len(w.fds)-1, p.Cwd, cwdPreopenName) // before "/"
	for _, m := range w.opts.FS.Mounts() {
		insertPreopen(len(w.fds), m, "."+m) // Go's library would take a name that begins with the text of another for a name inside it
	}
	insertPreopen(len(w.fds), p.Cwd, ".")
}

// cwdPreopenName is the name of the first preopen of a program: its working directory. C
// libraries take the name for ".", and use the last preopen of that name.
const cwdPreopenName = "./"

type stringList struct {
	texts []string
	size  int // bytes, with a NUL byte at the end of each text
}

func newStringList(texts []string) stringList {
	l := stringList{texts: texts}
	for _, s := range texts {
		l.size += len(s) + 1
	}
	return l
}

// writeList writes the texts, one after the other, to the pointer in parameter 1, and the
// address of each text to the pointer in parameter 0.
func (g guest) writeList(l stringList) wasi.Errno {
	if len(l.texts) == 0 {
		return 0 // the pointers are not used
	}
	places, errno := g.result(0, 4*uint64(len(l.texts)))
	if errno != 0 {
		return errno
	}
	texts, errno := g.result(1, uint64(l.size))
	if errno != 0 {
		return errno
	}
	g.w.opts.Charge(uint64(len(l.texts))*costIovec + uint64(l.size)>>costShift)
	at := g.u32(1)
	for i, s := range l.texts {
		le.PutUint32(places[4*i:], at)
		n := copy(texts, s)
		texts[n] = 0
		texts = texts[n+1:]
		at += uint32(n) + 1
	}
	return 0
}

// writeListSizes writes the number of texts, and their total size in bytes, to the pointers in
// the parameters 0 and 1.
func (g guest) writeListSizes(l stringList) wasi.Errno {
	count, errno := g.result(0, 4)
	if errno != 0 {
		return errno
	}
	size, errno := g.result(1, 4)
	if errno != 0 {
		return errno
	}
	le.PutUint32(count, uint32(len(l.texts)))
	le.PutUint32(size, uint32(l.size))
	return 0
}

// procExit ends the guest by a panic with the engine's own error, a [sys.ExitError] with the
// code of the guest. The instance stays open: its maker closes it.
func procExit(g guest) wasi.Errno { panic(stop{sys.NewExitError(g.u32(0))}) }

// procRaise always fails: there are no signals.
func procRaise(guest) wasi.Errno { return wasi.ENOSYS }

func schedYield(guest) wasi.Errno {
	runtime.Gosched()
	return 0
}
