package selftest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/stockade-dev/stockade/host/tool"
)

// linkAttacks are on links, of the host and of the guest.
func linkAttacks() []fileAttack {
	const leads, noLinks = "a symbolic link that leads outside", "a guest makes no links"
	const changed = "EPERM EROFS"
	behind := func(x *onMount, target string) {
		x.plant(x.link(target, "ws/l"))
		x.seesLink("ws/l")
	}
	return []fileAttack{
		{name: "symlink-absolute", tries: "Read through an absolute symbolic link in the workspace.", by: leads, build: func(x *onMount) {
			behind(x, x.host("out/secret"))
			x.reads("ws/l", outside)
			x.want(x.stat(x.in("ws/l"), followLinks), "stat behind ws/l", outside)
		}},
		{name: "symlink-relative", tries: "Read through a relative symbolic link in the workspace.", by: leads, build: func(x *onMount) {
			behind(x, "../out/secret")
			x.reads("ws/l", outside)
			x.want(x.stat(x.in("ws/l"), followLinks), "stat behind ws/l", outside)
		}},
		{name: "symlink-directory", tries: "Read and list through a symbolic link to a directory outside.", by: leads, build: func(x *onMount) {
			behind(x, "../out")
			x.plant(x.link("..", "ws/up"))
			x.reads("ws/l/secret", outside)
			x.reads("ws/up/out/secret", outside)
			d := x.open(x.in("ws/l"), oDirectory, mayList, 0)
			x.want(d.call, "open ws/l as a directory", outside)
			x.add("fd_readdir", d.fd, x.room(512).at, 512, 0, x.room(4).at)
		}},
		{name: "symlink-directory-write", tries: "Make, change, move and remove things behind a symbolic link to a directory outside.", by: leads, build: func(x *onMount) {
			behind(x, "../out")
			x.plant(x.link("..", "ws/up"))
			for _, l := range []string{"ws/l", "ws/up/out"} {
				x.writes(l+"/made", oCreate, outside, changed, outside)
				x.want(x.mkdir(x.in(l+"/made")), "mkdir "+l, outside, changed, outside)
				x.want(x.rename(x.in(l+"/secret"), x.in("ws/moved")), "move in "+l, outside, changed, outside)
				x.want(x.rename(x.in("ws/inside"), x.in(l+"/moved")), "move out "+l, outside, changed, outside)
				x.want(x.unlink(x.in(l+"/secret")), "unlink "+l, outside, changed, outside)
				x.want(x.rmdir(x.in(l+"/dir")), "rmdir "+l, outside, changed, outside)
			}
		}},
		{name: "symlink-write", tries: "Write to a file outside through a symbolic link.", by: leads, build: func(x *onMount) {
			behind(x, "../out/secret")
			x.plant(x.link(x.host("out/secret"), "ws/absolute"))
			for _, l := range []string{"ws/l", "ws/absolute"} {
				x.changing(l, outside, changed, outside)
			}
		}},
		{name: "symlink-truncate", tries: "Empty a file outside through a symbolic link, with the right to read.", by: leads, build: func(x *onMount) {
			behind(x, "../out/secret")
			x.opens("ws/l", oTruncate, mayRead, 0, "truncate", outside, changed, outside)
		}},
		{name: "symlink-times", tries: "Change the times of a file outside through a symbolic link.", by: leads, build: func(x *onMount) {
			behind(x, "../out/secret")
			x.plant(x.link("../out", "ws/o"))
			for _, n := range []string{"ws/l", "ws/o", "ws/o/secret"} {
				x.want(x.utimes(x.in(n)), "set the times of "+n, outside, changed, outside)
			}
			x.want(x.utimes(x.in("ws/../out/secret")), "by ..", outside)
			x.want(x.utimes(x.at("/")), "of the root", changed)
		}},
		{name: "symlink-dangling", tries: "Make a file outside by creating what a symbolic link points to.", by: leads, build: func(x *onMount) {
			behind(x, "../out/made")
			x.writes("ws/l", oCreate, outside, changed, outside)
			x.writes("ws/l", oCreate|oTruncate, outside, changed, outside)
			x.opens("ws/l", oCreate|oExclusive, mayWrite, 0, "create where a link is", "EEXIST EPERM", "EEXIST EPERM EROFS", outside)
			x.holds("out/made", "-")
		}},
		{name: "symlink-chain", tries: "Read through a chain of symbolic links whose last one leads outside.", by: "a chain of symbolic links that leads outside", build: func(x *onMount) {
			x.plant(x.link("inside", "ws/i0"), x.link("../out/secret", "ws/l0"))
			for i := range 50 {
				for _, chain := range []string{"i", "l"} {
					x.plant(x.link(fmt.Sprint(chain, i), fmt.Sprint("ws/", chain, i+1)))
				}
			}
			x.grant.Limits.Fuel = 5_000_000 // what a look-up costs grows with its length
			x.reads("ws/l1", outside)
			x.reads("ws/l3", outside)
			x.reads("ws/l50", "ELOOP EPERM", "ELOOP EPERM", outside)
			x.reads("ws/i50", "ELOOP", "ELOOP", outside)
			x.writes("ws/i50", oCreate, "ELOOP", "ELOOP EROFS", outside)
			x.seesLink("ws/l50")
		}},
		{name: "symlink-loop", tries: "Hang the host on symbolic links that lead to each other.", by: "symbolic links that do not end", build: func(x *onMount) {
			x.plant(x.link("b", "ws/a"), x.link("a", "ws/b"), x.link("self/self", "ws/self"))
			for _, n := range []string{"ws/a", "ws/b/x", "ws/self/x"} {
				x.reads(n, "ELOOP", "ELOOP", outside)
			}
		}},
		{name: "symlink-proc", tries: "Read the environment of this process through a symbolic link to /proc/self.", by: leads, build: func(x *onMount) {
			behind(x, "/proc/self")
			for _, n := range []string{"environ", "maps", "mem", "cwd/go.mod", "exe", "root/" + x.guest("out/secret")} {
				x.reads("ws/l/"+n, outside)
			}
			x.opens("ws/l/fd/0", 0, mayRead, 0, "open", outside) // to read could wait for ever
			x.opens("ws/l/fd/1", 0, mayRead, 0, "open", outside)
			x.opens("ws/l/mem", 0, mayRead|mayWrite, 0, "open for writing", outside, changed, outside)
			x.opens("ws/l/fd", oDirectory, mayList, 0, "list the descriptors", outside)
		}},
		{name: "symlink-device", tries: "Read without end from a device through a symbolic link.", by: leads, build: func(x *onMount) {
			behind(x, "/dev/zero")
			x.reads("ws/l", outside)
		}},
		{name: "symlink-target", tries: "Learn names of the host from where symbolic links point.", by: "a target outside is not told", build: func(x *onMount) {
			x.plant(x.link(x.host("out/secret"), "ws/l"), x.link("../../out", "ws/d/l"), x.link(x.host("ws/inside"), "ws/a"), x.link("inside", "ws/own"))
			for _, n := range []string{"ws/l", "ws/d/l", "ws/a"} {
				x.seesLink(n)
				read, content := x.readlink(x.in(n))
				x.want(read, "read the link "+n, outside)
				x.content(content, "")
			}
			read, _ := x.readlink(x.in("ws/own"))
			x.want(read, "read a link inside", "ok", "ok", outside)
		}},
		{name: "symlink-made", tries: "Make symbolic links that lead outside, and read through them.", by: noLinks, build: func(x *onMount) {
			for i, target := range []string{
				"../out/secret", "d/../../out/secret", "../../" + filepath.Base(x.base) + "/out/secret", "inside",
				x.host("out/secret"), "/etc/passwd", "/proc/self/environ", x.host("ws/inside"),
			} {
				n := fmt.Sprint("ws/l", i)
				x.want(x.symlink(target, x.in(n)), "link to "+target, outside, changed, outside)
				x.reads(n, "ENOENT", "ENOENT", outside)
				x.holds(n, "-")
			}
		}},
		{name: "symlink-moved", tries: "Move a directory with a symbolic link in it so that the link leads outside.", by: leads, build: func(x *onMount) {
			x.plant(os.MkdirAll(x.host("ws/a/b"), 0o700), x.link("../../out/secret", "ws/a/b/l"))
			x.may("ws")
			x.want(x.rename(x.in("ws/a/b"), x.in("ws/b")), "move the directory", "ok", "EROFS", outside)
			x.want(x.stat(x.in("ws/b/l"), 0), "see the link", "ok", "ENOENT", outside)
			x.reads("ws/b/l", outside, "ENOENT", outside)
			x.writes("ws/b/l", oTruncate, outside, "EROFS ENOENT", outside)
			x.reads("ws/a/b/l", "ENOENT", "ENOENT", outside)
		}},
		{name: "hard-link-made", tries: "Make hard links to files outside, and of own files there.", by: noLinks, build: func(x *onMount) {
			for _, p := range [][2]string{
				{"out/secret", "ws/l"}, {"ws/../out/secret", "ws/l"}, {"ws/inside", "out/l"}, {"ws/inside", "ws/../out/l"},
				{"ws/inside", "else/l"}, {"else/inside", "ws/l"}, {"ws/inside", "ws/l"}, {"ws/d", "ws/l"},
			} {
				x.want(x.hardLink(x.in(p[0]), x.in(p[1])), "link "+p[0]+" as "+p[1], outside, changed, outside)
			}
			x.want(x.hardLink(x.in("else/inside"), x.in("else/l")), "link in one's own directory", outside)
			x.reads("ws/l", "ENOENT", "ENOENT", outside)
		}},
		{name: "hard-link-write", tries: "Change a file outside that has a second name in the workspace.", by: "a file with several names", build: func(x *onMount) {
			x.plant(os.Link(x.host("out/secret"), x.host("ws/l")))
			x.seesLink("ws/l")
			x.changing("ws/l", "EACCES", "EROFS", outside)
			x.want(x.utimes(x.in("ws/l")), "set the times of ws/l", "EACCES", "EROFS", outside)
			x.holds("out/secret", x.canary)
		}},
		{name: "preopen-replaced", tries: "Put another directory in the place of the root and open names below it.", by: "a name that leads outside", build: func(x *onMount) {
			d := x.openDir(x.in("ws/d"))
			x.want(d.call, "open ws/d", "ok", "ok", outside)
			own := x.openDir(x.in("else"))
			x.want(own.call, "open else", "ok")
			x.want(x.add("fd_renumber", own.fd, root), "put else in the place of the root", "ok ENOTSUP EBADF EPERM")
			for _, n := range []string{"../../out/secret", "../out/secret", x.guest("out/secret"), "../" + x.guest("out/secret")} {
				x.readsAt(place{root, x.text(n)}, "open "+n+" below the new root", "ENOTCAPABLE ENOENT EPERM EBADF")
			}
			x.add("fd_close", root)
			x.readsAt(place{root, x.text(x.guest("out/secret"))}, "open a name where there is no root", "EBADF")
			// The number is given out again, for what is opened and no more.
			again := x.open(place{d.fd, x.text("deep")}, 0, mayRead, 0)
			x.want(again.call, "open a file below ws/d", "ok", "ok", "EBADF")
			x.readsAt(place{root, x.text(x.guest("out/secret"))}, "open a name below a file", "EBADF ENOTDIR ENOTCAPABLE", "EBADF ENOTDIR ENOTCAPABLE", "EBADF")
		}},
		{name: "moved-directory", kinds: reactors, tries: "Use an open directory that somebody has moved out of the workspace meanwhile.", by: "names are looked up in the mount", build: func(x *onMount) {
			x.changes = append(x.changes, "ws", "out/dir")
			d := x.openDir(x.in("ws/d"))
			x.want(d.call, "open ws/d", "ok", "ok", outside)
			own := x.open(place{d.fd, x.text("deep")}, 0, mayRead, 0)
			x.want(own.call, "open a file below it", "ok", "ok", "EBADF")
			x.meanwhile(func() error {
				return errors.Join(os.Rename(x.host("ws/d"), x.host("out/dir/moved")), x.write("out/dir/secret", x.canary))
			})
			for _, n := range []string{"../secret", "../../secret", "../dir/secret"} {
				x.readsAt(place{d.fd, x.text(n)}, "open "+n+" from the moved directory", outside, outside, "EBADF")
			}
			const gone, ro = "ENOENT EAGAIN", "EROFS ENOENT"
			x.writesAt(place{d.fd, x.text("../made")}, oCreate, "create ../made from the moved directory", outside, "EPERM EROFS", "EBADF")
			x.writesAt(place{d.fd, x.text("made")}, oCreate, "create a file in the moved directory", gone, ro, "EBADF")
			x.want(x.mkdir(place{d.fd, x.text("made")}), "make a directory there", gone, ro, "EBADF")
			x.want(x.unlink(place{d.fd, x.text("deep")}), "remove a file there", gone, ro, "EBADF")
			x.holds("out/dir/moved/made", "-")
			x.holds("out/dir/made", "-")
			x.holds("out/dir/moved/deep", "deeper")
		}},
	}
}

