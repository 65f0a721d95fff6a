package selftest

import (
	"errors"
	"os"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"

	"github.com/stockade-dev/stockade/host/selftest/machine"
)

// mountAttacks are on mounts inside of each other, and in each other's place.
func mountAttacks() []fileAttack {
	return []fileAttack{
		// What is mounted lies inside of the other: write in read-only, read-only
		// in write, and nothing around it.
		{name: "nested-read-only", tries: "Change a read-only mount that lies inside one with write.", by: "the inner mount decides", on: readOnly, build: func(x *onMount) {
			x.changes = []string{"ws"}
			inner := policy.Mount{Host: x.host("ws/d"), Write: x.kind != readOnly}
			x.grant.Mounts = append(x.grant.Mounts[:1], inner)
			if x.kind != absent {
				x.grant.Mounts = append(x.grant.Mounts, policy.Mount{Host: x.host("ws"), Write: x.kind == readOnly})
			}
			for _, n := range []string{"ws/d/made", "ws/../ws/d/made2"} {
				x.writes(n, oCreate, "ok", "EROFS", "ok")
			}
			for _, n := range []string{"ws/made", "ws/d/../made2"} {
				x.writes(n, oCreate, "EROFS", "ok", outside)
			}
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
		{name: "mount-replaced", kinds: reactors, tries: "Use a mount in whose place another directory was put meanwhile.", by: "a mount stays what it was", build: func(x *onMount) {
			x.changes = []string{"ws", "out/dir"}
			x.meanwhile(func() error {
				above, err := os.Stat(x.base)
				for _, step := range []func() error{
					func() error { return os.Rename(x.host("ws"), x.host("out/dir/gone")) },
					func() error { return os.Mkdir(x.host("ws"), 0o700) },
					func() error { return errors.Join(x.write("ws/inside", x.canary), x.write("ws/new", x.canary)) },
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
			x.reads("ws/new", "ENOENT", "ENOENT", outside)
			x.writes("ws/made", oCreate, "ok", "EROFS", outside)
			x.holds("ws/made", "-")
			x.holds("out/dir/gone/made", "overwritten", "-", "-")
		}},
	}
}

// nothingMounted is an attack of a tool that asked for no files.
func nothingMounted(try func(*trial, *script)) func(*trial) (string, error) {
	return func(t *trial) (string, error) {
		s := callsWASI()
		try(t, s)
		return t.refused(Guest{}, s, "files: nothing is mounted")
	}
}

// otherMount runs two guests of one module with different mounts. The first
// waits in the host until the second has tried.
func otherMount(t *trial) (string, error) { return otherMountOf(t, nil) }

// otherMountOf is otherMount with this machine for the second guest.
func otherMountOf(t *trial, own *machine.Options) (string, error) {
	first, second := &script{}, callsWASI()
	first.control(t)
	first.log("running")
	first.open(first.at(t.guest("ws/inside")), 0, mayRead, 0).must("go on afterwards")
	first.steal(first.at(t.guest("ws2/secret")), "open the other's file")
	first.overwrite(first.at(t.guest("ws2/made")), oCreate, "create a file in the other's mount")
	second.open(second.at(t.guest("ws2/secret")), 0, mayRead, 0).must("open a file in its own mount")
	for _, n := range []string{"ws/inside", "ws2/../ws/inside", "else/inside"} {
		second.steal(second.at(t.guest(n)), "open the other's "+n)
		second.overwrite(second.at(t.guest(n)), oCreate, "write to the other's "+n)
	}
	// The descriptor that the first has open.
	read, _ := second.read(root+1+1, 48)
	read.refused("read from the other's descriptor", "EBADF")

	var by string
	r, err := t.reportWhile(t.mounted(true), first, func() (err error) {
		other := Guest{own: own, Files: tool.FilesWrite, Mounts: []policy.Mount{{Host: t.host("ws2"), Write: true}}}
		by, err = t.refused(other, second, "files: every call sees its own mounts")
		return err
	})
	if r != nil {
		_, firstErr := r.check(first)
		err = errors.Join(firstErr, err)
	}
	return by, err
}

// control has a guest that has ws use its file.
func (s *script) control(t *trial) {
	f := s.open(s.at(t.guest("ws/inside")), 0, mayRead, 0)
	f.must("the guest opens its own file")
	into := s.words(machine.BufferBase, machine.BufferSize)
	s.add("fd_read", f.fd, into.at, 1, s.words(0).at).must("the guest reads its own file")
	s.add("fd_close", f.fd)
}
