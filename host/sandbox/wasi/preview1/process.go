package preview1

import (
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/sys"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

// Process is what a guest gets that is a program of its own. The zero value is what
// every guest has without.
type Process struct {
	// Args begin with the name of the program. Env are NAME=VALUE, without PWD. Neither
	// holds a NUL byte; together they are less than 4 GiB.
	Args, Env []string
	// Stdin is what it can read.
	Stdin string
	// Stdout and Stderr take what it writes, instead of those of the world. Nil is the
	// world's.
	Stdout, Stderr io.Writer
	// Cwd is the absolute name of the directory where its relative paths start; empty
	// for none. Where the guest cannot see it, that is "/": programs that ask first of
	// all where they are go no further without an answer. Libraries of C take relative
	// paths for absolute ones, and for both the preopen with the longest name that fits,
	// so that the directory is one more, called ".", behind one for each mount. The
	// library of Go, and shells, go by the variable PWD. The library of Zig takes the
	// first preopen for the working directory, and passes it absolute paths, too.
	Cwd string
}

// SetProcess makes the guest of the world a process. It has not run yet.
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
	also := func(at int, name, preopen string) {
		w.fds = slices.Insert(w.fds, at, &descriptor{kind: directory, base: directoryRights, inheriting: allRights, name: name, preopen: preopen})
	}
	also(len(w.fds)-1, p.Cwd, cwdPreopenName) // before "/"
	for _, m := range w.opts.FS.Mounts() {
		also(len(w.fds), m, "."+m) // Go's library would take a name that begins with the text of another for one inside it
	}
	also(len(w.fds), p.Cwd, ".")
}

// cwdPreopenName is the name of the first preopen of a process: its working directory. Libraries
// of C take the name for ".", and use the last preopen of that name.
const cwdPreopenName = "./"

// stringList are the arguments or the variables of a process.
type stringList struct {
	texts []string
	size  int // with a NUL byte at the end of each
}

func newStringList(texts []string) stringList {
	l := stringList{texts: texts}
	for _, s := range texts {
		l.size += len(s) + 1
	}
	return l
}

// list writes the texts one after the other where parameter 1 points, and where
// each of them begins where parameter 0 points.
func (g guest) writeList(l stringList) wasi.Errno {
	if len(l.texts) == 0 {
		return 0 // the pointers mean nothing
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

// writeListSizes writes how many there are, and how long they are together.
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

// procExit ends the guest. The error is the engine's own, as it would be with
// the engine's WASI. The instance is not closed: whoever made it does that.
func procExit(g guest) wasi.Errno { panic(stop{sys.NewExitError(g.u32(0))}) }

// procRaise sends no signals.
func procRaise(guest) wasi.Errno { return wasi.ENOSYS }

func schedYield(guest) wasi.Errno {
	runtime.Gosched()
	return 0
}
