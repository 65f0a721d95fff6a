package main

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/jail/seccomp"
	"github.com/stockade-dev/stockade/host/jail/wire"
)

// confine takes from this process, and so from all that it starts, whatever a
// command need not have. Nothing can be mounted afterwards.
func confine(w *wire.World) error {
	unix.Umask(0o022)
	for _, layer := range []struct {
		name string
		put  func() error
	}{
		{"rlimits", func() error { return limit(w) }},
		{"no_new_privs", noNewPrivs},
		{"bounding set", dropBoundingSet},
		{"user", func() error { return become(w.UID, w.GID) }},
		{"capabilities", dropCapabilities},
		{"landlock", func() error { return restrictPaths(w) }},
		{"seccomp", func() error {
			filter := seccomp.Filter(seccomp.Options{Network: w.Namespaces, NoNamespaces: !w.NewRoot})
			return step(seccomp.Install(filter), "install the seccomp filter")
		}},
	} {
		if without(layer.name) {
			continue
		}
		if err := layer.put(); err != nil {
			return err
		}
	}
	return nil
}

func limit(w *wire.World) error {
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
	return nil
}

func noNewPrivs() error {
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); errno != 0 {
		return step(errno, "prctl PR_SET_NO_NEW_PRIVS")
	}
	return nil
}

// dropBoundingSet empties the bounding set of this thread, and of what it starts.
func dropBoundingSet() error {
	for c := uintptr(0); ; c++ {
		switch err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err {
		case nil:
		case unix.EINVAL, unix.EPERM: // the kernel knows no more, or there are no capabilities to begin with
			return nil
		default:
			return step(err, "drop capability %d", c)
		}
	}
}

// become becomes the user of the command, if this is root.
func become(uid, gid int) error {
	if unix.Getuid() != 0 || uid == 0 && gid == unix.Getgid() {
		return nil
	}
	err := firstErr(syscall.Setgroups(nil), syscall.Setresgid(gid, gid, gid), syscall.Setresuid(uid, uid, uid))
	return step(err, "become user %d", uid)
}

func dropCapabilities() error {
	if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0); errno != 0 {
		return step(errno, "clear ambient capabilities")
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0); errno != 0 {
		return step(errno, "drop capabilities")
	}
	return nil
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
func restrictPaths(w *wire.World) error {
	if !w.Landlock {
		return nil
	}
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
		access := landlock.AccessFSSet(own)
		if slices.ContainsFunc(w.Binds, func(b wire.Bind) bool { return strings.HasPrefix(b.Path, name+"/") }) {
			access = change // it holds for what is mounted below, too
		}
		if err := allow(name, access, false); err != nil {
			return err
		}
	}
	if w.Namespaces {
		// In a network of its own it finds only its own servers, and the proxy.
		config.HandledAccessNet = 0
	}
	return step(config.Restrict(rules...), "restrict paths with Landlock")
}
