//go:build unix

package preview1_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
)

// startGuest returns a guest that is a program.
func startGuest(t *testing.T, opts *preview1.Options, p preview1.Process) *guest {
	t.Helper()
	world := preview1.New(opts)
	t.Cleanup(func() { world.Close() })
	world.SetProcess(p)
	return guestIn(t, world)
}

// texts returns the strings that args_get or environ_get writes.
func (g *guest) texts(name string) []string {
	g.t.Helper()
	g.must(name+"_sizes_get", resultAt, resultAt+4)
	count, size := int(g.u32(resultAt)), int(g.u32(resultAt+4))
	g.mod.Memory().Write(uint32(8192), bytes.Repeat([]byte{0xee}, 4*count+size+2))
	g.must(name+"_get", 8192, 8192+4*count)
	if end := g.bytes(8192+4*count+size, 2); end[0] != 0xee || end[1] != 0xee {
		g.t.Errorf("%s wrote more than it said", name)
	}
	var out []string
	for i := range count {
		at := int(g.u32(8192 + 4*i))
		text, _, ended := bytes.Cut(g.bytes(at, 8192+4*count+size-at), []byte{0})
		if !ended {
			g.t.Errorf("%s: text %d has no end", name, i)
		}
		out = append(out, string(text))
	}
	return out
}

// The first cases are those of the wasi-testsuite.
func TestAProcessHasArgumentsAndVariables(t *testing.T) {
	for name, texts := range map[string][]string{
		"the name of the program": {"prog"},
		"several":                 {"first", "the \"second\" arg", "3"},
		"variables":               {"a=text", "b=escap \" ing", "c=new\nline"},
		"empty ones":              {"", "", "x", ""},
		"many":                    slices.Repeat([]string{"abc"}, 1000),
		"a large one":             {strings.Repeat("x", 100_000)},
	} {
		t.Run(name, func(t *testing.T) {
			g := startGuest(t, nil, preview1.Process{Args: texts, Env: append([]string{"A=1"}, texts...)})
			if got := g.texts("args"); !slices.Equal(got, texts) {
				t.Errorf("arguments are %.200q", got)
			}
			if got := g.texts("environ"); !slices.Equal(got, append([]string{"A=1"}, texts...)) {
				t.Errorf("variables are %.200q", got)
			}
		})
	}
}

// If the list does not fit into the memory, nothing is written.
func TestArgumentsThatFault(t *testing.T) {
	p := preview1.Process{Args: []string{"prog", "argument"}} // 8 bytes, and 14
	p.Env = p.Args
	g := startGuest(t, nil, p)
	whole := g.bytes(0, memoryBytes)
	for i := range whole {
		whole[i] = 0xaa
	}
	before := bytes.Clone(whole)
	for name, at := range map[string][2]int{
		"pointers over the end":        {memoryBytes - 7, 1024},
		"pointers at the end":          {memoryBytes, 1024},
		"texts over the end":           {1024, memoryBytes - 13},
		"texts at the end":             {1024, memoryBytes},
		"pointers beyond":              {-1, 1024},
		"texts beyond":                 {1024, -1},
		"texts that wrap":              {1024, -14},
		"pointers that wrap":           {-8, 1024},
		"both":                         {-1, -1},
		"texts behind half the memory": {1024, 1 << 31},
	} {
		for _, f := range []string{"args_get", "environ_get"} {
			wantErrno(t, name+": "+f, g.call(f, at[0], at[1]), wasi.EFAULT)
		}
	}
	for _, f := range []string{"args_sizes_get", "environ_sizes_get"} {
		for _, at := range [][2]int{{memoryBytes - 3, 1024}, {1024, memoryBytes - 3}, {-1, -1}} {
			g.want(wasi.EFAULT, f, at[0], at[1])
		}
	}
	if !bytes.Equal(g.bytes(0, memoryBytes), before) {
		t.Error("something was written")
	}
	g.must("args_get", memoryBytes-8, 1024)
	g.must("args_get", 1024, memoryBytes-14)
	g.must("args_get", 1024, 1024) // the guest harms only itself
}

func TestArgumentsHaveTheirPrice(t *testing.T) {
	var used uint64
	opts := &preview1.Options{Charge: func(units uint64) { used += units }}
	g := startGuest(t, opts, preview1.Process{Args: slices.Repeat([]string{"a"}, 1000), Env: []string{strings.Repeat("x", 80_000)}, Stdin: strings.Repeat("x", 80_000)})
	for name, do := range map[string]func(){
		"arguments": func() { g.must("args_get", 8192, 16384) },
		"variables": func() { g.must("environ_get", 8192, 16384) },
		"input": func() {
			at, n := g.iovecs([2]int{8192, 80_000})
			g.must("fd_read", 0, at, n, resultAt)
		},
	} {
		before := used
		if do(); used-before < 4000 {
			t.Errorf("%s cost %d", name, used-before)
		}
	}
}

