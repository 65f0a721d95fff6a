package main

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/jail/seccomp"
	"github.com/stockade-dev/stockade/host/jail/wire"
)

// confinement takes away the rights that a command does not need from a thread, and so from
// all that the thread becomes or starts. Nothing can be mounted afterwards.
type confinement struct {
	world   *wire.World       // the world of the command
	ruleset int               // Landlock ruleset; -1: none
	filter  []unix.SockFilter // seccomp program
	renamer *renamer          // serves the renames of a staged command; nil: the kernel does them all
}

// prepare does the part of the confinement after which this thread can still mount.
func prepare(w *wire.World) (*confinement, error) {
	unix.Umask(0o022)
	opts := seccomp.Options{Network: w.Namespaces, NoNamespaces: !w.NewRoot}
	c := &confinement{world: w, ruleset: -1}
	if w.NewRoot && slices.ContainsFunc(w.Binds, func(b wire.Bind) bool { return b.Upper != "" }) {
		c.renamer, opts.Renames = new(renamer), true
	}
	c.filter = seccomp.Filter(opts)
	return c, applyLayers([]layer{
		{"no_new_privs", func() error {
			return step(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl PR_SET_NO_NEW_PRIVS")
		}},
		{"bounding set", dropBoundingSet},
		{"landlock", func() (err error) {
			if w.Landlock {
				c.ruleset, err = ruleset(w)
			}
			return err
		}},
	})
}

// enter applies the layers that follow prepare to this thread, except for [limit].
func (c *confinement) enter() error { return c.enterWithout("") }

// enterWithout does the same as enter without the layer of this name; "": with all layers.
func (c *confinement) enterWithout(name string) error {
	layers := []layer{
		{"user", func() error { return become(c.world.UID, c.world.GID) }},
		{"capabilities", dropCapabilities},
		{"landlock", func() error {
			if c.ruleset < 0 {
				return nil
			}
			return step(ll.LandlockRestrictSelf(c.ruleset, 0), "restrict paths with Landlock")
		}},
		{"seccomp", c.install},
	}
	return applyLayers(slices.DeleteFunc(layers, func(l layer) bool { return l.name == name }))
}

// install installs the seccomp filter on this thread, and serves a staged command's renames.
func (c *confinement) install() error {
	if c.renamer != nil {
		listener, err := seccomp.Listen(c.filter)
		if err == nil {
			c.renamer.serve(listener)
			return nil
		}
		if err != unix.EBUSY {
			return step(err, "install the seccomp filter")
		}
		// Another listener watches this process already, and there can be only one. Some
		// renames of directories will fail.
		c.renamer = nil
		c.filter = seccomp.Filter(seccomp.Options{Network: c.world.Namespaces, NoNamespaces: !c.world.NewRoot})
	}
	return step(seccomp.Install(c.filter), "install the seccomp filter")
}

type layer struct {
	name  string
	apply func() error
}

func applyLayers(layers []layer) error {
	for _, l := range layers {
		if isOmitted(l.name) {
			continue
		}
		if err := l.apply(); err != nil {
			return err
		}
	}
	return nil
}

// limit sets the resource limits of this process. It has to be called right before the command
// starts: without a user namespace the limit of processes includes those that run now.
func limit(w *wire.World) error {
	if isOmitted("rlimits") {
		return nil
	}
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
		{"RLIMIT_SIGPENDING", unix.RLIMIT_SIGPENDING, 8192},
		{"RLIMIT_MEMLOCK", unix.RLIMIT_MEMLOCK, 8 << 20},
	} {
		// Limits that are lower already stay.
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

// dropBoundingSet empties the capability bounding set of this thread and its children.
func dropBoundingSet() error {
	for c := uintptr(0); ; c++ {
		switch err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err {
		case nil:
		case unix.EINVAL, unix.EPERM: // no further capability is known, or there are none
			return nil
		default:
			return step(err, "drop capability %d", c)
		}
	}
}

// become makes this thread run as the command's user, if it runs as root.
func become(uid, gid int) error {
	if unix.Getuid() != 0 || uid == 0 && gid == unix.Getgid() {
		return nil
	}
	// The functions of package syscall apply to all threads.
	for _, call := range [][4]uintptr{
		{unix.SYS_SETGROUPS},
		{unix.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid)},
		{unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)},
	} {
		if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
			return step(errno, "become user %d", uid)
		}
	}
	return nil
}

