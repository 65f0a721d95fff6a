package selftest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// amountCases are on too much of something.
func amountCases() []numbered {
	const outside = "EPERM"
	return []numbered{
		{id: "F30", title: "sparse files: an exbibyte by size, and a byte at its end", files: func(x *onMount) {
			x.may("ws")
			f := x.open(x.in("ws/huge"), oCreate, mayRead|mayWrite, 0)
			x.want(f.call, "create a file", "ok", "EROFS", outside)
			one := x.text("x")
			list := x.words(one.at, one.n)
			for _, at := range []int64{1 << 30, 1 << 40, 1 << 60, 1 << 62, 1<<63 - 1} {
				x.want(x.add("fd_filestat_set_size", f.fd, at+1&(1<<63-1)), fmt.Sprint("set the size to ", at), "EFBIG EINVAL", "EBADF", "EBADF")
				x.want(x.add("fd_pwrite", f.fd, list.at, 1, at, x.words(0).at), fmt.Sprint("write at ", at), "EFBIG EINVAL", "EBADF", "EBADF")
				x.want(x.add("fd_allocate", f.fd, at, int64(1)), fmt.Sprint("allocate at ", at), "EFBIG EINVAL ENOTSUP", "EBADF", "EBADF")
			}
			x.want(x.add("fd_filestat_set_size", f.fd, int64(-1)), "set a negative size", "EFBIG EINVAL", "EBADF", "EBADF")
			x.holds("ws/huge", "", "-", "-")
		}},
		{id: "F31", title: "write until the quota is used up", files: func(x *onMount) {
			x.may("ws")
			// The same 64 KiB again and again: they count, and nothing grows.
			f := x.open(x.in("ws/full"), oCreate, mayRead|mayWrite, 0)
			x.want(f.call, "create a file", "ok", "EROFS", outside)
			list := x.words(bufferBase, bufferSize)
			const most = 1 << 30 / bufferSize
			write := x.add("fd_pwrite", f.fd, list.at, 1, int64(0), x.words(0).at)
			x.again(write, most+10)
			x.want(write, "write more than a gibibyte", "ENOSPC", "EBADF", "EBADF")
			other := x.open(x.in("ws/other"), oCreate, mayRead|mayWrite, 0)
			x.want(x.put(other.fd, "x"), "write a byte to another file", "ENOSPC", "EBADF", "EBADF")
			x.checks = append(x.checks, func(r report) error {
				if n := r.times(write); n > most+1 || x.kind == writable && n < most {
					return fmt.Errorf("%d writes", n)
				}
				return nil
			})
		}, open: "the quota is that of a call: a workspace has none that outlives it"},
		{id: "F32", title: "a million small files", inMemory: true, files: func(x *onMount) {
			// A directory that is removed again counts, too.
			x.may("ws")
			const most = 1 << 16
			made := x.mkdir(x.in("ws/made"))
			x.rmdir(x.in("ws/made"))
			x.again(made, 1_000_000)
			last := x.mkdir(x.in("ws/last"))
			x.want(last, "make one more", "ENOSPC", "EROFS", outside)
			x.checks = append(x.checks, func(r report) error {
				if n := r.times(made); n > most+1 || x.kind == writable && n < most {
					return fmt.Errorf("%d directories were made", n)
				}
				return nil
			})
			x.writes("ws/more", oCreate, "ENOSPC", "EROFS", outside)
			x.holds("ws/more", "-")
		}},
		{id: "F34", title: "a hundred thousand open files, while another module opens one", files: func(x *onMount) {
			f := x.open(x.in("ws/inside"), 0, mayRead, 0)
			x.again(f.call, 100_000)
			x.want(f.call, "open one more", "EMFILE", "EMFILE", outside)
			x.checks = append(x.checks, func(r report) error {
				if n := r.times(f.call); n > 257 {
					return fmt.Errorf("%d files are open", n-1)
				}
				return nil
			})
			x.meanwhile(func() error {
				other := &script{}
				other.control(x.trial, grantWrite)
				r, err := x.report(x.mounted(true), other)
				if err == nil {
					_, err = r.check(other)
				}
				return err
			})
		}},
		{id: "F35", title: "list thousands of names with a buffer of one byte", inMemory: true, files: func(x *onMount) {
			const names = 5000
			x.must(os.Mkdir(x.host("ws/many"), 0o700), x.write("ws/many/0", ""))
			for i := range names - 1 {
				x.must(os.Mkdir(x.host(fmt.Sprint("ws/many/", i+1)), 0o700))
			}
			d := x.openDir(x.in("ws/many"))
			x.want(d.call, "open the directory", "ok", "ok", outside)
			// From every place in it, whose number is in the memory.
			place, used := x.words(0), x.words(0)
			list := x.add("fd_readdir", d.fd, bufferBase, 1, cell(place.at), used.at)
			x.add("add", place.at, 1)
			x.again(list, names)
			x.want(list, "list it", "ok", "ok", "EBADF")
			end := x.add("fd_readdir", d.fd, bufferBase, 1, int64(1)<<62, used.at)
			x.want(end, "list from a place that is not there", "ok EINVAL", "ok EINVAL", "EBADF")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			x.meanwhile(func() error {
				runtime.GC()
				runtime.ReadMemStats(&after)
				if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
					return fmt.Errorf("the host keeps %d MiB for it", grown>>20)
				}
				return nil
			})
			// Each look costs the same: the directory is not read from its
			// beginning every time.
			x.guest.Limits.Fuel = names * 20_000
		}},
	}
}

