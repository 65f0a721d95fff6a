package jail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/jail/wire"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/stage"
)

// helperImage returns the descriptor of a sealed file in memory with the helper's program.
var helperImage = sync.OnceValues(func() (int, error) {
	program, err := dist.ReadFile("dist/" + platform)
	if err != nil {
		return -1, fmt.Errorf("this program was built without the helper of the jail for %s: build it with `make build`", platform)
	}
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("stockade-jail", flags|unix.MFD_EXEC)
	if err == unix.EINVAL { // before Linux 6.3
		fd, err = unix.MemfdCreate("stockade-jail", flags)
	}
	if err != nil {
		return -1, fmt.Errorf("memfd_create: %w", err)
	}
	if fd <= wire.Socket { // before it runs, the helper gets its socket at this descriptor
		low := fd
		fd, err = unix.FcntlInt(uintptr(low), unix.F_DUPFD_CLOEXEC, wire.Socket+1)
		unix.Close(low)
		if err != nil {
			return -1, fmt.Errorf("dup: %w", err)
		}
	}
	if _, err := unix.Write(fd, program); err != nil {
		return -1, fmt.Errorf("write the helper: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE); err != nil {
		return -1, fmt.Errorf("seal the helper: %w", err)
	}
	return fd, nil
})

// helper is a helper process that has built its world.
type helper struct {
	world       wire.World
	cmd         *exec.Cmd
	socket      *os.File       // our end of the socket, blocking
	mounts      *os.File       // /proc/self/mountinfo: polling it reports changes of this machine's mounts
	routes      []*os.File     // counters of its own network (/proc/PID/net/snmp and snmp6); empty: it has none
	ready       wire.Ready     // answer of the helper to the world
	exited      chan struct{}  // closed when the process has ended
	cleanups    []func()       // called by release
	notes       []string       // notes for the result, about missing parts of the world
	layers      *layerSet      // layers over caches, until a command takes them over; nil: none
	stageLayers []*stage.Layer // layers for a staged command's changes; release drops them
}

// forkMu is held while a helper starts. Package syscall would allow many starts at once, but
// each waits on a pipe until its ids are mapped, and helpers that are forked meanwhile inherit
// the pipe. If this program is killed then, they wait for each other for ever.
var forkMu sync.Mutex

// startHelper starts a helper and waits until it has built its world.
func startHelper(ctx context.Context, w wire.World) (*helper, error) {
	fd, err := helperImage()
	if err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socketpair: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "helper")
	defer theirs.Close()
	h := &helper{world: w, socket: os.NewFile(uintptr(pair[0]), "jail"), exited: make(chan struct{})}
	mounts, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		h.socket.Close()
		return nil, fmt.Errorf("open /proc/self/mountinfo: %w", err)
	}
	h.mounts = os.NewFile(uintptr(mounts), "mountinfo")
	c := exec.CommandContext(context.WithoutCancel(ctx), "/proc/self/fd/"+strconv.Itoa(fd))
	c.Args = []string{"stockade-jail"}
	c.Dir = "/"
	c.Env = []string{}
	c.ExtraFiles = []*os.File{theirs}
	c.SysProcAttr = attributes(w)
	closeOnExec()
	h.cmd = c
	forkMu.Lock()
	err = c.Start()
	forkMu.Unlock()
	if err != nil {
		h.release()
		if w.Namespaces {
			err = explain(err)
		}
		return nil, fmt.Errorf("start the helper: %w", err)
	}
	theirs.Close()
	go func() {
		_ = c.Wait()
		close(h.exited)
	}()
	stop := context.AfterFunc(ctx, h.interrupt)
	if err = wire.Send(h.fd(), w); err != nil {
		err = fmt.Errorf("tell the helper: %w", err)
	} else if _, err = wire.Receive(h.fd(), &h.ready); err != nil {
		err = fmt.Errorf("the helper has ended: %w", err)
	} else if h.ready.Err != "" {
		err = fmt.Errorf("%s: %s", h.ready.Step, h.ready.Err)
	}
	for _, name := range []string{"snmp", "snmp6"} {
		if !w.Namespaces {
			break
		}
		if f, missing := os.Open(fmt.Sprintf("/proc/%d/net/%s", c.Process.Pid, name)); missing == nil {
			h.routes = append(h.routes, f)
		}
	}
	// If ctx has ended, interrupt may run later, when the helper has a command.
	if stopped := stop(); stopped && err == nil {
		return h, nil
	}
	h.kill()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return nil, err
}

func (h *helper) fd() int { return int(h.socket.Fd()) }