func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return step(err, "clear ambient capabilities")
	}
	var none [2]unix.CapUserData
	return step(unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]), "drop capabilities")
}

// presets are the library's sets of restrictions, by the ABI version of Landlock, from 1.
var presets = []landlock.Config{
	landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6, landlock.V7, landlock.V8, landlock.V9, landlock.V10, landlock.V11,
}

const (
	accessRead   = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir
	accessChange = accessRead | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeDir |
		ll.AccessFSMakeReg | ll.AccessFSMakeSym | ll.AccessFSRefer
	// In its own directories a command may also make pipes and sockets, on which others could
	// wait.
	accessOwn  = accessChange | ll.AccessFSMakeFifo | ll.AccessFSMakeSock
	accessFile = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev
)

// ruleset returns the descriptor of a Landlock ruleset that allows only the paths of the
// world. It restricts all that the kernel and the library know. Unlike the presets of the
// library it fails if the kernel has no Landlock.
func ruleset(w *wire.World) (_ int, err error) {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return -1, step(err, "ask for Landlock")
	}
	if abi < 1 {
		return -1, step(fmt.Errorf("version %d", abi), "ask for Landlock")
	}
	config := presets[min(abi, len(presets))-1]
	attr := ll.RulesetAttr{HandledAccessFS: uint64(config.HandledAccessFS), HandledAccessNet: uint64(config.HandledAccessNet), Scoped: uint64(config.Scoped)}
	if w.Namespaces {
		// In its own network namespace the command reaches only its own servers and the proxy.
		attr.HandledAccessNet = 0
	}
	rules, err := ll.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return -1, step(err, "make a Landlock ruleset")
	}
	allow := func(name string, access uint64, optional bool) error {
		place, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
		if optional && (err == unix.ENOENT || err == unix.EACCES) {
			return nil
		}
		if err != nil {
			return step(err, "allow %s", name)
		}
		defer unix.Close(place)
		var st unix.Stat_t
		if err := unix.Fstat(place, &st); err != nil {
			return step(err, "allow %s", name)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			access &= accessFile
		}
		beneath := ll.PathBeneathAttr{AllowedAccess: access & attr.HandledAccessFS, ParentFd: place}
		return step(ll.LandlockAddPathBeneathRule(rules, &beneath, 0), "allow %s", name)
	}
	if w.NewRoot {
		// This root contains only files that may be read.
		if err := firstErr(allow("/", accessRead, false), allow("/dev/shm", accessOwn, false)); err != nil {
			return -1, err
		}
	}
	for _, b := range w.Binds {
		if w.NewRoot && !b.Write {
			continue
		}
		access := uint64(accessRead)
		switch {
		case b.Device:
			access = accessFile
		case b.Write:
			access = accessChange
		}
		if err := allow(b.Path, access, b.Optional); err != nil {
			return -1, err
		}
	}
	for _, l := range w.Layers {
		if err := allow(l.Path, accessChange, true); err != nil {
			return -1, err
		}
	}
	for _, name := range []string{w.Home, w.Tmp} {
		access := uint64(accessOwn)
		if slices.ContainsFunc(w.Binds, func(b wire.Bind) bool { return strings.HasPrefix(b.Path, name+"/") }) {
			access = accessChange // the access also applies to mounts below
		}
		if err := allow(name, access, false); err != nil {
			return -1, err
		}
	}
	return rules, nil
}
