//go:build linux

package probe

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Run starts this program again outside of the jail, with arguments and in a directory, as
// jail.RunHelper does. It returns when the process has ended, which is soon after ctx has
// ended. An error means that it did not start.
type Run func(ctx context.Context, dir string, args ...string) error

// Victim is the target of the probes. It serves one run of probes, and one goroutine.
type Victim struct {
	spec      Spec
	workspace string
	ended     chan error // receives the error of the victim's process when it ends

	listeners map[string]int // descriptors of sockets that no probe may reach, by the names of the probes that try
	before    state          // state of the victim when it was set up
	undo      []func()       // steps of Close, in reverse order
}

type state struct {
	files    map[string]file
	priority int
	limits   string // text of /proc/PID/limits
	cpus     unix.CPUSet
}

type file struct {
	content, xattr string
	mode           uint32
	links          uint64
	changed        int64 // mtime, seconds
}

// NewVictim sets up the outside of a jail: files in a new directory below dir, a process that
// run starts, and ports and sockets. The jail must not reach any of them. dir and workspace
// are absolute; dir has at most 80 bytes, for a socket. workspace is the working directory of
// the probes. [Victim.Close] removes all except for files that the probes left in workspace.
func NewVictim(dir, workspace string, run Run) (_ *Victim, err error) {
	v := &Victim{workspace: workspace, listeners: map[string]int{}, ended: make(chan error, 1)}
	defer func() {
		if err != nil {
			v.Close()
			err = fmt.Errorf("set up what is probed: %w", err)
		}
	}()
	var id [8]byte
	_, _ = rand.Read(id[:])
	v.spec.ID = hex.EncodeToString(id[:])
	v.spec.Secret = "secret of " + v.spec.ID
	v.spec.Program, v.spec.Ports = os.Getpid(), map[string]int{}
	if v.spec.Networks, err = os.Readlink(networkNamespace); err != nil {
		return nil, err
	}
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err == nil {
		v.spec.Inotify, err = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if err != nil {
		return nil, err
	}
	if v.spec.Outside, err = os.MkdirTemp(dir, "outside-"); err != nil {
		return nil, err
	}
	v.undo = append(v.undo, func() { _ = os.RemoveAll(v.spec.Outside) })
	for _, probe := range files {
		if !slices.Contains([]string{"create", "move out"}, probe.name) { // these attacks make their files
			if err := os.WriteFile(v.spec.file(probe.name), []byte(v.spec.Secret), 0o600); err != nil {
				return nil, err
			}
		}
	}
	for _, step := range []func() error{v.memory, v.listen, func() error { return v.start(run) }} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	old := time.Unix(1577880000, 0)
	for name := range v.files() {
		if err := os.Chtimes(v.spec.file(name), old, old); err != nil {
			return nil, err
		}
	}
	v.before, err = v.state()
	return v, err
}

// memory makes memory of this process that other processes could map.
func (v *Victim) memory() (err error) {
	if err := os.WriteFile(v.spec.sharedFile(), []byte(v.spec.Secret), 0o600); err != nil {
		return err
	}
	v.undo = append(v.undo, func() { _ = os.Remove(v.spec.sharedFile()) })
	if v.spec.Segment, err = unix.SysvShmGet(unix.IPC_PRIVATE, 1, unix.IPC_CREAT|0o600); err != nil {
		return err
	}
	v.undo = append(v.undo, func() { _, _ = unix.SysvShmCtl(v.spec.Segment, unix.IPC_RMID, nil) })
	return nil
}

func (v *Victim) listen() error {
	for _, l := range []struct {
		probe        string
		family, kind int
		at           unix.Sockaddr
	}{
		{"tcp", unix.AF_INET, unix.SOCK_STREAM, local(0)},
		{"mptcp", unix.AF_INET, unix.SOCK_STREAM, local(0)},
		{"tcp fast open", unix.AF_INET, unix.SOCK_STREAM, local(0)},
		{"udp", unix.AF_INET, unix.SOCK_DGRAM, local(0)},
		{"unix socket", unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: v.spec.socket()}},
		{"abstract socket", unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: v.spec.abstract()}},
	} {
		fd, err := unix.Socket(l.family, l.kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		v.listeners[l.probe] = fd
		v.undo = append(v.undo, func() { _ = unix.Close(fd) })
		if err := unix.Bind(fd, l.at); err != nil {
			return fmt.Errorf("%s: %w", l.probe, err)
		}
		if l.kind == unix.SOCK_STREAM {
			if err := unix.Listen(fd, 16); err != nil {
				return err
			}
		}
		at, err := unix.Getsockname(fd)
		if err != nil {
			return err
		}
		if at, ok := at.(*unix.SockaddrInet4); ok {
			v.spec.Ports[l.probe] = at.Port
		}
	}
	return nil
}

// start starts the victim's process, which reports its targets through a named pipe.
func (v *Victim) start(run Run) error {
	pipe := v.spec.file("ready")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		return err
	}
	defer os.Remove(pipe)
	r, err := os.OpenFile(pipe, os.O_RDWR|unix.O_NONBLOCK, 0) // open for writing as well, so that reading does not end
	if err != nil {
		return err
	}
	defer r.Close()
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		v.ended <- run(ctx, v.spec.Outside, Command, "victim", v.spec.Outside)
		_ = r.Close() // no report will come
	}()
	_ = r.SetReadDeadline(time.Now().Add(patience))
	var told struct {
		PID, FD int
		Address uint64
	}
	if err := json.NewDecoder(r).Decode(&told); err != nil {
		stop()
		return fmt.Errorf("start the process: %w", errors.Join(<-v.ended, err))
	}
	v.undo = append(v.undo, func() {
		stop()
		if err := <-v.ended; err != nil {
			return // it was killed
		}
	})
	v.spec.Victim, v.spec.FD, v.spec.Address = told.PID, told.FD, told.Address
	return nil
}