func TestAProcessReadsItsInput(t *testing.T) {
	var out, stderr, world bytes.Buffer
	g := startGuest(t, &preview1.Options{Stdout: &world, Stderr: &world}, preview1.Process{Stdin: "hello", Stdout: &out, Stderr: &stderr})
	read := func(n int, want string) {
		t.Helper()
		if got, errno := g.read(0, n); got != want || errno != 0 {
			t.Errorf("read %q, %v; want %q", got, errno, want)
		}
	}
	ready := func(want int, flags uint16) {
		t.Helper()
		if e := g.poll(fdSub(1, evRead, 0)); len(e) != 1 || e[0].bytes != uint64(want) || e[0].flags != flags {
			t.Errorf("poll says %+v", e)
		}
	}
	ready(5, 0)
	read(3, "hel")
	ready(2, 0)
	read(10, "lo")
	ready(0, 1)
	read(10, "")
	g.write(1, "out")
	g.write(2, "err")
	if out.String() != "out" || stderr.String() != "err" || world.Len() > 0 {
		t.Errorf("it wrote %q, %q, and %q to the world", &out, &stderr, &world)
	}
	_, errno := g.write(0, "x")
	wantErrno(t, "write to the input", errno, wasi.ENOTCAPABLE)
	at, n := g.iovecs([2]int{memoryBytes - 1, 2})
	g.want(wasi.EFAULT, "fd_read", 0, at, n, resultAt)
}

// preopens lists the preopens as a library does at its start.
func (g *guest) preopens() map[string]int {
	g.t.Helper()
	out := map[string]int{}
	for fd := preopen; g.call("fd_prestat_get", fd, resultAt) == 0; fd++ {
		n := int(g.u32(resultAt + 4))
		g.want(wasi.ENAMETOOLONG, "fd_prestat_dir_name", fd, 8192, n-1)
		g.must("fd_prestat_dir_name", fd, 8192, n)
		out[string(g.bytes(8192, n))] = fd
	}
	return out
}

// The working directory, and the mounts, are other names for directories below "/": the
// same operations succeed and fail there.
func TestOtherNamesAreHeldToTheSameRules(t *testing.T) {
	h := newHost(t)
	plant(h)
	h.File("ws/.ssh/id_ed25519", canary)
	h.File("ws/.git/hooks/pre-commit", "x")
	open := func() *guest {
		world := preview1.New(h.options([]string{"ws/masked", "ws/later"}, h.rw("ws"), policy.Mount{Host: h.Path("ro")}))
		t.Cleanup(func() { world.Close() })
		world.SetProcess(preview1.Process{Cwd: h.Path("ws")})
		return guestIn(t, world)
	}
	g := open()
	names := g.preopens()
	if len(names) != 5 || names["./"] != preopen || names["/"] != 4 || names["."] != 7 || names["."+h.Path("ws")]+names["."+h.Path("ro")] != 11 {
		t.Fatalf("the preopens are %v", names)
	}
	calls := map[string]func(g *guest, dir int, p string) wasi.Errno{
		"read": func(g *guest, dir int, p string) wasi.Errno {
			fd, errno := g.open(dir, p, openOptions{base: rFDRead})
			if errno == 0 {
				g.read(fd, 1000) // which fails the test if it finds the canary
				g.must("fd_close", fd)
			}
			return errno
		},
		"follow": func(g *guest, dir int, p string) wasi.Errno {
			_, errno := g.open(dir, p, openOptions{base: rFDRead, follow: 1})
			return errno
		},
		"write": func(g *guest, dir int, p string) wasi.Errno {
			_, errno := g.open(dir, p, openOptions{oflags: oCreat, base: rFDWrite})
			return errno
		},
		"mkdir": func(g *guest, dir int, p string) wasi.Errno { return g.call("path_create_directory", dir, p) },
		"stat":  func(g *guest, dir int, p string) wasi.Errno { _, errno := g.pathStat(dir, 1, p); return errno },
		"readlink": func(g *guest, dir int, p string) wasi.Errno {
			return g.call("path_readlink", dir, p, 8192, 100, resultAt)
		},
		"link": func(g *guest, dir int, p string) wasi.Errno { return g.call("path_link", dir, 0, p, dir, "linked") },
	}
	for what, call := range calls {
		for _, p := range []string{"f.txt", "no", "abs", "rel", "up/secret", "good", "loop", "hard", "masked/key", "ml/key", "later", "d", "d/../../out/secret",
			".ssh/id_ed25519", ".git/hooks/pre-commit", ".git/hooks/new", ".git/config", "a\x00b", "\xff", "d/./g.txt", strings.Repeat("x/", 3000)} {
			before := h.State()
			want := call(open(), names["/"], h.name("ws")+"/"+p)
			changed := fmt.Sprint(h.State()) != fmt.Sprint(before)
			if changed {
				continue // once is enough
			}
			g := open()
			if !strings.HasPrefix(p, "d/..") { // only a library that knows a single directory uses this name
				wantErrno(t, fmt.Sprintf("%s the absolute %.40q", what, p), call(g, names["./"], h.Path("ws")+"/"+p), want)
			}
			for name, fd := range map[string]int{".": names["."], "the first": names["./"], "the mount": names["."+h.Path("ws")]} {
				if strings.HasPrefix(p, "d/..") {
					want = wasi.EPERM // above the directory, where the name is meant to lead
				}
				wantErrno(t, fmt.Sprintf("%s %.40q in %s", what, p, name), call(g, fd, p), want)
			}
			h.CheckUnchanged(before)
		}
	}
	for _, p := range []string{"../out/secret", "..", "/", h.Path("ws/f.txt"), "d/../../ro/x"} {
		_, errno := g.open(names["."], p, openOptions{base: rFDRead})
		wantErrno(t, "open "+p, errno, wasi.EPERM)
	}
	_, errno := g.open(names["."+h.Path("ro")], "new", openOptions{oflags: oCreat, base: rFDWrite})
	wantErrno(t, "write to what is read-only", errno, wasi.EROFS)
}

