package selftest

import (
	"errors"
	"os"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"

	"github.com/stockade-dev/stockade/host/selftest/machine"
)

// mountAttacks use mounts inside of each other, or replaced by others.
func mountAttacks() []fileAttack {
	return []fileAttack{
		// One mount is inside the other: write in read-only, read-only in write, and no
		// mount around the inner one.
		{name: "nested-read-only", description: "Change a read-only mount that lies inside one with write.", refusedBy: "the inner mount decides", mount: readOnly, build: func(x *fileTrial) {
			x.allowedChanges = []string{"ws"}
			inner := policy.Mount{Host: x.hostPath("ws/d"), Write: x.kind != readOnly}
			x.grant.Mounts = append(x.grant.Mounts[:1], inner)
			if x.kind != absent {
				x.grant.Mounts = append(x.grant.Mounts, policy.Mount{Host: x.hostPath("ws"), Write: x.kind == readOnly})
			}
			for _, n := range []string{"ws/d/made", "ws/../ws/d/made2"} {
				x.tryWrite(n, oCreate, "ok", "EROFS", "ok")
			}
			for _, n := range []string{"ws/made", "ws/d/../made2"} {
				x.tryWrite(n, oCreate, "EROFS", "ok", outside)
			}
			x.tryWrite("ws/inside", 0, "EROFS", "ok", outside)
			x.tryRead("ws/d/deep", "ok")
			d := x.openDir(x.scratchPlace("ws/d"))
			x.expect(d.call, "open the inner mount", "ok")
			x.tryReadAt(place{d.fd, x.text("../inside")}, "climb out of it", outside)
			x.expect(x.rename(x.scratchPlace("ws/d"), x.scratchPlace("ws/moved")), "move the inner mount", "EPERM EROFS")
			x.expect(x.rename(x.scratchPlace("ws/d/deep"), x.scratchPlace("ws/deep")), "move a file between them", "EXDEV EROFS", "EXDEV EROFS", "EPERM EROFS EXDEV")
			x.expect(x.rename(x.scratchPlace("ws/inside"), x.scratchPlace("ws/d/inside")), "and back", "EXDEV EROFS", "EXDEV EROFS", outside)
			x.expect(x.rmdir(x.scratchPlace("ws/d")), "remove the inner mount", "EPERM EROFS")
			x.holds("ws/made", "-", "overwritten", "-")
			x.holds("ws/d/made", "overwritten", "-", "overwritten")
			x.holds("ws/d/deep", "deeper")
		}},
		{name: "mount-replaced", kinds: reactors, description: "Use a mount in whose place another directory was put meanwhile.", refusedBy: "a mount stays what it was", build: func(x *fileTrial) {
			x.allowedChanges = []string{"ws", "out/dir"}
			x.whileGuestWaits(func() error {
				above, err := os.Stat(x.base)
				for _, step := range []func() error{
					func() error { return os.Rename(x.hostPath("ws"), x.hostPath("out/dir/gone")) },
					func() error { return os.Mkdir(x.hostPath("ws"), 0o700) },
					func() error { return errors.Join(x.write("ws/inside", x.canary), x.write("ws/new", x.canary)) },
					func() error { return os.Chtimes(x.base, time.Time{}, above.ModTime()) }, // compared at the end
				} {
					if err == nil {
						err = step()
					}
				}
				return err
			})
			c, content := x.readInto("ws/inside", len(insideText))
			x.expect(c, "read the file that was there", "ok", "ok", outside)
			x.expectContent(content, insideText, insideText, "")
			x.tryRead("ws/new", "ENOENT", "ENOENT", outside)
			x.tryWrite("ws/made", oCreate, "ok", "EROFS", outside)
			x.holds("ws/made", "-")
			x.holds("out/dir/gone/made", "overwritten", "-", "-")
		}},
	}
}

// unmountedAttack is an attack of a tool that asked for no files.
func unmountedAttack(try func(*trial, *script)) func(*trial) (string, error) {
	return func(t *trial) (string, error) {
		s := newHarmlessScript()
		try(t, s)
		return t.runRefused(Guest{}, s, "files: nothing is mounted")
	}
}

// otherMount runs two guests of one module with different mounts. The first waits in the
// host until the second has tried.
func otherMount(t *trial) (string, error) { return otherMountOf(t, nil) }

// otherMountOf is otherMount with another machine for the second guest.
func otherMountOf(t *trial, own *machine.Options) (string, error) {
	first, second := &script{}, newHarmlessScript()
	first.control(t)
	first.log("running")
	first.open(first.place(t.guestPath("ws/inside")), 0, rightsRead, 0).mustSucceed("go on afterwards")
	first.steal(first.place(t.guestPath("ws2/secret")), "open the other's file")
	first.overwrite(first.place(t.guestPath("ws2/made")), oCreate, "create a file in the other's mount")
	second.open(second.place(t.guestPath("ws2/secret")), 0, rightsRead, 0).mustSucceed("open a file in its own mount")
	for _, n := range []string{"ws/inside", "ws2/../ws/inside", "else/inside"} {
		second.steal(second.place(t.guestPath(n)), "open the other's "+n)
		second.overwrite(second.place(t.guestPath(n)), oCreate, "write to the other's "+n)
	}
	// The descriptor that the first guest has open.
	read, _ := second.read(rootFD+1+1, 48)
	read.mustBeRefused("read from the other's descriptor", "EBADF")

	var by string
	r, err := t.reportWhile(t.workspaceGuest(true), first, func() (err error) {
		other := Guest{machineOptions: own, Files: tool.FilesWrite, Mounts: []policy.Mount{{Host: t.hostPath("ws2"), Write: true}}}
		by, err = t.runRefused(other, second, "files: every call sees its own mounts")
		return err
	})
	if r != nil {
		_, firstErr := r.check(first)
		err = errors.Join(firstErr, err)
	}
	return by, err
}

// control makes a guest with ws read its file.
func (s *script) control(t *trial) {
	f := s.open(s.place(t.guestPath("ws/inside")), 0, rightsRead, 0)
	f.mustSucceed("the guest opens its own file")
	into := s.words(machine.BufferBase, machine.BufferSize)
	s.add("fd_read", f.fd, into.at, 1, s.words(0).at).mustSucceed("the guest reads its own file")
	s.add("fd_close", f.fd)
}
