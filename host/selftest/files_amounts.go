package selftest

import (
	"fmt"
	"os"
	"strings"

	"github.com/stockade-dev/stockade/host/selftest/machine"
)

// amountAttacks use too much of a resource.
func amountAttacks() []fileAttack {
	return []fileAttack{
		{name: "descriptor-flood", kinds: reactors, description: "Open files until the host has no descriptors left.", refusedBy: "256 open files", build: func(x *fileTrial) {
			f := x.open(x.scratchPlace("ws/inside"), 0, rightsRead, 0)
			x.repeatWhileZero(f.call, 2000)
			x.expect(f.call, "open one more", "EMFILE", "EMFILE", outside)
			x.limitTimes(f.call, 0, 257, "files are open")
			x.whileGuestWaits(func() error { // other guests still have descriptors
				other := &script{}
				other.control(x.trial)
				_, _, err := x.runChecked(x.workspaceGuest(true), other)
				return err
			})
		}},
		{name: "rewrite-flood", description: "Write a gibibyte to the same place of a file.", refusedBy: "the bytes of a call", build: func(x *fileTrial) {
			x.allowChanges("ws")
			f := x.open(x.scratchPlace("ws/full"), oCreate, rightsRead|rightsWrite, 0)
			x.expect(f.call, "create a file", "ok", "EROFS", outside)
			list := x.words(machine.BufferBase, machine.BufferSize)
			const most = 1 << 30 / machine.BufferSize
			write := x.add("fd_pwrite", f.fd, list.at, 1, int64(0), x.words(0).at)
			x.repeatWhileZero(write, most+10)
			x.expect(write, "write more than a gibibyte", "ENOSPC", "EBADF", "EBADF")
			other := x.open(x.scratchPlace("ws/other"), oCreate, rightsRead|rightsWrite, 0)
			x.expect(x.writeText(other.fd, "x"), "write a byte to another file", "ENOSPC", "EBADF", "EBADF")
			x.limitTimes(write, most, most+1, "writes")
		}},
		{name: "huge-file", description: "Make a file of a tebibyte by its size, and by writing at its end.", refusedBy: "the size of a file", build: func(x *fileTrial) {
			x.allowChanges("ws")
			f := x.open(x.scratchPlace("ws/huge"), oCreate, rightsRead|rightsWrite, 0)
			x.expect(f.call, "create ws/huge", "ok", "EROFS", outside)
			one := x.text("x")
			list := x.words(one.at, one.n)
			for _, at := range []int64{1 << 30, 1 << 40, 1 << 60, 1 << 62, 1<<63 - 1} {
				x.expect(x.add("fd_filestat_set_size", f.fd, at+1&(1<<63-1)), fmt.Sprint("set the size to ", at), "EFBIG EINVAL", "EBADF", "EBADF")
				x.expect(x.add("fd_pwrite", f.fd, list.at, 1, at, x.words(0).at), fmt.Sprint("write at ", at), "EFBIG EINVAL", "EBADF", "EBADF")
				x.expect(x.add("fd_allocate", f.fd, at, int64(1)), fmt.Sprint("allocate at ", at), "EFBIG EINVAL ENOTSUP", "EBADF", "EBADF")
			}
			x.expect(x.add("fd_filestat_set_size", f.fd, int64(-1)), "set a negative size", "EFBIG EINVAL", "EBADF", "EBADF")
			x.holds("ws/huge", "", "-", "-")
		}},
		{name: "deep-directories", description: "Nest directories deeper than any program can name them.", refusedBy: "the length of a path", build: func(x *fileTrial) {
			x.allowChanges("ws")
			const tries, step = 10_000, "/directory"
			base := x.guestPath("ws")
			name := x.text(base + strings.Repeat(step, tries))
			length := x.words(uint32(len(base)))
			longer := x.add("add", length.at, len(step))
			mkdir := x.add("path_create_directory", rootFD, name.at, cell(length.at))
			x.repeatWhileZero(longer, tries-1)
			x.expect(mkdir, "nest one more directory", "ENAMETOOLONG", "EROFS", outside)
			x.limitTimes(mkdir, 0, 1+4096/len(step), "directories were nested")
		}},
	}
}

// diskQuota lets files grow without writing: if they are sparse, no disk space is used
// even if nothing stops the guest.
func diskQuota(t *trial) (string, error) {
	if err := t.noteState("ws"); err != nil {
		return "", newUntried("%v", err)
	}
	const each = 600 << 20
	s := &script{}
	s.control(t)
	for i, name := range []string{"ws/a", "ws/b"} {
		f := s.open(s.place(t.guestPath(name)), oCreate, rightsRead|rightsWrite, 0)
		f.mustSucceed("create " + name)
		grow := s.add("fd_filestat_set_size", f.fd, each)
		if i == 0 {
			grow.mustSucceed("let one file grow to 600 MiB")
		} else {
			grow.mustBeRefused("let two files grow to 600 MiB")
		}
	}
	by, err := t.runRefused(t.workspaceGuest(true), s, "files: the bytes of a call")
	var sum int64
	for _, name := range []string{"ws/a", "ws/b"} {
		if fi, statErr := os.Stat(t.hostPath(name)); statErr == nil {
			sum += fi.Size()
		}
	}
	switch {
	case err != nil:
	case sum > 1<<30:
		err = fmt.Errorf("the files have %d MiB", sum>>20)
	case sum < each:
		err = newUntried("the first file did not grow on the host")
	}
	t.detail = fmt.Sprintf("the files have %d MiB", sum>>20)
	return by, err
}