// mountCases are on mounts beside and inside each other, and on what is never
// mounted.
func mountCases() []numbered {
	const outside = "EPERM"
	masked := []string{"ws/.config/stockade", "ws/.local/share/stockade", "ws/.cache/stockade"}
	return []numbered{
		{id: "F38", title: "nested mounts: rw in ro, ro in rw, and only the inner one", files: func(x *onMount) {
			x.changes = []string{"ws"}
			outer := policy.Mount{Host: x.host("ws"), Write: x.kind == readOnly}
			inner := policy.Mount{Host: x.host("ws/d"), Write: x.kind != readOnly}
			x.guest.Mounts = []policy.Mount{{Host: x.host("else"), Write: true}, inner}
			if x.kind != absent {
				x.guest.Mounts = append(x.guest.Mounts, outer)
			}
			x.writes("ws/d/made", oCreate, "ok", "EROFS", "ok")
			x.writes("ws/../ws/d/made2", oCreate, "ok", "EROFS", "ok")
			x.writes("ws/made", oCreate, "EROFS", "ok", outside)
			x.writes("ws/d/../made2", oCreate, "EROFS", "ok", outside)
			x.writes("ws/inside", 0, "EROFS", "ok", outside)
			x.reads("ws/d/deep", "ok")
			d := x.openDir(x.in("ws/d"))
			x.want(d.call, "open the inner mount", "ok")
			x.readsAt(place{d.fd, x.text("../inside")}, "climb out of it", outside)
			x.want(x.rename(x.in("ws/d"), x.in("ws/moved")), "move the inner mount", "EPERM EROFS")
			x.want(x.rename(x.in("ws/d/deep"), x.in("ws/deep")), "move a file between them", "EXDEV EROFS", "EXDEV EROFS", "EPERM EROFS EXDEV")
			x.want(x.rename(x.in("ws/inside"), x.in("ws/d/inside")), "and back", "EXDEV EROFS", "EXDEV EROFS", outside)
			x.want(x.rmdir(x.in("ws/d")), "remove the inner mount", "EPERM EROFS")
			x.holds("ws/made", "-", "overwritten", "-")
			x.holds("ws/d/made", "overwritten", "-", "overwritten")
			x.holds("ws/d/deep", "deeper")
		}},
		{id: "F39", title: "the mounted directory is replaced while the guest runs", files: func(x *onMount) {
			x.changes = []string{"ws", "out/dir"}
			x.meanwhile(func() error {
				above, err := os.Stat(x.base)
				for _, step := range []func() error{
					func() error { return os.Rename(x.host("ws"), x.host("out/dir/gone")) },
					func() error { return os.Mkdir(x.host("ws"), 0o700) },
					func() error { return x.write("ws/inside", x.canary) },
					func() error { return os.Chtimes(x.base, time.Time{}, above.ModTime()) }, // it is compared in the end
				} {
					if err == nil {
						err = step()
					}
				}
				return err
			})
			c, content := x.reading("ws/inside", len(inside))
			x.want(c, "read the file that was there", "ok", "ok", outside)
			x.content(content, inside, inside, "")
			x.writes("ws/made", oCreate, "ok", "EROFS", outside)
			x.holds("ws/made", "-")
			x.holds("out/dir/gone/made", "overwritten", "-", "-")
		}},
		{id: "F40", title: "two modules at the same time with mounts of their own", files: func(x *onMount) {
			x.may("ws")
			second := &script{}
			second.open(second.at(x.trial.guest("ws2/secret")), 0, mayRead, 0).must("open a file in its own mount")
			for _, n := range []string{"ws/inside", "ws2/../ws/inside", "else/inside"} {
				second.steal(second.at(x.trial.guest(n)), "read "+n)
				second.overwrite(second.at(x.trial.guest(n)), oCreate, "write to "+n)
			}
			x.meanwhile(func() error {
				g := Guest{Code: otherMachine(), Files: tool.FilesWrite, Mounts: []policy.Mount{{Host: x.host("ws2"), Write: true}}}
				r, err := x.report(g, second)
				if err == nil {
					_, err = r.check(second)
				}
				return err
			})
			x.reads("ws/inside", "ok", "ok", outside)
			x.reads("ws2/secret", outside)
			x.writes("ws2/made", oCreate, outside)
			x.holds("ws2/made", "-")
		}},
		{id: "F41", title: "the temporary directory of another session", files: func(x *onMount) {
			x.must(os.Mkdir(x.host("out/stockade-session"), 0o700), x.write("out/stockade-session/notes", x.canary))
			x.reads("out/stockade-session/notes", outside)
			x.want(x.open(x.in("out"), oDirectory, mayList, 0).call, "list where it is", outside)
			// What leads to a mount can be listed, and shows nothing else.
			up := x.open(x.in("."), oDirectory, mayList, 0)
			x.want(up.call, "list the directory above", "ok")
			entries, used := x.room(512), x.room(4)
			x.want(x.add("fd_readdir", up.fd, entries.at, entries.n, int64(0), used.at), "list the directory above", "ok")
			x.checks = append(x.checks, func(r report) error {
				names := string(r.span(entries)[:min(r.u32(used.at), entries.n)])
				for _, n := range []string{"out", "ws2", "secret"} {
					if strings.Contains(names, n) {
						return fmt.Errorf("the guest sees %s", n)
					}
				}
				if strings.Contains(names, "ws") == (x.kind == absent) || !strings.Contains(names, "else") {
					return fmt.Errorf("the guest does not see what is mounted, or more: %q", names)
				}
				return nil
			})
			x.reads("../"+filepath.Base(os.TempDir()), outside)
			x.writes("made", oCreate, outside)
			x.holds("made", "-")
		}},
		{id: "F42", title: "our own configuration, keys and records inside the workspace", files: func(x *onMount) {
			for _, m := range masked[:2] {
				x.must(os.MkdirAll(x.host(m), 0o700), x.write(m+"/agent.toml", x.canary))
			}
			x.must(os.Mkdir(x.host("ws/.cache"), 0o700), x.link(".config/stockade", "ws/l"))
			for _, m := range masked {
				x.guest.Masked = append(x.guest.Masked, x.host(m))
			}
			for _, m := range masked[:2] {
				x.reads(m+"/agent.toml", outside)
				x.writes(m+"/agent.toml", oTruncate, outside, "EPERM EROFS", outside)
				x.writes(m+"/trust.key", oCreate, outside, "EPERM EROFS", outside)
				x.want(x.unlink(x.in(m+"/agent.toml")), "unlink "+m, outside, "EPERM EROFS", outside)
				x.want(x.open(x.in(m), oDirectory, mayList, 0).call, "list "+m, outside)
				x.want(x.rename(x.in(m), x.in("ws/moved")), "move "+m, outside, "EPERM EROFS", outside)
				x.want(x.rename(x.in(m[:strings.LastIndexByte(m, '/')]), x.in("ws/moved")), "move what holds "+m, outside, "EPERM EROFS", outside)
			}
			x.reads("ws/l/agent.toml", outside)
			x.want(x.mkdir(x.in(masked[2])), "make what is masked", outside, "EPERM EROFS", outside)
			x.want(x.rename(x.in("ws/d"), x.in(masked[2])), "move a directory there", outside, "EPERM EROFS", outside)
			// Nor is one of them, or what is in it, a mount of any kind.
			for _, dir := range []string{masked[0], masked[1]} {
				g := Guest{Masked: x.guest.Masked, Files: tool.FilesWrite, Mounts: []policy.Mount{{Host: x.host(dir), Write: x.kind == writable}}}
				g.Code, g.Args = machineCode(), (&script{}).arguments(nil)
				if o := x.target.Run(x.ctx, g); o.Err == nil || !strings.Contains(o.Err.Error(), "mask") {
					x.t.Errorf("a call with %s mounted: %v, %s", dir, o.Err, o.Result.Summary())
				}
			}
		}},
	}
}

// otherMachine is another module that does the same.
var otherMachine = sync.OnceValue(func() []byte {
	return initializing(func(*machine) []byte { return w.Nop() })
})
