package selftest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/stockade-dev/stockade/host/tool"
)

// linkAttacks use links that the host or the guest makes.
func linkAttacks() []fileAttack {
	const leads, noLinks = "a symbolic link that leads outside", "a guest makes no links"
	const changed = "EPERM EROFS"
	behind := func(x *fileTrial, target string) {
		x.plant(x.link(target, "ws/l"))
		x.expectLink("ws/l")
	}
	return []fileAttack{
		{name: "symlink-absolute", description: "Read through an absolute symbolic link in the workspace.", refusedBy: leads, build: func(x *fileTrial) {
			behind(x, x.hostPath("out/secret"))
			x.tryRead("ws/l", outside)
			x.expect(x.stat(x.scratchPlace("ws/l"), followLinks), "stat behind ws/l", outside)
		}},
		{name: "symlink-relative", description: "Read through a relative symbolic link in the workspace.", refusedBy: leads, build: func(x *fileTrial) {
			behind(x, "../out/secret")
			x.tryRead("ws/l", outside)
			x.expect(x.stat(x.scratchPlace("ws/l"), followLinks), "stat behind ws/l", outside)
		}},
		{name: "symlink-directory", description: "Read and list through a symbolic link to a directory outside.", refusedBy: leads, build: func(x *fileTrial) {
			behind(x, "../out")
			x.plant(x.link("..", "ws/up"))
			x.tryRead("ws/l/secret", outside)
			x.tryRead("ws/up/out/secret", outside)
			d := x.open(x.scratchPlace("ws/l"), oDirectory, rightsList, 0)
			x.expect(d.call, "open ws/l as a directory", outside)
			x.add("fd_readdir", d.fd, x.reserve(512).at, 512, 0, x.reserve(4).at)
		}},
		{name: "symlink-directory-write", description: "Make, change, move and remove things behind a symbolic link to a directory outside.", refusedBy: leads, build: func(x *fileTrial) {
			behind(x, "../out")
			x.plant(x.link("..", "ws/up"))
			for _, l := range []string{"ws/l", "ws/up/out"} {
				x.tryWrite(l+"/made", oCreate, outside, changed, outside)
				x.expect(x.mkdir(x.scratchPlace(l+"/made")), "mkdir "+l, outside, changed, outside)
				x.expect(x.rename(x.scratchPlace(l+"/secret"), x.scratchPlace("ws/moved")), "move in "+l, outside, changed, outside)
				x.expect(x.rename(x.scratchPlace("ws/inside"), x.scratchPlace(l+"/moved")), "move out "+l, outside, changed, outside)
				x.expect(x.unlink(x.scratchPlace(l+"/secret")), "unlink "+l, outside, changed, outside)
				x.expect(x.rmdir(x.scratchPlace(l+"/dir")), "rmdir "+l, outside, changed, outside)
			}
		}},
		{name: "symlink-write", description: "Write to a file outside through a symbolic link.", refusedBy: leads, build: func(x *fileTrial) {
			behind(x, "../out/secret")
			x.plant(x.link(x.hostPath("out/secret"), "ws/absolute"))
			for _, l := range []string{"ws/l", "ws/absolute"} {
				x.tryChanges(l, outside, changed, outside)
			}
		}},
		{name: "symlink-truncate", description: "Empty a file outside through a symbolic link, with the right to read.", refusedBy: leads, build: func(x *fileTrial) {
			behind(x, "../out/secret")
			x.tryOpen("ws/l", oTruncate, rightsRead, 0, "truncate", outside, changed, outside)
		}},
		{name: "symlink-times", description: "Change the times of a file outside through a symbolic link.", refusedBy: leads, build: func(x *fileTrial) {
			behind(x, "../out/secret")
			x.plant(x.link("../out", "ws/o"))
			for _, n := range []string{"ws/l", "ws/o", "ws/o/secret"} {
				x.expect(x.utimes(x.scratchPlace(n)), "set the times of "+n, outside, changed, outside)
			}
			x.expect(x.utimes(x.scratchPlace("ws/../out/secret")), "by ..", outside)
			x.expect(x.utimes(x.place("/")), "of the root", changed)
		}},
		{name: "symlink-dangling", description: "Make a file outside by creating what a symbolic link points to.", refusedBy: leads, build: func(x *fileTrial) {
			behind(x, "../out/made")
			x.tryWrite("ws/l", oCreate, outside, changed, outside)
			x.tryWrite("ws/l", oCreate|oTruncate, outside, changed, outside)
			x.tryOpen("ws/l", oCreate|oExclusive, rightsWrite, 0, "create where a link is", "EEXIST EPERM", "EEXIST EPERM EROFS", outside)
			x.holds("out/made", "-")
		}},
		{name: "symlink-chain", description: "Read through a chain of symbolic links whose last one leads outside.", refusedBy: "a chain of symbolic links that leads outside", build: func(x *fileTrial) {
			x.plant(x.link("inside", "ws/i0"), x.link("../out/secret", "ws/l0"))
			for i := range 50 {
				for _, chain := range []string{"i", "l"} {
					x.plant(x.link(fmt.Sprint(chain, i), fmt.Sprint("ws/", chain, i+1)))
				}
			}
			x.grant.Limits.Fuel = 5_000_000 // the price of a look-up grows with its length
			x.tryRead("ws/l1", outside)
			x.tryRead("ws/l3", outside)
			x.tryRead("ws/l50", "ELOOP EPERM", "ELOOP EPERM", outside)
			x.tryRead("ws/i50", "ELOOP", "ELOOP", outside)
			x.tryWrite("ws/i50", oCreate, "ELOOP", "ELOOP EROFS", outside)
			x.expectLink("ws/l50")
		}},
		{name: "symlink-loop", description: "Hang the host on symbolic links that lead to each other.", refusedBy: "symbolic links that do not end", build: func(x *fileTrial) {
			x.plant(x.link("b", "ws/a"), x.link("a", "ws/b"), x.link("self/self", "ws/self"))
			for _, n := range []string{"ws/a", "ws/b/x", "ws/self/x"} {
				x.tryRead(n, "ELOOP", "ELOOP", outside)
			}
		}},
		{name: "symlink-proc", description: "Read the environment of this process through a symbolic link to /proc/self.", refusedBy: leads, build: func(x *fileTrial) {
			behind(x, "/proc/self")
			for _, n := range []string{"environ", "maps", "mem", "cwd/go.mod", "exe", "root/" + x.guestPath("out/secret")} {
				x.tryRead("ws/l/"+n, outside)
			}
			x.tryOpen("ws/l/fd/0", 0, rightsRead, 0, "open", outside) // reading could wait for ever
			x.tryOpen("ws/l/fd/1", 0, rightsRead, 0, "open", outside)
			x.tryOpen("ws/l/mem", 0, rightsRead|rightsWrite, 0, "open for writing", outside, changed, outside)
			x.tryOpen("ws/l/fd", oDirectory, rightsList, 0, "list the descriptors", outside)
		}},
		{name: "symlink-device", description: "Read without end from a device through a symbolic link.", refusedBy: leads, build: func(x *fileTrial) {
			behind(x, "/dev/zero")
			x.tryRead("ws/l", outside)
		}},
		{name: "symlink-target", description: "Learn names of the host from where symbolic links point.", refusedBy: "a target outside is not told", build: func(x *fileTrial) {
			x.plant(x.link(x.hostPath("out/secret"), "ws/l"), x.link("../../out", "ws/d/l"), x.link(x.hostPath("ws/inside"), "ws/a"), x.link("inside", "ws/own"))
			for _, n := range []string{"ws/l", "ws/d/l", "ws/a"} {
				x.expectLink(n)
				read, content := x.readlink(x.scratchPlace(n))
				x.expect(read, "read the link "+n, outside)
				x.expectContent(content, "")
			}
			read, _ := x.readlink(x.scratchPlace("ws/own"))
			x.expect(read, "read a link inside", "ok", "ok", outside)
		}},
		{name: "symlink-made", description: "Make symbolic links that lead outside, and read through them.", refusedBy: noLinks, build: func(x *fileTrial) {
			for i, target := range []string{
				"../out/secret", "d/../../out/secret", "../../" + filepath.Base(x.base) + "/out/secret", "inside",
				x.hostPath("out/secret"), "/etc/passwd", "/proc/self/environ", x.hostPath("ws/inside"),
			} {
				n := fmt.Sprint("ws/l", i)
				x.expect(x.symlink(target, x.scratchPlace(n)), "link to "+target, outside, changed, outside)
				x.tryRead(n, "ENOENT", "ENOENT", outside)
				x.holds(n, "-")
			}
		}},
		{name: "symlink-moved", description: "Move a directory with a symbolic link in it so that the link leads outside.", refusedBy: leads, build: func(x *fileTrial) {
			x.plant(os.MkdirAll(x.hostPath("ws/a/b"), 0o700), x.link("../../out/secret", "ws/a/b/l"))
			x.allowChanges("ws")
			x.expect(x.rename(x.scratchPlace("ws/a/b"), x.scratchPlace("ws/b")), "move the directory", "ok", "EROFS", outside)
			x.expect(x.stat(x.scratchPlace("ws/b/l"), 0), "see the link", "ok", "ENOENT", outside)
			x.tryRead("ws/b/l", outside, "ENOENT", outside)
			x.tryWrite("ws/b/l", oTruncate, outside, "EROFS ENOENT", outside)
			x.tryRead("ws/a/b/l", "ENOENT", "ENOENT", outside)
		}},
		{name: "hard-link-made", description: "Make hard links to files outside, and of own files there.", refusedBy: noLinks, build: func(x *fileTrial) {
			for _, p := range [][2]string{
				{"out/secret", "ws/l"}, {"ws/../out/secret", "ws/l"}, {"ws/inside", "out/l"}, {"ws/inside", "ws/../out/l"},
				{"ws/inside", "else/l"}, {"else/inside", "ws/l"}, {"ws/inside", "ws/l"}, {"ws/d", "ws/l"},
			} {
				x.expect(x.hardLink(x.scratchPlace(p[0]), x.scratchPlace(p[1])), "link "+p[0]+" as "+p[1], outside, changed, outside)
			}
			x.expect(x.hardLink(x.scratchPlace("else/inside"), x.scratchPlace("else/l")), "link in one's own directory", outside)
			x.tryRead("ws/l", "ENOENT", "ENOENT", outside)
		}},
		{name: "hard-link-write", description: "Change a file outside that has a second name in the workspace.", refusedBy: "a file with several names", build: func(x *fileTrial) {
			x.plant(os.Link(x.hostPath("out/secret"), x.hostPath("ws/l")))
			x.expectLink("ws/l")
			x.tryChanges("ws/l", "EACCES", "EROFS", outside)
			x.expect(x.utimes(x.scratchPlace("ws/l")), "set the times of ws/l", "EACCES", "EROFS", outside)
			x.holds("out/secret", x.canary)
		}},
		{name: "preopen-replaced", description: "Put another directory in the place of the root and open names below it.", refusedBy: "a name that leads outside", build: func(x *fileTrial) {
			d := x.openDir(x.scratchPlace("ws/d"))
			x.expect(d.call, "open ws/d", "ok", "ok", outside)
			own := x.openDir(x.scratchPlace("else"))
			x.expect(own.call, "open else", "ok")
			x.expect(x.add("fd_renumber", own.fd, rootFD), "put else in the place of the root", "ok ENOTSUP EBADF EPERM")
			for _, n := range []string{"../../out/secret", "../out/secret", x.guestPath("out/secret"), "../" + x.guestPath("out/secret")} {
				x.tryReadAt(place{rootFD, x.text(n)}, "open "+n+" below the new root", "ENOTCAPABLE ENOENT EPERM EBADF")
			}
			x.add("fd_close", rootFD)
			x.tryReadAt(place{rootFD, x.text(x.guestPath("out/secret"))}, "open a name where there is no root", "EBADF")
			// The number is given out again, but only for the file that is opened.
			again := x.open(place{d.fd, x.text("deep")}, 0, rightsRead, 0)
			x.expect(again.call, "open a file below ws/d", "ok", "ok", "EBADF")
			x.tryReadAt(place{rootFD, x.text(x.guestPath("out/secret"))}, "open a name below a file", "EBADF ENOTDIR ENOTCAPABLE", "EBADF ENOTDIR ENOTCAPABLE", "EBADF")
		}},
		{name: "moved-directory", kinds: reactors, description: "Use an open directory that somebody has moved out of the workspace meanwhile.", refusedBy: "names are looked up in the mount", build: func(x *fileTrial) {
			x.allowedChanges = append(x.allowedChanges, "ws", "out/dir")
			d := x.openDir(x.scratchPlace("ws/d"))
			x.expect(d.call, "open ws/d", "ok", "ok", outside)
			own := x.open(place{d.fd, x.text("deep")}, 0, rightsRead, 0)
			x.expect(own.call, "open a file below it", "ok", "ok", "EBADF")
			x.whileGuestWaits(func() error {
				return errors.Join(os.Rename(x.hostPath("ws/d"), x.hostPath("out/dir/moved")), x.write("out/dir/secret", x.canary))
			})
			for _, n := range []string{"../secret", "../../secret", "../dir/secret"} {
				x.tryReadAt(place{d.fd, x.text(n)}, "open "+n+" from the moved directory", outside, outside, "EBADF")
			}
			const gone, ro = "ENOENT EAGAIN", "EROFS ENOENT"
			x.tryWriteAt(place{d.fd, x.text("../made")}, oCreate, "create ../made from the moved directory", outside, "EPERM EROFS", "EBADF")
			x.tryWriteAt(place{d.fd, x.text("made")}, oCreate, "create a file in the moved directory", gone, ro, "EBADF")
			x.expect(x.mkdir(place{d.fd, x.text("made")}), "make a directory there", gone, ro, "EBADF")
			x.expect(x.unlink(place{d.fd, x.text("deep")}), "remove a file there", gone, ro, "EBADF")
			x.holds("out/dir/moved/made", "-")
			x.holds("out/dir/made", "-")
			x.holds("out/dir/moved/deep", "deeper")
		}},
	}
}