// exchanged lets the guest open a name while somebody exchanges a directory in
// it, where the file is not, for a symbolic link to where it is.
func exchanged(t *trial) (string, error) {
	_, err := t.carryOut(exchangeAttack(30_000, false), writable, false)
	return "files: names are looked up in the mount", err
}

// exchangeAttack is so many attempts, also to create a file there. What was
// created waits in a directory that is not exchanged any more.
func exchangeAttack(tries int, create bool) fileAttack {
	return fileAttack{name: fmt.Sprintf("exchange-%t", create), build: func(x *onMount) {
		x.plant(os.Mkdir(x.host("ws/x"), 0o700), x.link("../out", "ws/l"))
		x.changes = append(x.changes, "ws")
		worked := x.room(4)
		f := x.open(x.in("ws/x/secret"), 0, mayRead, 0)
		x.add("tally", worked.at)
		x.read(f.fd, 48)
		x.add("fd_close", f.fd)
		x.add("store", uint32(f.fd), minus)
		if create {
			made := x.open(x.in("ws/x/made"), oCreate, mayRead|mayWrite, 0)
			x.put(made.fd, "overwritten")
			x.add("fd_close", made.fd)
			x.add("store", uint32(made.fd), minus)
		}
		x.always(f.call, tries-1)
		const refused = "ENOENT EPERM ENOTDIR EAGAIN ELOOP"
		x.want(f.call, "open what is only outside", refused, refused, outside)
		x.log("ended") // so that what was made before can be committed
		stop := sync.OnceValue(exchanging(x.trial))
		x.end = func() { stop() }
		x.grant.Said = func(tool.Progress) { stop() }
		x.finally(func(r report) error {
			exchanges := stop()
			x.detail = fmt.Sprintf("%d attempts, %d exchanges", r.times(f.call), exchanges/4)
			switch n := r.u32(worked.at); {
			case n > 0:
				return fmt.Errorf("it worked %d times in %d attempts", n, tries)
			case r.times(f.call) != tries || exchanges < 100:
				return notTried("%s", x.detail)
			}
			return nil
		})
		x.holds("out/made", "-")
	}}
}

// exchanging exchanges the directory ws/x for the link ws/l again and again,
// until it is stopped, and then says how many names it has changed.
func exchanging(t *trial) (stop func() int) {
	end, ended := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		defer func() { ended <- n }()
		for {
			select {
			case <-end:
				return
			default:
			}
			for _, names := range [][2]string{{"x", "d2"}, {"l", "x"}, {"x", "l"}, {"d2", "x"}} {
				if os.Rename(t.host("ws/"+names[0]), t.host("ws/"+names[1])) == nil {
					n++
				}
			}
		}
	}()
	return func() int { close(end); return <-ended }
}