const secretName = "STOCKADE_PROBE_SECRET"

// beVictim is the main function of the victim's process. It has the secret in its environment
// and its memory and a file open, and sleeps until it is killed.
func beVictim(outside string) error {
	secret, err := os.ReadFile(outside + "/read")
	if err != nil {
		return err
	}
	if os.Getenv(secretName) == "" { // the kernel shows the environment with which a process was started
		return unix.Exec(self, os.Args, append(os.Environ(), secretName+"="+string(secret)))
	}
	memory, err := unix.Mmap(-1, 0, len(secret), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	copy(memory, secret)
	f, err := os.OpenFile(outside+"/pidfd_getfd", os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	ready, err := os.OpenFile(outside+"/ready", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(ready).Encode(map[string]any{
		"PID": os.Getpid(), "FD": f.Fd(), "Address": uint64(uintptr(unsafe.Pointer(&memory[0]))),
	}); err != nil {
		return err
	}
	for {
		_ = unix.Pause()
	}
}

// Args returns the arguments for a jailed process of this program that probes.
func (v *Victim) Args() []string {
	text, _ := json.Marshal(v.spec) // numbers and text
	return []string{Command, "attack", string(text)}
}

// Check returns the damage to the victim in words, by the names of the probes that did it.
// Probes without visible damage are missing.
func (v *Victim) Check() (map[string]string, error) {
	done := map[string]string{}
	now, err := v.state()
	if err != nil {
		done["signal victim"] = "the process is not as it was: " + err.Error()
	}
	for name := range now.files {
		if _, ok := v.before.files[name]; !ok {
			done[name] = "a file was made"
		}
	}
	for name, was := range v.before.files {
		if is, ok := now.files[name]; !ok {
			done[name] = "its file is gone"
		} else if is != was {
			done[name] = fmt.Sprintf("its file was %+v and is %+v", was, is)
		}
	}
	if err == nil {
		if now.priority != v.before.priority {
			done["setpriority"] = "the priority is another"
		}
		if now.limits != v.before.limits {
			done["prlimit"] = "the limit is another"
		}
		if now.cpus != v.before.cpus {
			done["sched_setaffinity"] = "the processors are others"
		}
	}
	for probe, fd := range v.listeners {
		if reached(fd) {
			done[probe] = "somebody was there"
		}
	}
	if got, err := os.ReadFile(v.spec.sharedFile()); string(got) != v.spec.Secret {
		done["shared memory file"] = fmt.Sprintf("it has %q; %v", got, err)
	}
	memory, err := unix.SysvShmAttach(v.spec.Segment, 0, unix.SHM_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("check what was probed: %w", err)
	}
	defer func() { _ = unix.SysvShmDetach(memory) }()
	if memory[0] != 0 {
		done["System V memory"] = "it was written"
	}
	var st unix.Stat_t
	if unix.Lstat(v.workspace+"/"+v.spec.ownFile("device"), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR {
		done["device"] = "it is there"
	}
	return done, nil
}

// reached reports whether somebody has connected to a socket, or sent data to it.
func reached(fd int) bool {
	if conn, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC); err == nil {
		_ = unix.Close(conn)
		return true
	} else if err != unix.EOPNOTSUPP {
		return err != unix.EAGAIN
	}
	_, _, err := unix.Recvfrom(fd, make([]byte, 1), unix.MSG_TRUNC)
	return err != unix.EAGAIN
}

// state returns the current state of the victim. If its process has ended, there is an error,
// and only the state of the files.
func (v *Victim) state() (s state, err error) {
	s.files = v.files()
	pid := v.spec.Victim
	if s.priority, err = unix.Getpriority(unix.PRIO_PROCESS, pid); err != nil {
		return s, err
	}
	limits, err := os.ReadFile(v.spec.proc("limits"))
	if err != nil {
		return s, err
	}
	s.limits = string(limits)
	if err = unix.SchedGetaffinity(pid, &s.cpus); err != nil {
		return s, err
	}
	select {
	case err = <-v.ended:
		v.ended <- err
		err = errors.Join(errors.New("it has ended"), err)
	default:
	}
	return s, err
}

// files returns the states of the victim's files, by name.
func (v *Victim) files() map[string]file {
	out := map[string]file{}
	entries, _ := os.ReadDir(v.spec.Outside)
	for _, e := range entries {
		path := v.spec.file(e.Name())
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			continue
		}
		f := file{mode: st.Mode, links: uint64(st.Nlink), changed: st.Mtim.Sec}
		if st.Mode&unix.S_IFMT == unix.S_IFREG {
			content, _ := os.ReadFile(path)
			value := make([]byte, 16)
			n, _ := unix.Getxattr(path, xattr, value)
			f.content, f.xattr = string(content), string(bytes.TrimRight(value[:max(n, 0)], "\x00"))
		}
		out[e.Name()] = f
	}
	return out
}

// Close ends the victim's process, closes the ports and removes the files outside.
func (v *Victim) Close() {
	for _, undo := range slices.Backward(v.undo) {
		undo()
	}
}

// CopySelf copies this program to the file name, for a jail that runs probes.
func CopySelf(name string) error {
	from, err := os.Open(self)
	if err != nil {
		return err
	}
	defer from.Close()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}