// interrupt begins to end the helper and all processes of its command. It does not wait.
func (h *helper) interrupt() {
	if h.world.NewRoot {
		_ = h.cmd.Process.Kill() // the kernel ends all processes of a pid namespace with the first
		return
	}
	// Without a pid namespace the helper kills the other processes; they would outlive it.
	if c, err := h.socket.SyscallConn(); err == nil { // it may be closed already
		_ = c.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) })
	}
}

// kill ends the helper and all processes of its command, waits for that, and releases the
// helper.
func (h *helper) kill() {
	if h.alive() {
		h.interrupt()
	}
	<-h.exited
	h.release()
}

func (h *helper) alive() bool {
	select {
	case <-h.exited:
		return false
	default:
		return true
	}
}

// mountsUnchanged reports whether the mounts of this machine are still those that the helper
// has copied. After changes it returns false once, and true again afterwards.
func (h *helper) mountsUnchanged() bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(h.mounts.Fd()), Events: unix.POLLPRI}}, 0)
	return n == 0 && err == nil
}

// noRoutes matches a counter OutNoRoutes that is not 0.
var noRoutes = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^Ip:( \d+){11} [1-9]|^Ip6OutNoRoutes\s+[1-9]`) })

// triedNetwork reports whether a command tried to reach another host: it connected to an
// address without a route, or it was Go, whose environment tells it not to try. Without
// namespaces that is not known, and the result false.
func (h *helper) triedNetwork(ended *services.CommandResult) bool {
	return slices.ContainsFunc(h.routes, func(f *os.File) bool {
		text, _ := io.ReadAll(f)
		return noRoutes().Match(text) || bytes.Contains(slices.Concat(ended.Stdout, ended.Stderr), []byte("disabled by GOPROXY=off"))
	})
}

// cpu waits until the helper ends. It returns the processor time of it and its children.
func (h *helper) cpu() time.Duration {
	<-h.exited
	return h.cmd.ProcessState.UserTime() + h.cmd.ProcessState.SystemTime()
}

func (h *helper) release() {
	h.socket.Close()
	h.mounts.Close()
	for _, f := range h.routes {
		f.Close()
	}
	for _, f := range h.cleanups {
		f()
	}
	for _, l := range h.stageLayers {
		l.Drop()
	}
	if h.layers != nil {
		h.layers.release()
	}
	h.cleanups, h.stageLayers, h.layers = nil, nil, nil
}

// namespaces are the kinds of namespaces that a command gets, the last only with a root of
// its own. Tests remove some.
var namespaces uintptr = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWPID

// attributes returns the attributes of a helper, with new namespaces if w has them. Users and
// groups keep their numbers in the namespaces, because files hold the numbers. So the
// process is root there only if this program is root.
func attributes(w wire.World) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	if !w.Namespaces {
		return a
	}
	a.Cloneflags = namespaces
	if !w.NewRoot {
		a.Cloneflags &^= unix.CLONE_NEWPID
	}
	uid, gid, size := os.Getuid(), os.Getgid(), 1
	if uid == 0 {
		uid, gid, size = 0, 0, 1<<32-1
		a.GidMappingsEnableSetgroups = true
	}
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: size}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: size}}
	if uid != 0 {
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_CHOWN, unix.CAP_FSETID, unix.CAP_MKNOD, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE}
	}
	return a
}

// explain returns a clearer error for those of clone that would be misleading.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.ENOSPC):
		return errors.New("no more user namespaces are allowed (user.max_user_namespaces)")
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		if wrapped, ok := errors.AsType[*os.PathError](err); ok {
			err = wrapped.Err // its path is our own program
		}
		return fmt.Errorf("user namespaces are forbidden here: %w", err)
	}
	return err
}

// startCommand starts the command c, the helper's only one. It returns the listener in the
// command's network; nil: the command has no network.
func (h *helper) startCommand(c wire.Command, stdout, stderr *os.File) (net.Listener, error) {
	if err := wire.Send(h.fd(), c, int(stdout.Fd()), int(stderr.Fd())); err != nil {
		return nil, fmt.Errorf("tell the helper: %w", err)
	}
	var started wire.Started
	fds, err := wire.Receive(h.fd(), &started)
	if err == nil && started.Err != "" {
		err = fmt.Errorf("%s: %s", started.Step, started.Err)
	}
	if err != nil || len(fds) == 0 {
		return nil, err
	}
	socket := os.NewFile(uintptr(fds[0]), "proxy")
	defer socket.Close()
	return net.FileListener(socket)
}

func (h *helper) waitEnded() (out wire.Ended, err error) {
	if _, err = wire.Receive(h.fd(), &out); err != nil {
		<-h.exited
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the helper was killed")
	}
	return out, err
}
