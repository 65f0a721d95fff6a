package selftest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// nestedReadOnly: the mount with the longest name decides.
func nestedReadOnly(t *trial) (string, error) {
	g := t.mounted(true)
	g.Mounts = append(g.Mounts, policy.Mount{Host: t.host("ws/d")})
	s := &script{}
	content := s.control(t, grantWrite)
	s.overwrite(s.at(t.guest("ws/d/deep")), 0, "open ws/d/deep for writing")
	s.overwrite(s.at(t.guest("ws/d/made")), oCreate, "create ws/d/made")
	s.overwrite(s.at(t.guest("ws/../ws/d/made")), oCreate, "create ws/../ws/d/made")
	s.unlink(s.at(t.guest("ws/d/deep"))).refused("unlink ws/d/deep")
	s.rename(s.at(t.guest("ws/d")), s.at(t.guest("ws/moved"))).refused("move ws/d")
	r, err := t.report(g, s)
	if err != nil {
		return "", err
	}
	refusals, err := r.check(s)
	if err == nil && string(r.span(content)) != inside {
		err = notTried("the guest reads %q from its own file", r.span(content))
	}
	return fmt.Sprintf("files: the inner mount decides (%s)", errnos(refusals)), err
}

// otherMount runs two guests of one module with different mounts. The first
// waits in the host until the second has tried.
func otherMount(t *trial) (string, error) {
	first, second := &script{}, &script{}
	first.control(t, grantWrite)
	first.log("running")
	first.open(first.at(t.guest("ws/inside")), 0, mayRead, 0).must("go on afterwards")
	second.add("clock_time_get", 0, 1, second.room(8).at).must("the guest calls WASI")
	second.open(second.at(t.guest("ws2/secret")), 0, mayRead, 0).must("open a file in its own mount")
	second.steal(second.at(t.guest("ws/inside")), "open the other's file")
	second.overwrite(second.at(t.guest("ws/made")), oCreate, "create a file in the other's mount")
	second.steal(second.at(t.guest("ws2/../ws/inside")), "open the other's file by ..")
	// The descriptor that the first has open.
	read, _ := second.read(root+1+1, 48)
	read.refusedBadF("read from the other's descriptor")

	var (
		once     sync.Once
		refusals []errno
		err      = notTried("the first guest did not run")
	)
	g := t.mounted(true)
	g.Said = func(tool.Progress) {
		once.Do(func() {
			other := Guest{Files: tool.FilesWrite, Mounts: []policy.Mount{{Host: t.host("ws2"), Write: true}}}
			var r report
			if r, err = t.report(other, second); err == nil {
				refusals, err = r.check(second)
			}
		})
	}
	r, firstErr := t.report(g, first)
	if firstErr == nil {
		_, firstErr = r.check(first)
	}
	return fmt.Sprintf("files: every call sees its own mounts (%s)", errnos(refusals)), errors.Join(firstErr, err)
}

// movedDirectory moves ws/d out while the guest has it open, and back.
func movedDirectory(t *trial) (string, error) {
	if err := t.look("ws", "out/dir"); err != nil {
		return "", notTried("%v", err)
	}
	s := &script{}
	content := s.control(t, grantWrite)
	d := s.openDir(s.at(t.guest("ws/d")))
	d.must("open ws/d")
	s.open(place{d.fd, s.text("deep")}, 0, mayRead, 0).must("open a file below it")
	s.log("open")
	s.steal(place{d.fd, s.text("../../secret")}, "open ../../secret from the moved directory")
	s.steal(place{d.fd, s.text("../secret")}, "open ../secret from the moved directory")
	s.overwrite(place{d.fd, s.text("../made")}, oCreate, "create ../made from the moved directory")
	g := t.mounted(true)
	moved := errors.New("nobody moved the directory")
	g.Said = func(tool.Progress) {
		if moved != nil {
			moved = errors.Join(os.Rename(t.host("ws/d"), t.host("out/dir/moved")), t.write("out/dir/secret", t.canary))
		}
	}
	r, err := t.report(g, s)
	if err != nil {
		return "", err
	}
	if moved != nil {
		return "", notTried("%v", moved)
	}
	refusals, err := r.check(s)
	for dir, want := range map[string]string{"out/dir": "moved secret", "out/dir/moved": "deep"} {
		entries, _ := os.ReadDir(t.host(dir))
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if got := strings.Join(names, " "); got != want {
			err = errors.Join(err, fmt.Errorf("the host was changed: %s holds %s", dir, got))
		}
	}
	if err == nil && string(r.span(content)) != inside {
		err = notTried("the guest reads %q from its own file", r.span(content))
	}
	return fmt.Sprintf("files: names are looked up in the mount (%s)", errnos(refusals)), err
}

// exchanged lets the guest open a name while somebody exchanges a directory in
// it, where the file is not, for a symbolic link to where it is.
func exchanged(t *trial) (string, error) {
	const tries = 6000
	if err := errors.Join(os.Mkdir(t.host("ws/x"), 0o700), t.link("../out", "ws/l"), t.look("ws")); err != nil {
		return "", notTried("%v", err)
	}
	s := &script{}
	content := s.control(t, grantWrite)
	name, worked := s.at(t.guest("ws/x/secret")), s.room(4)
	f := s.open(name, 0, mayRead, 0)
	s.add("tally", worked.at)
	s.read(f.fd, 48)
	s.add("fd_close", f.fd)
	s.add("store", uint32(f.fd), minus)
	s.always(f.call, tries-1)

	stop := exchanging(t)
	r, err := t.report(t.mounted(true), s)
	exchanges := stop()
	if err != nil {
		return "", err
	}
	_, err = r.check(s)
	t.detail = fmt.Sprintf("%d attempts, %d exchanges", r.times(f.call), exchanges/4)
	switch n := r.u32(worked.at); {
	case err != nil:
		return "", err
	case string(r.span(content)) != inside:
		return "", notTried("the guest reads %q from its own file", r.span(content))
	case n > 0:
		return "", fmt.Errorf("it worked %d times in %d attempts", n, tries)
	case r.times(f.call) != tries || exchanges < 100:
		return "", notTried("%s", t.detail)
	}
	return "files: names are looked up in the mount", nil
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