// symlinkExchange lets the guest open a name while a directory on the way, which does not
// have the file, is exchanged for a symbolic link to a directory that has it.
func symlinkExchange(t *trial) (string, error) {
	_, err := t.carryOut(exchangeAttack(30_000, false), writable, false)
	return "files: names are looked up in the mount", err
}

// exchangeAttack makes that many attempts; with create, also to make a file there. A made
// file waits in a directory that is no longer exchanged.
func exchangeAttack(tries int, create bool) fileAttack {
	return fileAttack{name: fmt.Sprintf("exchange-%t", create), build: func(x *fileTrial) {
		x.plant(os.Mkdir(x.hostPath("ws/x"), 0o700), x.link("../out", "ws/l"))
		x.allowedChanges = append(x.allowedChanges, "ws")
		worked := x.reserve(4)
		f := x.open(x.scratchPlace("ws/x/secret"), 0, rightsRead, 0)
		x.add("tally", worked.at)
		x.read(f.fd, 48)
		x.add("fd_close", f.fd)
		x.add("store", uint32(f.fd), minusOne)
		if create {
			made := x.open(x.scratchPlace("ws/x/made"), oCreate, rightsRead|rightsWrite, 0)
			x.writeText(made.fd, "overwritten")
			x.add("fd_close", made.fd)
			x.add("store", uint32(made.fd), minusOne)
		}
		x.repeat(f.call, tries-1)
		const refused = "ENOENT EPERM ENOTDIR EAGAIN ELOOP"
		x.expect(f.call, "open what is only outside", refused, refused, outside)
		x.log("ended") // so that a file made before can be committed
		stop := sync.OnceValue(startExchanging(x.trial))
		x.cleanup = func() { stop() }
		x.grant.OnProgress = func(tool.Progress) { stop() }
		x.finally(func(r report) error {
			exchanges := stop()
			x.detail = fmt.Sprintf("%d attempts, %d exchanges", r.callCount(f.call), exchanges/4)
			switch n := r.u32(worked.at); {
			case n > 0:
				return fmt.Errorf("it worked %d times in %d attempts", n, tries)
			case r.callCount(f.call) != tries || exchanges < 100:
				return newUntried("%s", x.detail)
			}
			return nil
		})
		x.holds("out/made", "-")
	}}
}

// startExchanging exchanges the directory ws/x for the link ws/l again and again, until
// stop is called, which returns the number of renames.
func startExchanging(t *trial) (stop func() int) {
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
				if os.Rename(t.hostPath("ws/"+names[0]), t.hostPath("ws/"+names[1])) == nil {
					n++
				}
			}
		}
	}()
	return func() int { close(end); return <-ended }
}
