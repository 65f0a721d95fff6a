package selftest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/stockade-dev/stockade/host/tool"
)

// linkCases are on links, of the host and of the guest.
func linkCases() []numbered {
	const outside = "EPERM"
	// through tries everything through a link that leads outside.
	through := func(x *onMount, target string, also func()) {
		x.must(x.link(target, "ws/l"))
		x.want(x.stat(x.in("ws/l"), 0), "see the link", "ok", "ok", outside)
		also()
	}
	toFile := func(target func(x *onMount) string) func(x *onMount) {
		return func(x *onMount) {
			through(x, target(x), func() {
				x.reads("ws/l", outside)
				x.writes("ws/l", 0, "EPERM", "EPERM EROFS", outside)
				x.writes("ws/l", oCreate|oTruncate, "EPERM", "EPERM EROFS", outside)
				x.want(x.open(x.in("ws/l"), oTruncate, mayRead, 0).call, "truncate", "EPERM", "EPERM EROFS", outside)
				x.want(x.open(x.in("ws/l"), 0, mayWrite, fdAppend).call, "append", "EPERM", "EPERM EROFS", outside)
				x.want(x.stat(x.in("ws/l"), followLinks), "look behind it", outside)
			})
		}
	}
	return []numbered{
		{id: "F05", title: "symbolic link with an absolute name outside", files: toFile(func(x *onMount) string { return x.host("out/secret") })},
		{id: "F06", title: "symbolic link with a relative name outside", files: toFile(func(*onMount) string { return "../out/secret" })},
		{id: "F07", title: "symbolic link to a directory outside, and names below it", files: func(x *onMount) {
			x.must(x.link("../out", "ws/d/l"), x.link("..", "ws/up"), x.link("../out/new", "ws/new"))
			through(x, "../out", func() {
				for _, l := range []string{"l", "up/out"} {
					x.reads("ws/"+l+"/secret", outside)
					x.writes("ws/"+l+"/made", oCreate, "EPERM", "EPERM EROFS", outside)
					x.want(x.mkdir(x.in("ws/"+l+"/made")), "mkdir "+l, "EPERM", "EPERM EROFS", outside)
					x.want(x.rename(x.in("ws/inside"), x.in("ws/"+l+"/moved")), "move out "+l, "EPERM", "EPERM EROFS", outside)
					x.want(x.rename(x.in("ws/"+l+"/secret"), x.in("ws/moved")), "move in "+l, "EPERM", "EPERM EROFS", outside)
					x.want(x.unlink(x.in("ws/"+l+"/secret")), "unlink "+l, "EPERM", "EPERM EROFS", outside)
					x.want(x.rmdir(x.in("ws/"+l+"/dir")), "rmdir "+l, "EPERM", "EPERM EROFS", outside)
				}
				d := x.open(x.in("ws/l"), oDirectory, mayList, 0)
				x.want(d.call, "open it as a directory", outside)
				x.writes("ws/new", oCreate, "EPERM", "EPERM EROFS", outside) // what a dangling one points to
				x.want(x.open(x.in("ws/new"), oCreate|oExclusive, mayWrite, 0).call, "create where a link is", "EEXIST EPERM", "EEXIST EPERM EROFS", outside)
			})
			x.holds("out/new", "-")
		}},
		{id: "F08", title: "symbolic link to /proc/self", files: func(x *onMount) {
			through(x, "/proc/self", func() {
				for _, n := range []string{"environ", "maps", "mem", "fd/0", "fd/1", "cwd/go.mod", "exe", "root/" + x.trial.guest("out/secret")} {
					x.reads("ws/l/"+n, outside)
				}
				x.writes("ws/l/mem", 0, "EPERM", "EPERM EROFS", outside)
				x.want(x.open(x.in("ws/l/fd"), oDirectory, mayList, 0).call, "list the descriptors", outside)
			})
		}},
		{id: "F09", title: "symbolic link that the guest makes, with a relative name", files: func(x *onMount) {
			for i, target := range []string{"../out/secret", "d/../../out/secret", "../../" + filepath.Base(x.base) + "/out/secret", "inside"} {
				n := fmt.Sprint("ws/l", i)
				x.want(x.symlink(target, x.in(n)), "link to "+target, "EPERM", "EPERM EROFS", outside)
				x.reads(n, "ENOENT", "ENOENT", outside)
				x.holds(n, "-")
			}
		}},
		{id: "F10", title: "symbolic link that the guest makes, with an absolute name", files: func(x *onMount) {
			for i, target := range []string{x.host("out/secret"), "/etc/passwd", "/proc/self/environ", x.host("ws/inside")} {
				n := fmt.Sprint("ws/l", i)
				x.want(x.symlink(target, x.in(n)), "link to "+target, "EPERM", "EPERM EROFS", outside)
				x.reads(n, "ENOENT", "ENOENT", outside)
				x.holds(n, "-")
			}
		}},
		{id: "F11", title: "chains and loops of symbolic links", files: func(x *onMount) {
			x.must(x.link("inside", "ws/l0"), x.link("b", "ws/a"), x.link("a", "ws/b"), x.link("self/self", "ws/self"), x.link("../out/secret", "ws/o0"))
			for i := range 50 {
				x.must(x.link(fmt.Sprint("l", i), fmt.Sprint("ws/l", i+1)), x.link(fmt.Sprint("o", i), fmt.Sprint("ws/o", i+1)))
			}
			// What is counted is fuel, which a look-up costs by its length.
			x.guest.Limits.Fuel = 5_000_000
			x.reads("ws/l50", "ELOOP", "ELOOP", outside)
			x.reads("ws/o50", "ELOOP", "ELOOP", outside)
			x.reads("ws/o3", outside)
			x.reads("ws/a", "ELOOP", "ELOOP", outside)
			x.reads("ws/b/x", "ELOOP", "ELOOP", outside)
			x.reads("ws/self/x", "ELOOP", "ELOOP", outside)
			x.writes("ws/l50", oCreate, "ELOOP", "ELOOP EROFS", outside)
			x.want(x.stat(x.in("ws/l50"), 0), "see the link", "ok", "ok", outside)
		}},
		{id: "F12", title: "symbolic links that stay inside work", files: func(x *onMount) {
			x.must(x.link("inside", "ws/l"), x.link("../inside", "ws/d/l"), x.link("d/l", "ws/ll"), x.link("d", "ws/dl"), x.link("../ws/../ws/inside", "ws/home"))
			x.may("ws")
			for _, n := range []string{"l", "d/l", "ll", "dl/l"} {
				c, content := x.reading("ws/"+n, len(inside))
				x.want(c, "read "+n, "ok", "ok", outside)
				x.content(content, inside, inside, "")
			}
			x.want(x.stat(x.in("ws/dl/deep"), followLinks), "look through a directory", "ok", "ok", outside)
			x.reads("ws/home", outside) // leaves the mount on its way
			x.writes("ws/ll", 0, "ok", "EROFS", outside)
			x.holds("ws/inside", "overwritten"+inside[len("overwritten"):], inside, inside)
			x.writes("ws/dl/made", oCreate, "ok", "EROFS", outside)
			x.holds("ws/d/made", "overwritten", "-", "-")
		}},
		{id: "F13", title: "symbolic link whose directory is moved so that it leads outside", files: func(x *onMount) {
			x.must(os.MkdirAll(x.host("ws/a/b"), 0o700), x.link("../../out/secret", "ws/a/b/l"))
			x.may("ws")
			x.want(x.rename(x.in("ws/a/b"), x.in("ws/b")), "move the directory", "ok", "EROFS", outside)
			x.want(x.stat(x.in("ws/b/l"), 0), "see the link", "ok", "ENOENT", outside)
			x.reads("ws/b/l", outside, "ENOENT", outside)
			x.writes("ws/b/l", oTruncate, outside, "EROFS ENOENT", outside)
			x.reads("ws/a/b/l", "ENOENT", "ENOENT", outside)
		}},
		{id: "F14", title: "a directory that is exchanged for a symbolic link meanwhile", files: func(x *onMount) {
			x.must(os.Mkdir(x.host("ws/x"), 0o700), x.link("../out", "ws/l"))
			x.changes = append(x.changes, "ws")
			const tries = 2500
			worked := x.room(4)
			f := x.open(x.in("ws/x/secret"), 0, mayRead, 0)
			x.add("tally", worked.at)
			x.read(f.fd, 48)
			made := x.open(x.in("ws/x/made"), oCreate, mayRead|mayWrite, 0)
			x.put(made.fd, "overwritten")
			x.add("fd_close", f.fd)
			x.add("fd_close", made.fd)
			x.add("store", uint32(f.fd), minus)
			x.add("store", uint32(made.fd), minus)
			x.always(f.call, tries-1)
			x.want(f.call, "open what is only outside", "ENOENT EPERM ENOTDIR EAGAIN ELOOP", "ENOENT EPERM ENOTDIR EAGAIN ELOOP", outside)
			x.log("ended") // so that what was made before can be committed
			stop := sync.OnceValue(exchanging(x.trial))
			x.guest.Said = func(tool.Progress) { stop() }
			x.t.Cleanup(func() { stop() })
			x.checks = append(x.checks, func(r report) error {
				exchanges := stop()
				switch n := r.u32(worked.at); {
				case n > 0:
					return fmt.Errorf("it worked %d times", n)
				case r.times(f.call) != tries || exchanges < 100:
					return notTried("%d attempts, %d exchanges", r.times(f.call), exchanges)
				}
				return nil
			})
			x.holds("out/made", "-")
		}},
		{id: "F15", title: "hard links", files: func(x *onMount) {
			for i, p := range [][2]string{
				{"out/secret", "ws/l"}, {"ws/../out/secret", "ws/l"}, {"ws/inside", "out/l"}, {"ws/inside", "ws/../out/l"},
				{"ws/inside", "else/l"}, {"else/inside", "ws/l"}, {"ws/inside", "ws/l"}, {"ws/d", "ws/l"},
			} {
				x.want(x.hardLink(x.in(p[0]), x.in(p[1])), fmt.Sprintf("%d: link %s as %s", i, p[0], p[1]), "EPERM", "EPERM EROFS", "EPERM")
			}
			x.want(x.hardLink(x.in("else/inside"), x.in("else/l")), "link in one's own directory", "EPERM")
			for _, n := range []string{"ws/l", "out/l", "else/l"} {
				x.holds(n, "-")
			}
		}},
		{id: "F16", title: "writing through a second name of a file", files: func(x *onMount) {
			x.must(os.Link(x.host("out/secret"), x.host("ws/l")))
			x.want(x.stat(x.in("ws/l"), 0), "see the file", "ok", "ok", outside)
			x.writes("ws/l", 0, "EACCES", "EROFS", outside)
			x.writes("ws/l", oCreate|oTruncate, "EACCES", "EROFS", outside)
			x.want(x.open(x.in("ws/l"), oTruncate, mayRead, 0).call, "truncate", "EACCES", "EROFS", outside)
			x.want(x.open(x.in("ws/l"), 0, mayWrite, fdAppend).call, "append", "EACCES", "EROFS", outside)
			x.want(x.utimes(x.in("ws/l")), "set its times", "EACCES", "EROFS", outside)
			x.holds("out/secret", x.canary)
		}, open: "the refusal is an answer to the guest and no event of its own in the record"},
		{id: "F17", title: "reading through a second name of a file: allowed, because nothing tells it from any other", files: func(x *onMount) {
			const shared = "shared with the guest"
			x.must(x.write("out/shared", shared), os.Link(x.host("out/shared"), x.host("ws/l")))
			c, content := x.reading("ws/l", len(shared))
			x.want(c, "read it", "ok", "ok", outside)
			x.content(content, shared, shared, "")
			x.reads("out/shared", outside)
		}},
		{id: "F18", title: "times of a file outside", files: func(x *onMount) {
			through(x, "../out/secret", func() {
				x.must(x.link("../out", "ws/o"))
				for _, n := range []string{"ws/l", "ws/o", "ws/o/secret"} {
					x.want(x.utimes(x.in(n)), "set the times of "+n, "EPERM", "EPERM EROFS", outside)
				}
				x.want(x.utimes(x.in("ws/../out/secret")), "by ..", outside)
				x.want(x.utimes(x.at("/")), "of the root", "EROFS EPERM")
			})
		}},
		{id: "F19", title: "names of the host in symbolic links", files: func(x *onMount) {
			x.must(x.link(x.host("out/secret"), "ws/l"), x.link("../../out", "ws/d/l"), x.link(x.host("ws/inside"), "ws/a"), x.link("inside", "ws/own"))
			for _, n := range []string{"ws/l", "ws/d/l", "ws/a"} {
				read, content := x.readlink(x.in(n))
				x.want(read, "read the link "+n, outside)
				x.content(content, "")
			}
			read, content := x.readlink(x.in("ws/own"))
			x.want(read, "read a link inside", "ok", "ok", outside)
			x.content(content, "inside", "inside", "")
		}},
		{id: "F20", title: "the root directory is closed, or another one put in its place", files: func(x *onMount) {
			d := x.openDir(x.in("ws/d"))
			x.want(d.call, "open ws/d", "ok", "ok", outside)
			own := x.openDir(x.in("else"))
			x.want(own.call, "open else", "ok")
			x.want(x.add("fd_renumber", own.fd, root), "put else in the place of the root", "ok ENOTSUP EBADF EPERM")
			for _, n := range []string{"../../out/secret", "../out/secret", x.trial.guest("out/secret"), "../" + x.trial.guest("out/secret")} {
				x.readsAt(place{root, x.text(n)}, "open "+n+" below the new root", "ENOTCAPABLE ENOENT EPERM")
			}
			x.add("fd_close", root)
			x.readsAt(place{root, x.text(x.trial.guest("out/secret"))}, "open a name where there is no root", "EBADF")
			// The number is given out again, for what is opened and no more.
			again := x.open(place{d.fd, x.text("deep")}, 0, mayRead, 0)
			x.want(again.call, "open a file below ws/d", "ok", "ok", "EBADF")
			x.readsAt(place{root, x.text(x.trial.guest("out/secret"))}, "open a name below a file", "EBADF ENOTDIR ENOTCAPABLE", "EBADF ENOTDIR ENOTCAPABLE", "EBADF")
		}},
		{id: "F21", title: "an open directory that the host moves outside", files: func(x *onMount) {
			x.changes = append(x.changes, "ws", "out/dir")
			d := x.openDir(x.in("ws/d"))
			x.want(d.call, "open ws/d", "ok", "ok", outside)
			x.meanwhile(func() error {
				return errors.Join(os.Rename(x.host("ws/d"), x.host("out/dir/moved")), x.write("out/dir/secret", x.canary))
			})
			for _, n := range []string{"../secret", "../../secret", "../dir/secret"} {
				x.readsAt(place{d.fd, x.text(n)}, "open "+n+" from the moved directory", outside, outside, "EBADF")
			}
			f := x.open(place{d.fd, x.text("made")}, oCreate, mayRead|mayWrite, 0)
			x.want(f.call, "create a file in the moved directory", "ENOENT EAGAIN", "EROFS ENOENT", "EBADF")
			x.want(x.mkdir(place{d.fd, x.text("made")}), "make a directory there", "ENOENT EAGAIN", "EROFS ENOENT", "EBADF")
			x.want(x.unlink(place{d.fd, x.text("deep")}), "remove a file there", "ENOENT EAGAIN", "EROFS ENOENT", "EBADF")
			x.holds("out/dir/moved/made", "-")
			x.holds("out/dir/made", "-")
			x.holds("out/dir/moved/deep", "deeper")
		}},
	}
}