// A program begins at the root if it cannot see the working directory.
func TestWhereAProcessBegins(t *testing.T) {
	h := newHost(t)
	plant(h)
	first, _, _ := strings.Cut(h.name("ro"), "/")
	for name, c := range map[string]struct {
		mounts []policy.Mount
		cwd    string
		want   string // PWD
		sees   string // an entry of the directory
	}{
		"in a mount":                    {[]policy.Mount{h.rw("ws")}, h.Path("ws"), h.Path("ws"), "f.txt"},
		"below one":                     {[]policy.Mount{h.rw("ws")}, h.Path("ws/d"), h.Path("ws/d"), "g.txt"},
		"above one":                     {[]policy.Mount{h.rw("ws")}, h.Base, h.Base, "ws"},
		"nothing is mounted":            {nil, h.Path("out"), "/", ""},
		"something else is":             {[]policy.Mount{h.ro("ro")}, h.Path("out"), "/", first},
		"something with a longer name":  {[]policy.Mount{h.ro("ro")}, h.Path("r"), "/", first},
		"something with a shorter name": {[]policy.Mount{h.ro("ro")}, h.Path("rode"), "/", first},
	} {
		g := startGuest(t, h.options(nil, c.mounts...), preview1.Process{Cwd: c.cwd, Env: []string{"A=1"}})
		if got := g.texts("environ"); !slices.Equal(got, []string{"A=1", "PWD=" + c.want}) {
			t.Errorf("%s: the variables are %q", name, got)
		}
		dir := g.preopens()["."]
		if dir == 0 {
			t.Fatalf("%s: there is no preopen", name)
		}
		if st := g.stat(dir); st.typ != tDirectory {
			t.Errorf("%s: it is %+v", name, st)
		}
		if list := g.list(dir, 1000); c.sees != "" && !slices.ContainsFunc(list, func(e dirent) bool { return e.name == c.sees }) || c.sees == "" && len(list) > 2 {
			t.Errorf("%s: it lists %+v", name, list)
		}
		if c.want == "/" {
			_, errno := g.open(dir, "secret", openOptions{base: rFDRead})
			wantErrno(t, name, errno, wasi.EPERM)
		}
	}
	g := startGuest(t, nil, preview1.Process{})
	if got := g.texts("environ"); len(got) > 0 || g.preopens()["."] != 0 {
		t.Errorf("without a directory the variables are %q and the preopens %v", got, g.preopens())
	}
}

// FuzzArguments lets a guest ask for its arguments with any pointers: they are written
// completely or not at all.
func FuzzArguments(f *testing.F) {
	f.Add(uint32(8192), uint32(16384), "a\nb")
	f.Add(uint32(memoryBytes-8), uint32(0), "a")
	f.Add(uint32(1<<32-1), uint32(1<<32-4), "")
	f.Fuzz(func(t *testing.T, places, texts uint32, args string) {
		p := preview1.Process{Args: strings.Split(strings.ReplaceAll(args, "\x00", ""), "\n")}
		g := startGuest(t, nil, p)
		errno := g.call("args_get", places, texts)
		fits := uint64(places)+4*uint64(len(p.Args)) <= memoryBytes && uint64(texts)+uint64(len(strings.Join(p.Args, " "))+1) <= memoryBytes
		switch {
		case fits != (errno == 0):
			t.Fatalf("%#x and %#x for %q: %v", places, texts, p.Args, errno)
		case !fits && bytes.Trim(g.bytes(0, memoryBytes), "\x00") != nil && len(bytes.Trim(g.bytes(0, memoryBytes), "\x00")) > 0:
			t.Fatal("something was written")
		case fits && uint64(texts) >= uint64(places)+4*uint64(len(p.Args)):
			at := binary.LittleEndian.Uint32(g.bytes(int(places), 4))
			if got := string(g.bytes(int(at), len(p.Args[0])+1)); got != p.Args[0]+"\x00" {
				t.Fatalf("the first is %q", got)
			}
		}
	})
}
