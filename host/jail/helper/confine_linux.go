package main

import (
	"fmt"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/jail/seccomp"
	"github.com/stockade-dev/stockade/host/jail/wire"
)

// confine takes from this process, and so from all that it starts, whatever a
// command need not have. Nothing can be mounted afterwards.
func confine(w *wire.World, port int) error {
	processes := w.Limits.Processes
	if !w.Namespaces {
		// Without a user namespace all processes of the user count.
		var info unix.Sysinfo_t
		if err := unix.Sysinfo(&info); err != nil {
			return step(err, "sysinfo")
		}
		processes += uint64(info.Procs)
	}
	for _, l := range []struct {
		name     string
		resource int
		value    uint64
	}{
		{"RLIMIT_CORE", unix.RLIMIT_CORE, 0},
		{"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, w.Limits.FileSize},
		{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, w.Limits.Files},
		{"RLIMIT_DATA", unix.RLIMIT_DATA, w.Limits.Memory},
		{"RLIMIT_NPROC", unix.RLIMIT_NPROC, processes},
		{"RLIMIT_MSGQUEUE", unix.RLIMIT_MSGQUEUE, 0},
		{"RLIMIT_MEMLOCK", unix.RLIMIT_MEMLOCK, 8 << 20},
	} {
		// A limit that is lower already stays.
		var have syscall.Rlimit
		if err := syscall.Getrlimit(l.resource, &have); err != nil {
			return step(err, "getrlimit %s", l.name)
		}
		value := min(l.value, have.Max)
		if err := syscall.Setrlimit(l.resource, &syscall.Rlimit{Cur: value, Max: value}); err != nil {
			return step(err, "setrlimit %s", l.name)
		}
	}
	unix.Umask(0o022)
	if err := drop(w.UID, w.GID); err != nil {
		return err
	}
	if w.Landlock {
		if err := restrictPaths(w, port); err != nil {
			return err
		}
	}
	filter := seccomp.Filter(seccomp.Options{Network: w.Network, NoNamespaces: !w.NewRoot})
	return step(seccomp.Install(filter), "install the seccomp filter")
}

// drop becomes the user of the command, without any capability, for good.
func drop(uid, gid int) error {
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); errno != 0 {
		return step(errno, "prctl PR_SET_NO_NEW_PRIVS")
	}
	// The bounding set is that of this thread, and of what it starts. It says
	// EINVAL for what the kernel does not know.
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err == unix.EINVAL {
			break
		}
		if err == unix.EPERM { // it has no capabilities to begin with
			break
		}
		if err != nil {
			return step(err, "drop capability %d", c)
		}
	}
	if unix.Getuid() == 0 && (uid != 0 || gid != unix.Getgid()) {
		if err := firstErr(syscall.Setgroups(nil), syscall.Setresgid(gid, gid, gid), syscall.Setresuid(uid, uid, uid)); err != nil {
			return step(err, "become user %d", uid)
		}
	}
	if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0); errno != 0 {
		return step(errno, "clear ambient capabilities")
	}
	return step(capset(), "drop capabilities")
}

// presets are the configurations of Landlock by the version of its ABI.
var presets = []landlock.Config{
	landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6, landlock.V7, landlock.V8, landlock.V9, landlock.V10, landlock.V11,
}

const (
	look   = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir
	change = look | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeDir |
		ll.AccessFSMakeReg | ll.AccessFSMakeSym | ll.AccessFSRefer
	// What the command has for itself may also hold what others could wait for.
	own       = change | ll.AccessFSMakeFifo | ll.AccessFSMakeSock
	onlyFiles = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev
)

// restrictPaths lets all threads of this process reach the paths of the world
// alone. Unlike the presets of the library it takes nothing for granted: what the
// kernel has is what the host has found, or this fails.
func restrictPaths(w *wire.World, port int) error {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return step(err, "ask for Landlock")
	}
	if abi < 1 {
		return step(fmt.Errorf("version %d", abi), "ask for Landlock")
	}
	config := presets[min(abi, len(presets))-1]
	var rules []landlock.Rule
	allow := func(name string, access landlock.AccessFSSet, optional bool) error {
		var st unix.Stat_t
		if err := unix.Stat(name, &st); err != nil {
			if optional && (err == unix.ENOENT || err == unix.EACCES) {
				return nil
			}
			return step(err, "allow %s", name)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			access &= onlyFiles
		}
		rules = append(rules, landlock.PathAccess(access&config.HandledAccessFS, name))
		return nil
	}
	if w.NewRoot {
		// What is not to be read is not in this root.
		if err := allow("/", look, false); err != nil {
			return err
		}
		if err := allow("/dev/shm", own, false); err != nil {
			return err
		}
	}
	for _, b := range w.Binds {
		if w.NewRoot && !b.Write {
			continue
		}
		access := landlock.AccessFSSet(look)
		switch {
		case b.Device:
			access = onlyFiles
		case b.Write:
			access = change
		}
		if err := allow(b.Path, access, b.Optional); err != nil {
			return err
		}
	}
	for _, l := range w.Layers {
		if err := allow(l.Path, change, true); err != nil {
			return err
		}
	}
	for _, name := range []string{w.Home, w.Tmp} {
		if err := allow(name, own, false); err != nil {
			return err
		}
	}
	if port != 0 && config.HandledAccessNet != 0 {
		rules = append(rules, landlock.ConnectTCP(uint16(port)))
	}
	return step(config.Restrict(rules...), "restrict paths with Landlock")
}
